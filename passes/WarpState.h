//===- WarpState.h - A warp's cursor and record count as SSA values -------===//
//
// kperf_gpu does not name them; here they become block arguments of a region's
// control-flow graph, whatever its shape. LLVM folds those that never change.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_WARPSTATE_H
#define KPERFIR_PASSES_WARPSTATE_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Region.h"
#include "mlir/IR/Value.h"
#include "mlir/Support/LLVM.h"

namespace mlir::kperf {

struct WarpState {
  Value cursor;  // Where the next frame begins, as BufferGeometry counts.
  Value records; // Stamps executed, modulo 2^32.
};

/// The state at the entry and exit of each block of one region. The region's
/// entry block has no predecessors, so its entry state is for the caller to
/// make.
class StateThreading {
public:
  /// Adds two arguments to every block of `region` but the entry.
  explicit StateThreading(Region &region, Type wordType, Location loc);

  /// State at the beginning of `block`; empty for the entry block.
  WarpState enter(Block &block) const;
  void leave(Block &block, WarpState state) { exits[&block] = state; }
  /// State at the end of `block`; empty before that was left.
  WarpState leaving(Block &block) const { return exits.lookup(&block); }

  /// Once every block was left: passes the states along every edge. Fails with
  /// a diagnostic on a branch that it does not know.
  LogicalResult connect();

private:
  Region &region;
  DenseMap<Block *, WarpState> exits;
};

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_WARPSTATE_H
