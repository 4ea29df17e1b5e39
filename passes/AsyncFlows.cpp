//===- AsyncFlows.cpp - Which wait completes which asynchronous work ------===//

#include "passes/AsyncFlows.h"

#include "passes/ForeignOps.h"
#include "passes/MemoryViews.h"
#include "passes/RegionKinds.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::kperf;

namespace {

enum class Role {
  None,
  Issue,        // Belongs to the group that the next commit closes.
  IssueCommit,  // Is a group of its own.
  Commit,       // Closes a group.
  Wait,         // For all but so many groups.
  BarrierIssue, // Completes on a barrier.
  BarrierWait,
  Memory, // Where a barrier is allocated says which executions count apart.
};

struct Part {
  Role role = Role::None;
  StringRef queue; // Of commit groups.
};

/// One flow while it is collected.
struct Flow {
  StringRef via;
  int32_t slots = 1;
  int32_t scope = -1;
  bool isValid = true;
  llvm::MapVector<uint32_t, int32_t> issue, wait; // Region to count.
};

} // namespace

static Part findPart(Operation *op) {
  return llvm::StringSwitch<Part>(op->getName().getStringRef())
      .Case("ttg.async_copy_global_to_local", {Role::Issue, "cp.async"})
      .Case("ttg.async_commit_group", {Role::Commit, "cp.async"})
      .Case("ttg.async_wait", {Role::Wait, "cp.async"})
      .Case("ttng.warp_group_dot", {Role::IssueCommit, "wgmma"})
      .Case("ttng.warp_group_dot_wait", {Role::Wait, "wgmma"})
      .Cases({"ttng.async_tma_copy_local_to_global", "ttng.async_tma_reduce",
              "ttng.async_tma_scatter"},
             {Role::IssueCommit, "bulk"})
      .Case("ttng.async_tma_store_wait", {Role::Wait, "bulk"})
      .Cases({"ttng.async_tma_copy_global_to_local", "ttng.async_tma_gather",
              "ttng.tc_gen5_mma", "ttng.tc_gen5_mma_scaled",
              "ttng.tc_gen5_commit"},
             {Role::BarrierIssue, ""})
      .Case("ttng.wait_barrier", {Role::BarrierWait, ""})
      .Default({isAllocation(op) ? Role::Memory : Role::None, ""});
}

bool kperf::isAsync(Operation *op) { return findPart(op).role != Role::None; }

static int32_t getCount(Operation *op, StringRef name) {
  auto attribute = dyn_cast_or_null<IntegerAttr>(op->getAttr(name));
  return attribute ? static_cast<int32_t>(attribute.getInt()) : 0;
}

static bool isTrue(Value value) {
  Operation *op = value.getDefiningOp();
  auto constant = op ? op->getAttrOfType<IntegerAttr>("value") : IntegerAttr();
  return constant && !constant.getValue().isZero();
}

/// Whether `op` may do nothing where it executes: predicates of what happens to
/// a barrier come behind it.
static bool isPredicated(Operation *op) {
  auto behind = llvm::make_range(llvm::find_if(op->getOperands(), isBarrier),
                                 op->operand_end());
  return llvm::any_of(behind, [](Value operand) {
    return operand.getType().isInteger(1) && !isTrue(operand);
  });
}

/// Loops around `op` that are not around `outside`.
static unsigned countLoops(Operation *op, Operation *outside) {
  unsigned loops = 0;
  for (Operation *up = op->getParentOp(); up && !up->isAncestor(outside);
       up = up->getParentOp())
    loops += isLoop(up);
  return loops;
}

namespace {

class FlowFinder {
public:
  FlowFinder(ArrayRef<PlacedOp> operations,
             function_ref<bool(uint32_t)> isOwnRegion)
      : operations(operations), isOwnRegion(isOwnRegion) {
    for (PlacedOp placed : operations)
      if (placed.region)
        regionOf[placed.op] = *placed.region;
  }

  SmallVector<Flow> run() {
    for (PlacedOp placed : operations)
      add(placed);
    for (PlacedOp placed : operations)
      if (findPart(placed.op).role == Role::BarrierWait)
        addWait(placed);
    if (!operations.empty())
      leaveOutCallees(operations.front().op);
    SmallVector<Flow> flows;
    for (auto &[queue, flow] : groups)
      flows.push_back(flow);
    for (auto &[key, flow] : barriers)
      if (knowsBarriers)
        flows.push_back(flow);
    llvm::erase_if(flows, [](const Flow &flow) {
      return !flow.isValid || flow.issue.empty() || flow.wait.empty();
    });
    return flows;
  }

private:
  using Key = std::pair<Operation *, Operation *>; // Barrier, buffer.

  void add(PlacedOp placed) {
    Part part = findPart(placed.op);
    switch (part.role) {
    case Role::Issue:
      return note(groups[part.queue], &Flow::issue, placed, 0);
    case Role::IssueCommit:
      // Without `isAsync`, it is complete when the operation ends.
      if (part.queue == "wgmma" && !getCount(placed.op, "isAsync"))
        groups[part.queue].isValid = false;
      return note(groups[part.queue], &Flow::issue, placed, 1);
    case Role::Commit:
      return note(groups[part.queue], &Flow::issue, placed, 1);
    case Role::Wait:
      return addGroupWait(part.queue, placed);
    case Role::BarrierIssue:
      return addIssue(placed);
    default:
      return;
    }
  }

