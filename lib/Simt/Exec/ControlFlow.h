//===- ControlFlow.h - Basic blocks and where branches meet again ---------===//

#ifndef KPERFIR_SIMT_EXEC_CONTROL_FLOW_H
#define KPERFIR_SIMT_EXEC_CONTROL_FLOW_H

#include "Simt/Exec/Flatten.h"

namespace kperfir::simt {

inline constexpr uint32_t kNoBlock = 0xFFFFFFFFu;

/// A run of statements without control flow in between.
struct FlowBlock {
  uint32_t begin = 0, end = 0; // statements, [begin, end)
  std::vector<uint32_t> successors;
  bool isReachable = false;
  /// Immediate post-dominator, or kNoBlock when the paths only meet at the
  /// exit.
  uint32_t postDominator = kNoBlock;
};

struct ControlFlow {
  std::vector<FlowBlock> blocks;      // in text order
  std::vector<uint32_t> blockOfLabel; // by label of the flat kernel
};

ControlFlow buildControlFlow(const FlatKernel &kernel);

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_CONTROL_FLOW_H
