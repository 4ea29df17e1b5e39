//===- IterationSelection.cpp - Which iterations of a loop are recorded ---===//

#include "passes/IterationSelection.h"

#include "passes/ForeignOps.h"
#include "passes/RegionKinds.h"
#include "passes/SourceNames.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::kperf;

/// Codes of `arith.cmpi`.
static constexpr int64_t kEqual = 0, kUnsignedLess = 6;

/// Operands of `scf.for`.
static constexpr unsigned kLowerBound = 0, kStep = 2;

static std::optional<int64_t> getConstant(Value value) {
  Operation *op = value.getDefiningOp();
  auto constant = op ? op->getAttrOfType<IntegerAttr>("value") : IntegerAttr();
  if (!constant || !isNamed(op, "arith.constant"))
    return std::nullopt;
  return constant.getValue().getSExtValue();
}

static bool holds(Operation *loop, function_ref<bool(Operation *)> isWanted) {
  return loop
      ->walk([&](Operation *op) {
        return isWanted(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

IterationSelection::IterationSelection(IterationRange range,
                                       FunctionOpInterface kernel)
    : range(range) {
  if (range.isEvery())
    return;
  kernel->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isLoop(op))
      choose(op);
  });
}

void IterationSelection::choose(Operation *loop) {
  if (!holds(loop, [](Operation *op) { return isa<RecordOp, MarkOp>(op); }))
    return;
  if (!isNamed(loop, "scf.for"))
    return note(loop, "each iteration is recorded: the loop does not count");
  if (getConstant(loop->getOperand(kStep)).value_or(0) <= 0)
    return note(loop, "each iteration is recorded: its step is not a constant");
  if (holds(loop,
            [](Operation *op) { return isNamed(op, "ttg.warp_specialize"); }))
    return note(loop, "each iteration is recorded: roles begin inside it");
  loops.insert(loop);
  std::string text = llvm::formatv("recorded are iterations {0}:{1}:{2}; the "
                                   "others are time of the loop's own",
                                   range.first, range.last, range.step);
  note(loop, text);
  Block &body = loop->getRegion(0).front();
  for (auto record : body.getOps<RecordOp>()) {
    if (record.getKind() != Kind::Iteration)
      continue;
    OpBuilder builder(body.getTerminator());
    RecordOp::create(builder, record.getLoc(), Edge::End, record.getRegion(),
                     Kind::Iteration, StringAttr());
    starts.push_back(record);
    return;
  }
}

void IterationSelection::note(Operation *loop, StringRef text) {
  notes.push_back(describePlace("loop", loop->getLoc()) + ": " + text.str());
}

bool IterationSelection::mayLeaveOut(Operation *op) const {
  for (Operation *up = op->getParentOp(); up; up = up->getParentOp())
    if (contains(up))
      return true;
  return false;
}

namespace {
/// Operations at the begin of a loop's body.
struct Arithmetic {
  explicit Arithmetic(Operation *loop)
      : builder(OpBuilder::atBlockBegin(&loop->getRegion(0).front())),
        loc(loop->getLoc()) {}

  Value constant(int64_t value, Type type) {
    Attribute attribute = builder.getIntegerAttr(type, value);
    return createNamed(builder, loc, "arith.constant", type, {},
                       builder.getNamedAttr("value", attribute))
        ->getResult(0);
  }
  Value binary(StringRef name, Value a, Value b) {
    return createNamed(builder, loc, name, a.getType(), {a, b})->getResult(0);
  }
  Value binary(StringRef name, Value a, int64_t b) {
    return binary(name, a, constant(b, a.getType()));
  }
  Value compare(int64_t predicate, Value a, int64_t b) {
    Value right = constant(b, a.getType());
    Attribute code = builder.getI64IntegerAttr(predicate);
    return createNamed(builder, loc, "arith.cmpi", builder.getI1Type(),
                       {a, right}, builder.getNamedAttr("predicate", code))
        ->getResult(0);
  }

  OpBuilder builder;
  Location loc;
};
} // namespace

/// Which iteration it is, counted from 0.
static Value makeNumber(Arithmetic &make, Operation *loop) {
  Value variable = loop->getRegion(0).front().getArgument(0);
  Value lower = loop->getOperand(kLowerBound);
  bool isFromZero = getConstant(lower) == 0;
  Value distance =
      isFromZero ? variable : make.binary("arith.subi", variable, lower);
  int64_t step = getConstant(loop->getOperand(kStep)).value_or(1);
  return step == 1 ? distance : make.binary("arith.divui", distance, step);
}

Value IterationSelection::makePredicate(Operation *loop, Value around) const {
  Arithmetic make(loop);
  Value number = makeNumber(make, loop);
  Value since =
      range.first ? make.binary("arith.subi", number, range.first) : number;
  Value result = around;
  auto require = [&](Value condition) {
    result = result ? make.binary("arith.andi", result, condition) : condition;
  };
  // What is before the first one has wrapped around.
  uint32_t count = range.last ? range.last - range.first
                              : std::numeric_limits<int32_t>::max();
  if (range.first || range.last)
    require(make.compare(kUnsignedLess, since, count));
  if (range.step != 1)
    require(
        make.compare(kEqual, make.binary("arith.remui", since, range.step), 0));
  return result;
}
