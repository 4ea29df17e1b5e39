//===- FillGaps.cpp - Name what lies between two records ------------------===//
//
// Owns what is said of the time between two records that no region of an
// operation covers: which operations lie there, and what that is called. Where
// records go is decided before; this adds no time that is taken.
//
//===----------------------------------------------------------------------===//

#include "passes/ForeignOps.h"
#include "passes/Options.h"
#include "passes/RegionKinds.h"
#include "passes/RegionPolicy.h"
#include "passes/RegionTree.h"
#include "passes/SourceNames.h"
#include "passes/Unverified.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace mlir::kperf {
#define GEN_PASS_DEF_FILLGAPS
#include "Passes.h.inc"

namespace {

bool isRecord(Operation *op) { return isa<RecordOp, MarkOp>(op); }

/// What is executed after a record and before the next one, on all paths.
struct Gap {
  Operation *after;                    // The record.
  Operation *heaviest = nullptr;       // Computes the most elements.
  Operation *loop = nullptr;           // Whose border ends it.
  bool isArithmetic = true;            // Nothing else is in it.
  SmallVector<Operation *> ends;       // The records that may come next.
  SmallPtrSet<Operation *, 8> visited; // Where its stretches begin.
  SmallVector<Operation *> waiting;    // Stretches that remain to be followed.
  uint64_t mostElements = 0;
  llvm::MapVector<std::pair<StringRef, unsigned>, uint64_t> elementsOfLine;
};

/// Elements that an operation computes, or stores: at least one.
uint64_t countElements(Operation *op) {
  uint64_t most = 1;
  auto count = [&](TypeRange types) {
    for (Type type : types)
      if (auto tensor = dyn_cast<RankedTensorType>(type)) {
        uint64_t elements = 1;
        for (int64_t size : tensor.getShape())
          elements *= static_cast<uint64_t>(std::max<int64_t>(size, 1));
        most = std::max(most, elements);
      }
  };
  count(op->getResultTypes());
  count(op->getOperandTypes());
  return most;
}

class GapFinder {
public:
  GapFinder(FunctionOpInterface kernel, const RegionTree &tree)
      : kernel(kernel), tree(tree) {
    kernel->walk([&](Operation *op) {
      if (isRecord(op))
        for (Operation *up = op->getParentOp(); up != kernel;
             up = up->getParentOp())
          recording.insert(up);
    });
  }

  /// The gap behind `record`; null if there is nothing to be said of it.
  std::optional<Gap> find(Operation *record) {
    std::optional<uint32_t> around = findAround(record);
    if (!around || record->hasAttr(kStampAttribute) || sharesStamp(record))
      return std::nullopt;
    Gap gap{record};
    gap.waiting.push_back(record->getNextNode());
    while (!gap.waiting.empty()) {
      Operation *begin = gap.waiting.pop_back_val();
      if (gap.visited.insert(begin).second && !follow(begin, gap))
        return std::nullopt;
    }
    // To enter a loop or to go round takes instructions: its bounds, its
    // branch, and what brings the values that it carries into place.
    if (!gap.heaviest)
      gap.heaviest = gap.loop;
    if (!gap.heaviest || fillsScope(gap, *around))
      return std::nullopt;
    return gap;
  }

private:
  /// The innermost region that is open behind `record`, if it is one that holds
  /// others; a region of an operation has its time itself.
  std::optional<uint32_t> findAround(Operation *record) const {
    std::optional<uint32_t> id = tree.getId(record);
    if (!id)
      return std::nullopt; // No path leads here.
    auto border = dyn_cast<RecordOp>(record);
    if (!border || border.getEdge() == Edge::End) {
      int32_t parent = tree.getRegions()[*id].parent;
      if (parent < 0)
        return std::nullopt;
      id = static_cast<uint32_t>(parent);
    }
    switch (tree.getRegions()[*id].kind) {
    case Kind::Kernel:
    case Kind::Loop:
    case Kind::Iteration:
    case Kind::Prologue:
    case Kind::Epilogue:
    case Kind::User:
      return id;
    default:
      return std::nullopt;
    }
  }

  /// True if nothing lies between `record` and the next one.
  static bool sharesStamp(Operation *record) {
    Operation *next = record->getNextNode();
    while (next && isTransparent(next))
      next = next->getNextNode();
    return next && isRecord(next);
  }

  /// A scope that holds nothing else has the name that its user gave.
  bool fillsScope(const Gap &gap, uint32_t around) const {
    auto start = dyn_cast<RecordOp>(gap.after);
    return start && start.getEdge() == Edge::Start &&
           start.getKind() == Kind::User &&
           llvm::all_of(gap.ends, [&](Operation *op) {
             auto end = dyn_cast<RecordOp>(op);
             return end && end.getEdge() == Edge::End &&
                    tree.getId(op) == around;
           });
  }

  /// Follows a block from `begin` to a record or to where control leaves it.
  /// False if it may come there past a loop's border that is not recorded: an
  /// iteration that is left out would then be part of the gap.
  bool follow(Operation *begin, Gap &gap) {
    for (Operation *op = begin; op; op = op->getNextNode()) {
      if (isRecord(op)) {
        gap.ends.push_back(op);
        return true;
      }
      if (recording.contains(op))
        return enter(op, gap);
      if (op == op->getBlock()->getTerminator())
        return leave(op, gap);
      op->walk([&](Operation *inner) { add(inner, gap); });
    }
    return true;
  }

