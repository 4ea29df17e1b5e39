//===- RegionKinds.cpp - What an operation of a kernel does ---------------===//

#include "passes/RegionKinds.h"

#include "mlir/IR/BuiltinTypes.h"
#include "passes/ForeignOps.h"
#include "llvm/ADT/StringSwitch.h"

namespace mlir {
/// Exported by libtriton (triton/Analysis/Utility.h, whose includes would cost
/// more than this line): the conversion only renames registers of a thread.
bool cvtReordersRegisters(RankedTensorType srcTy, RankedTensorType dstTy);
} // namespace mlir

using namespace mlir;
using namespace mlir::kperf;

static std::optional<Kind> kindOfName(StringRef name) {
  using Result = std::optional<Kind>;
  return llvm::StringSwitch<Result>(name)
      .Cases({"tt.load", "tt.descriptor_load", "tt.descriptor_gather",
              "amdg.buffer_load"},
             Kind::Load)
      .Cases({"tt.store", "tt.descriptor_store", "tt.descriptor_scatter",
              "tt.descriptor_reduce", "amdg.buffer_store"},
             Kind::Store)
      .Cases({"ttg.async_copy_global_to_local", "amdg.buffer_load_to_local",
              "ttng.async_copy_mbarrier_arrive"},
             Kind::AsyncCopy)
      .Cases({"ttg.async_wait", "ttng.async_tma_store_wait", "amdg.async_wait"},
             Kind::AsyncWait)
      .Cases({"tt.dot", "tt.dot_scaled"}, Kind::Dot)
      .Case("ttng.warp_group_dot", Kind::Wgmma)
      .Case("ttng.warp_group_dot_wait", Kind::WgmmaWait)
      .Cases({"ttng.tc_gen5_mma", "ttng.tc_gen5_mma_scaled",
              "ttng.tc_gen5_commit", "ttng.tmem_load", "ttng.tmem_store",
              "ttng.tmem_copy", "ttng.tmem_alloc"},
             Kind::Tcgen05)
      .Cases({"ttng.async_tma_copy_global_to_local",
              "ttng.async_tma_copy_local_to_global", "ttng.async_tma_reduce",
              "ttng.async_tma_gather", "ttng.async_tma_scatter"},
             Kind::Tma)
      .Case("ttng.wait_barrier", Kind::MbarrierWait)
      .Cases({"ttg.local_load", "ttg.local_gather"}, Kind::LocalLoad)
      .Cases({"ttg.local_store", "ttg.local_alloc", "ttg.local_scatter",
              "ttng.async_shared_store"},
             Kind::LocalStore)
      .Cases({"ttg.convert_layout", "tt.gather"}, Kind::ConvertLayout)
      .Cases({"tt.reduce", "tt.histogram"}, Kind::Reduce)
      .Case("tt.scan", Kind::Scan)
      .Cases({"tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_poll",
              "tt.atomic_load", "tt.atomic_store",
              "ttg.local_atomic_scatter_rmw", "amdg.buffer_atomic_rmw",
              "amdg.buffer_atomic_cas"},
             Kind::Atomic)
      .Cases({"gpu.barrier", "ttg.barrier", "ttng.cluster_barrier"},
             Kind::Barrier)
      .Case("tt.call", Kind::Call)
      .Cases({"tt.elementwise_inline_asm", "tt.map_elementwise",
              "tt.extern_elementwise", "tt.clampf", "tt.fp_to_fp"},
             Kind::Compute)
      .Default(std::nullopt);
}

static bool isRenaming(Operation *convert) {
  auto from = dyn_cast<RankedTensorType>(convert->getOperand(0).getType());
  auto to = dyn_cast<RankedTensorType>(convert->getResult(0).getType());
  return from && to && from.getEncoding() && to.getEncoding() &&
         cvtReordersRegisters(from, to);
}

std::optional<Kind> kperf::classifyOp(Operation *op) {
  StringRef name = op->getName().getStringRef();
  // Without an initial value an allocation is only an address.
  if ((name == "ttg.local_alloc" || name == "ttng.tmem_alloc") &&
      op->getNumOperands() == 0)
    return std::nullopt;
  if (name == "ttg.convert_layout" && isRenaming(op))
    return std::nullopt;
  bool isTensorMath =
      (name.starts_with("arith.") || name.starts_with("math.")) &&
      name != "arith.constant" &&
      llvm::any_of(op->getResultTypes(), llvm::IsaPred<ShapedType>);
  return isTensorMath ? Kind::Compute : kindOfName(name);
}

bool kperf::continuesRegion(Kind kind, Operation *next) {
  switch (kind) {
  case Kind::AsyncCopy:
    return isNamed(next, "ttg.async_commit_group");
  case Kind::Tcgen05:
    return isNamed(next, "ttng.tc_gen5_commit");
  case Kind::AsyncWait: // A record between two waits would cost a barrier.
  case Kind::WgmmaWait:
  case Kind::MbarrierWait:
  case Kind::Barrier:
  case Kind::LocalLoad:
  case Kind::LocalStore:
  case Kind::ConvertLayout:
  case Kind::Compute:
    return classifyOp(next) == kind;
  default:
    return false;
  }
}

/// Constants, and changes of view.
static bool isView(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (llvm::StringSwitch<bool>(name)
          .Cases({"arith.constant", "tt.splat", "tt.unsplat", "tt.broadcast",
                  "tt.expand_dims", "tt.trans", "tt.get_program_id",
                  "tt.get_num_programs", "ub.poison"},
                 true)
          .Cases({"ttg.memdesc_index", "ttg.memdesc_subslice",
                  "ttg.memdesc_trans", "ttg.memdesc_reshape",
                  "ttg.memdesc_reinterpret", "ttg.local_dealloc",
                  "ttng.tmem_subslice", "ttg.warp_id"},
                 true)
          .Default(false))
    return true;
  if (name == "ttg.convert_layout")
    return isRenaming(op);
  return (name == "ttg.local_alloc" || name == "ttng.tmem_alloc") &&
         op->getNumOperands() == 0;
}

bool kperf::isTransparent(Operation *op) {
  if (isView(op))
    return true;
  StringRef name = op->getName().getStringRef();
  if (!name.starts_with("arith.") && name != "tt.addptr")
    return false;
  return llvm::none_of(op->getResultTypes(), llvm::IsaPred<ShapedType>);
}

bool kperf::costsNothing(Operation *op) {
  return isView(op) || isControlFlow(op) ||
         op == op->getBlock()->getTerminator();
}

bool kperf::isArithmetic(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (classifyOp(op) == Kind::Compute || costsNothing(op) ||
      name.starts_with("arith.") || name.starts_with("math."))
    return true;
  return llvm::StringSwitch<bool>(name)
      .Cases({"tt.addptr", "tt.make_range", "tt.reshape", "tt.join", "tt.split",
              "tt.cat", "tt.bitcast", "tt.int_to_ptr", "tt.ptr_to_int"},
             true)
      .Cases({"tt.mulhiui", "tt.precise_sqrt", "tt.precise_divf"}, true)
      .Default(false);
}

bool kperf::isLoop(Operation *op) {
  return isNamed(op, "scf.for") || isNamed(op, "scf.while");
}

bool kperf::isControlFlow(Operation *op) {
  StringRef name = op->getName().getStringRef();
  return name.starts_with("scf.") || name == "ttg.warp_specialize";
}
