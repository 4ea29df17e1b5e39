//===- Flatten.h - One statement list per kernel --------------------------===//
//
// Replaces every call of a function that the module defines by its body, each
// with registers and labels of its own. Parameters are passed by name: a formal
// parameter stands for the caller's `.param` variable. What remains are calls
// of system functions (vprintf, __assertfail).
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_FLATTEN_H
#define KPERFIR_SIMT_EXEC_FLATTEN_H

#include "Simt/Ptx/Ast.h"

#include <unordered_map>

namespace kperfir::simt {

/// One function body in place.
struct Frame {
  const ptx::Function *function = nullptr;
  uint32_t registerBase = 0; // of its registers in FlatKernel::registers
  uint32_t labelBase = 0;    // of its labels in FlatKernel::labels
  std::unordered_map<uint32_t, uint32_t>
      bindings;          // formal parameter -> variable
  uint32_t endLabel = 0; // where its `ret` goes; unused in frame 0
};

struct FlatStatement {
  const ptx::Statement *statement = nullptr;
  uint32_t frame = 0;
};

struct FlatKernel {
  const ptx::Module *module = nullptr;
  std::vector<Frame> frames;             // [0] = the kernel
  std::vector<FlatStatement> statements; // the last one is a `ret`
  std::vector<ptx::Register> registers;
  std::vector<uint32_t> labels; // statement index
};

/// Throws simt::Error (Unsupported) on recursion.
FlatKernel flatten(const ptx::Module &module, const ptx::Function &kernel);

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_FLATTEN_H