  /// Adds to what one execution of the region does.
  void note(Flow &flow, llvm::MapVector<uint32_t, int32_t> Flow::*side,
            PlacedOp placed, int32_t count) {
    if (flow.via.empty())
      flow.via = "commit_group";
    if (isOwn(flow, placed))
      (flow.*side)[*placed.region] += count;
  }

  bool isOwn(Flow &flow, PlacedOp placed) {
    flow.isValid &= placed.region && isOwnRegion(*placed.region);
    return flow.isValid;
  }

  /// Of several waits in one region, the one for most groups counts.
  void addGroupWait(StringRef queue, PlacedOp placed) {
    Flow &flow = groups[queue];
    if (!isOwn(flow, placed))
      return;
    int32_t pending = getCount(placed.op, "num") + // One of the two is there.
                      getCount(placed.op, "pendings");
    auto [known, isNew] = flow.wait.insert({*placed.region, pending});
    known->second = std::min(known->second, pending);
  }

  void addIssue(PlacedOp placed) {
    Operation *buffer = nullptr;
    for (Value operand : placed.op->getOperands())
      if (getMemory(operand) && !isBarrier(operand))
        buffer = findAllocation(operand); // The last one: what is written.
    for (Operation *barrier : listBarriers(placed.op)) {
      Flow &flow = barriers[{barrier, buffer}];
      flow.via = "mbarrier";
      ArrayRef<int64_t> shape = getMemory(barrier->getResult(0)).getShape();
      flow.slots = shape.size() > 1 ? static_cast<int32_t>(shape.front()) : 1;
      if (auto region = regionOf.find(barrier); region != regionOf.end())
        flow.scope = static_cast<int32_t>(region->second);
      note(flow, &Flow::issue, placed, 1);
      flow.isValid &= isCounted(placed.op, barrier);
    }
  }

  void addWait(PlacedOp placed) {
    for (Operation *barrier : listBarriers(placed.op))
      for (auto &[key, flow] : barriers)
        if (key.first == barrier) {
          note(flow, &Flow::wait, placed, 1);
          flow.isValid &= isCounted(placed.op, barrier);
        }
  }

  /// Allocations of the barriers that `op` uses.
  SmallVector<Operation *> listBarriers(Operation *op) {
    SmallVector<Operation *> allocations;
    for (Value operand :
         llvm::make_filter_range(op->getOperands(), isBarrier)) {
      Operation *barrier = findAllocation(operand);
      knowsBarriers &= barrier != nullptr;
      if (barrier)
        allocations.push_back(barrier);
    }
    return allocations;
  }

  /// Triton's pipeliner predicates the last iterations of a loop off. Of a loop
  /// in a loop they are not the last ones.
  static bool isCounted(Operation *op, Operation *barrier) {
    return !isPredicated(op) || countLoops(op, barrier) < 2;
  }

  /// Functions that are called have no records, but the same queues.
  void leaveOutCallees(Operation *inKernel) {
    auto kernel = inKernel->getParentOfType<FunctionOpInterface>();
    kernel->getParentOp()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      Part part = findPart(op);
      if (op == kernel)
        return WalkResult::skip();
      if (part.role == Role::BarrierIssue || part.role == Role::BarrierWait)
        knowsBarriers = false;
      else if (!part.queue.empty())
        groups[part.queue].isValid = false;
      return WalkResult::advance();
    });
  }

  ArrayRef<PlacedOp> operations;
  function_ref<bool(uint32_t)> isOwnRegion;
  DenseMap<Operation *, uint32_t> regionOf;
  llvm::MapVector<StringRef, Flow> groups; // In program order.
  llvm::MapVector<Key, Flow> barriers;
  bool knowsBarriers = true; // Of every operation, which one it uses.
};

} // namespace

static Attribute flatten(const llvm::MapVector<uint32_t, int32_t> &counts,
                         Builder &builder) {
  SmallVector<int32_t> pairs;
  for (auto [region, count] : counts)
    pairs.append({static_cast<int32_t>(region), count});
  return builder.getDenseI32ArrayAttr(pairs);
}

ArrayAttr kperf::findFlows(ArrayRef<PlacedOp> operations,
                           function_ref<bool(uint32_t)> isOwnRegion,
                           Builder &builder) {
  SmallVector<Attribute> flows;
  for (const Flow &flow : FlowFinder(operations, isOwnRegion).run())
    flows.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("via", builder.getStringAttr(flow.via)),
         builder.getNamedAttr("slots", builder.getI32IntegerAttr(flow.slots)),
         builder.getNamedAttr("scope", builder.getI32IntegerAttr(flow.scope)),
         builder.getNamedAttr("issue", flatten(flow.issue, builder)),
         builder.getNamedAttr("wait", flatten(flow.wait, builder))}));
  return builder.getArrayAttr(flows);
}
