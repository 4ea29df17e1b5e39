//===- AsyncFlows.cpp - Which wait completes which asynchronous work ------===//

#include "passes/AsyncFlows.h"

#include "passes/ForeignOps.h"

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
  Memory, // Where barriers and buffers are allocated.
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
      .Cases({"ttg.local_alloc", "ttng.tmem_alloc"}, {Role::Memory, ""})
      .Default({});
}

bool kperf::isAsync(Operation *op) { return findPart(op).role != Role::None; }

static int32_t getCount(Operation *op, StringRef name) {
  auto attribute = dyn_cast_or_null<IntegerAttr>(op->getAttr(name));
  return attribute ? static_cast<int32_t>(attribute.getInt()) : 0;
}

/// A view of memory: no tensor, but a type with a shape.
static ShapedType getMemory(Value value) {
  if (isa<RankedTensorType>(value.getType()))
    return {};
  return dyn_cast<ShapedType>(value.getType());
}

static bool isBarrier(Value value) {
  ShapedType type = getMemory(value);
  return type && type.getElementType().isInteger(64);
}

/// What a block argument or the result of a loop is at first.
static Value findIncoming(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    unsigned index = argument.getArgNumber();
    if (isNamed(parent, "scf.for") && index > 0)
      return parent->getOperand(index + 2); // Bounds and step come first.
    if (isNamed(parent, "scf.while") && index < parent->getNumOperands())
      return parent->getOperand(index);
    if (isNamed(parent, "ttg.warp_specialize.partitions")) {
      Operation *around = parent->getParentOp();
      Operation *holder = parent->getNumOperands() ? parent : around;
      if (index < holder->getNumOperands())
        return holder->getOperand(index);
    }
    return {};
  }
  auto result = cast<OpResult>(value);
  if (isNamed(result.getOwner(), "scf.for"))
    return result.getOwner()->getOperand(result.getResultNumber() + 3);
  return {};
}

/// The allocation that a view is of, or null.
static Operation *findAllocation(Value value) {
  for (unsigned step = 0; value && step < 64; ++step) {
    Operation *op = value.getDefiningOp();
    if (op && findPart(op).role == Role::Memory)
      return op;
    bool isView = op && op->getNumOperands() > 0 &&
                  op->getName().getStringRef().contains(".memdesc_");
    value = isView ? op->getOperand(0) : findIncoming(value);
  }
  return nullptr;
}

namespace {

class FlowFinder {
public:
  FlowFinder(ArrayRef<PlacedOp> operations,
             function_ref<bool(uint32_t)> isOwnRegion)
      : operations(operations), isOwnRegion(isOwnRegion) {
    for (PlacedOp placed : operations)
      regionOf[placed.op] = placed.region;
  }

  SmallVector<Flow> run() {
    for (PlacedOp placed : operations)
      add(placed);
    for (PlacedOp placed : operations)
      if (findPart(placed.op).role == Role::BarrierWait)
        addWait(placed);
    SmallVector<Flow> flows;
    for (auto &[queue, flow] : groups)
      flows.push_back(flow);
    for (auto &[key, flow] : barriers)
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
    flow.isValid &= isOwnRegion(placed.region);
    if (flow.via.empty())
      flow.via = "commit_group";
    (flow.*side)[placed.region] += count;
  }

  /// Of several waits in one region, the one for most groups counts.
  void addGroupWait(StringRef queue, PlacedOp placed) {
    Flow &flow = groups[queue];
    int32_t pending = getCount(placed.op, "num") + // One of the two is there.
                      getCount(placed.op, "pendings");
    auto [known, isNew] = flow.wait.insert({placed.region, pending});
    known->second = std::min(known->second, pending);
    flow.isValid &= isOwnRegion(placed.region);
  }

  void addIssue(PlacedOp placed) {
    Operation *buffer = nullptr;
    for (Value operand : placed.op->getOperands())
      if (getMemory(operand) && !isBarrier(operand))
        buffer = findAllocation(operand); // The last one: what is written.
    for (Value operand : placed.op->getOperands()) {
      Operation *barrier =
          isBarrier(operand) ? findAllocation(operand) : nullptr;
      if (!barrier)
        continue;
      Flow &flow = barriers[{barrier, buffer}];
      flow.via = "mbarrier";
      ArrayRef<int64_t> shape = getMemory(barrier->getResult(0)).getShape();
      flow.slots = shape.size() > 1 ? static_cast<int32_t>(shape.front()) : 1;
      if (auto region = regionOf.find(barrier); region != regionOf.end())
        flow.scope = static_cast<int32_t>(region->second);
      note(flow, &Flow::issue, placed, 1);
    }
  }

  void addWait(PlacedOp placed) {
    for (Value operand : placed.op->getOperands()) {
      Operation *barrier =
          isBarrier(operand) ? findAllocation(operand) : nullptr;
      for (auto &[key, flow] : barriers)
        if (barrier && key.first == barrier)
          note(flow, &Flow::wait, placed, 1);
    }
  }

  ArrayRef<PlacedOp> operations;
  function_ref<bool(uint32_t)> isOwnRegion;
  DenseMap<Operation *, uint32_t> regionOf;
  llvm::MapVector<StringRef, Flow> groups; // In program order.
  llvm::MapVector<Key, Flow> barriers;
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
