//===- InsertRegions.cpp - Put records around the operations of a kernel --===//
//
// Owns where records go and how regions are named. Which operations deserve a
// region is RegionKinds; which line they come from is SourceNames.
//
//===----------------------------------------------------------------------===//

#include "passes/ForeignOps.h"
#include "passes/Options.h"
#include "passes/RegionKinds.h"
#include "passes/SourceNames.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

namespace mlir::kperf {
#define GEN_PASS_DEF_INSERTREGIONS
#include "Passes.h.inc"

namespace {

/// The kinds that the option `regions` selects.
class Selection {
public:
  bool contains(Kind kind) const {
    return kinds.empty() || llvm::is_contained(kinds, kind);
  }
  /// Returns the word that is no kind, or nothing.
  std::optional<StringRef> parse(ArrayRef<std::string> words) {
    for (StringRef word : words) {
      std::optional<Kind> kind = symbolizeKind(word);
      if (!kind)
        return word;
      kinds.push_back(*kind);
    }
    return std::nullopt;
  }

private:
  SmallVector<Kind> kinds; // Empty: all.
};

/// Hands out names that are unique within the kernel, in program order.
class Names {
public:
  std::string make(Kind kind, Location loc) {
    SourcePlace place = findSource(loc);
    std::string base = stringifyKind(kind).str();
    if (!place.file.empty())
      base = llvm::formatv("{0} {1}:{2}", base,
                           llvm::sys::path::filename(place.file), place.line);
    unsigned count = ++counts[base];
    return count == 1 ? base : llvm::formatv("{0}#{1}", base, count).str();
  }

private:
  llvm::StringMap<unsigned> counts;
};

class Inserter {
public:
  Inserter(const Selection &selection, FunctionOpInterface kernel)
      : selection(selection), kernel(kernel) {}

  void run() {
    instrument(kernel.getFunctionBody());
    recordKernel(kernel.getFunctionBody());
  }

private:
  void record(OpBuilder &builder, Location loc, Edge edge, StringRef name,
              Kind kind, StringRef origin) {
    StringAttr originAttr;
    if (edge == Edge::Start)
      originAttr = builder.getStringAttr(origin);
    RecordOp::create(builder, loc, edge, name, kind, originAttr);
  }

  /// Puts a region of `kind` around everything from `first` to `last`.
  void enclose(Operation *first, Operation *last, Kind kind) {
    std::string name = names.make(kind, first->getLoc());
    StringRef origin = first->getName().getStringRef();
    OpBuilder builder(first);
    record(builder, first->getLoc(), Edge::Start, name, kind, origin);
    builder.setInsertionPointAfter(last);
    record(builder, last->getLoc(), Edge::End, name, kind, origin);
  }

  /// The region of the kernel, or of what a partition does of it.
  void recordKernel(Region &region) {
    if (!selection.contains(Kind::Kernel))
      return;
    StringRef name = kernel.getName(), origin = "tt.func";
    Location loc = kernel.getLoc();
    OpBuilder builder = OpBuilder::atBlockBegin(&region.front());
    record(builder, loc, Edge::Start, name, Kind::Kernel, origin);
    for (Block &block : region) {
      if (block.getNumSuccessors() != 0)
        continue;
      builder.setInsertionPoint(block.getTerminator());
      record(builder, loc, Edge::End, name, Kind::Kernel, origin);
    }
  }

  void recordLoop(Operation *loop) {
    if (selection.contains(Kind::Loop))
      enclose(loop, loop, Kind::Loop);
    // Without the loop's end, nothing would close the last iteration.
    if (!selection.contains(Kind::Iteration) || !selection.contains(Kind::Loop))
      return;
    Block &body = loop->getRegions().back().front();
    OpBuilder builder = OpBuilder::atBlockBegin(&body);
    record(builder, loop->getLoc(), Edge::Start,
           names.make(Kind::Iteration, loop->getLoc()), Kind::Iteration,
           loop->getName().getStringRef());
  }

  void instrument(Region &region) {
    for (Block &block : region)
      for (Operation *op = &block.front(); op; op = op->getNextNode())
        op = instrument(op);
  }

  /// Returns the last operation that has been taken care of.
  Operation *instrument(Operation *op) {
    if (isNamed(op, "scf.for") || isNamed(op, "scf.while")) {
      recordLoop(op);
      Operation *end = selection.contains(Kind::Loop) ? op->getNextNode() : op;
      llvm::for_each(op->getRegions(), [&](Region &r) { instrument(r); });
      return end;
    }
    if (isNamed(op, "ttg.warp_specialize")) {
      SmallVector<Region *> regions = listWarpRegions(op);
      for (auto [index, region] : llvm::enumerate(regions)) {
        bool isIdle =
            llvm::hasSingleElement(region->front()) && region->hasOneBlock();
        if (index != 0 && isIdle)
          continue; // Warps that only fill up the last warp group.
        instrument(*region);
        if (index != 0)
          recordKernel(*region);
      }
      return op;
    }
    if (isControlFlow(op)) {
      llvm::for_each(op->getRegions(), [&](Region &r) { instrument(r); });
      return op;
    }
    std::optional<Kind> kind = classifyOp(op);
    if (!kind || !selection.contains(*kind))
      return op;
    Operation *last = op;
    for (Operation *next = op->getNextNode(); next; next = next->getNextNode())
      if (continuesRegion(*kind, next))
        last = next;
      else if (!isTransparent(next))
        break;
    enclose(op, last, *kind);
    return last->getNextNode();
  }

  const Selection &selection;
  FunctionOpInterface kernel;
  Names names;
};

struct InsertRegions : impl::InsertRegionsBase<InsertRegions> {
  explicit InsertRegions(SmallVector<std::string> regions)
      : regions(std::move(regions)) {}

  void runOnOperation() override {
    Selection selection;
    if (std::optional<StringRef> word = selection.parse(regions)) {
      getOperation().emitError()
          << "kperf-insert-regions: '" << *word
          << "' is no kind of region; see docs/contracts.md, 3 (regions)";
      return signalPassFailure();
    }
    FailureOr<FunctionOpInterface> kernel = findKernel(getOperation());
    if (failed(kernel))
      return signalPassFailure();
    Inserter(selection, *kernel).run();
  }

  SmallVector<std::string> regions;
};

} // namespace

std::unique_ptr<Pass> createInsertRegions(OptionTexts texts) {
  OptionReader reader("kperf-insert-regions", texts);
  SmallVector<std::string> regions;
  reader.readList("regions", regions);
  if (std::unique_ptr<Pass> rejected = reader.reject())
    return rejected;
  return std::make_unique<InsertRegions>(std::move(regions));
}

} // namespace mlir::kperf