  bool enter(Operation *op, Gap &gap) {
    if (isNamed(op, "ttg.warp_specialize")) // Partitions are other warps.
      return goTo(listWarpRegions(op).front()->front(), gap);
    if (isNamed(op, "scf.for"))
      return crossInto(op, op->getRegion(0), gap) && goBehind(op, gap);
    if (isNamed(op, "scf.while"))
      return goTo(op->getRegion(0).front(), gap);
    for (Region &region : op->getRegions()) {
      if (region.empty())
        goBehind(op, gap);
      else
        goTo(region.front(), gap);
    }
    return true;
  }

  bool leave(Operation *terminator, Gap &gap) {
    for (Block *successor : terminator->getSuccessors())
      goTo(*successor, gap);
    Operation *parent = terminator->getParentOp();
    if (terminator->getNumSuccessors() != 0 || parent == kernel ||
        !recording.contains(parent))
      return true;
    if (isNamed(parent, "scf.for"))
      return crossInto(parent, parent->getRegion(0), gap) &&
             goBehind(parent, gap);
    if (!isNamed(parent, "scf.while"))
      return isNamed(parent, "ttg.warp_specialize.partitions") ||
             goBehind(parent, gap);
    if (terminator->getParentRegion() == &parent->getRegion(0))
      return crossInto(parent, parent->getRegion(1), gap) &&
             goBehind(parent, gap);
    return goTo(parent->getRegion(0).front(), gap);
  }

  static bool goTo(Block &block, Gap &gap) {
    gap.waiting.push_back(&block.front());
    return true;
  }

  /// Behind a loop, too, a record has to follow.
  static bool goBehind(Operation *op, Gap &gap) {
    Operation *next = op->getNextNode();
    if (isLoop(op) && !(next && isRecord(next)))
      return false;
    gap.waiting.push_back(next);
    return true;
  }

  static bool crossInto(Operation *loop, Region &body, Gap &gap) {
    Operation *first = &body.front().front();
    if (!isRecord(first))
      return false;
    gap.loop = loop;
    gap.ends.push_back(first);
    return true;
  }

  static void add(Operation *op, Gap &gap) {
    if (costsNothing(op))
      return;
    gap.isArithmetic &= isArithmetic(op);
    SourcePlace place = findSource(op->getLoc());
    uint64_t &elements = gap.elementsOfLine[{place.file, place.line}];
    elements += countElements(op);
    // Of a line, its first operation says what is done there.
    if (elements <= gap.mostElements)
      return;
    gap.mostElements = elements;
    bool isSameLine = false;
    if (gap.heaviest) {
      SourcePlace known = findSource(gap.heaviest->getLoc());
      isSameLine = known.file == place.file && known.line == place.line;
    }
    if (!isSameLine)
      gap.heaviest = op;
  }

  Operation *kernel;
  const RegionTree &tree;
  SmallPtrSet<Operation *, 16> recording; // Operations with records inside.
};

struct FillGaps : Unverified<impl::FillGapsBase<FillGaps>> {
  explicit FillGaps(SmallVector<std::string> regions)
      : regions(std::move(regions)) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<RegionPolicy> policy =
        RegionPolicy::read(regions, module, "kperf-fill-gaps");
    if (failed(policy))
      return signalPassFailure();
    FailureOr<FunctionOpInterface> kernel = findKernel(module);
    if (failed(kernel))
      return signalPassFailure();
    FailureOr<RegionTree> tree = RegionTree::build(*kernel);
    if (failed(tree))
      return signalPassFailure();
    if (!policy->contains(Kind::Between))
      return markAllAnalysesPreserved();

    RegionNames names;
    for (const RecordedRegion &region : tree->getRegions())
      names.take(region.name);
    GapFinder finder(*kernel, *tree);
    std::vector<Gap> gaps;
    kernel->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isRecord(op))
        if (std::optional<Gap> gap = finder.find(op))
          gaps.push_back(std::move(*gap));
    });
    for (const Gap &gap : gaps)
      insert(gap, names);
    leaveToNextVerifier();
  }

  static void insert(const Gap &gap, RegionNames &names) {
    Kind kind = gap.isArithmetic ? Kind::Compute : Kind::Between;
    Location loc = gap.heaviest->getLoc();
    OpBuilder builder(gap.after->getContext());
    builder.setInsertionPointAfter(gap.after);
    RecordOp::create(
        builder, loc, Edge::Gap, names.make(stringifyKind(kind), loc), kind,
        builder.getStringAttr(gap.heaviest->getName().getStringRef()));
  }

  SmallVector<std::string> regions;
};

} // namespace

std::unique_ptr<Pass> createFillGaps(OptionTexts texts) {
  OptionReader reader("kperf-fill-gaps", texts);
  SmallVector<std::string> regions;
  reader.readList("regions", regions);
  if (std::unique_ptr<Pass> rejected = reader.reject())
    return rejected;
  return std::make_unique<FillGaps>(std::move(regions));
}

} // namespace mlir::kperf
