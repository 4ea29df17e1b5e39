//===- InsertScopes.cpp - Put records around the user's scopes ------------===//
//
// Owns where a scope of the source begins and ends among the operations that
// Triton made of it. How scopes travel is ScopeTags.
//
//===----------------------------------------------------------------------===//

#include "Dialect/KPerf/KPerf.h"
#include "passes/ForeignOps.h"
#include "passes/Options.h"
#include "passes/RegionKinds.h"
#include "passes/ScopeTags.h"
#include "passes/Unverified.h"

namespace mlir::kperf {
#define GEN_PASS_DEF_INSERTSCOPES
#include "Passes.h.inc"

namespace {

/// Records the scopes of one kernel. A scope is closed by construction: its
/// records stand before and behind a run of operations of one block.
class ScopeInserter {
public:
  explicit ScopeInserter(ScopeTags &tags) : tags(tags) {}

  void run(Region &region, ArrayRef<Scope> open) {
    for (Block &block : region)
      if (!block.empty())
        run(&block.front(), block.getTerminator(), open);
  }

private:
  /// From `first` up to `end`; the scopes in `open` are open there.
  void run(Operation *first, Operation *end, ArrayRef<Scope> open) {
    for (Operation *op = first; op != end; op = op->getNextNode()) {
      ArrayRef<Scope> inside = getScopesInside(op, open);
      if (inside.empty()) {
        descend(op, open);
        continue;
      }
      if (isTransparent(op))
        continue; // A constant that went somewhere else begins nothing.
      SmallVector<Scope> nowOpen(open);
      nowOpen.push_back(inside.front());
      Operation *behind = enclose(op, findLast(op, end, open), inside.front());
      run(op, behind, nowOpen);
      op = behind;
    }
  }

  void descend(Operation *op, ArrayRef<Scope> open) {
    if (isNamed(op, "ttg.warp_specialize")) {
      for (auto [index, region] : llvm::enumerate(listWarpRegions(op)))
        run(*region, index == 0 ? open : ArrayRef<Scope>());
      return; // The warps of a partition have nothing open.
    }
    if (isControlFlow(op))
      for (Region &region : op->getRegions())
        run(region, open);
  }

  /// Scopes around `op` inside those that are open; none if it came here from
  /// elsewhere.
  ArrayRef<Scope> getScopesInside(Operation *op, ArrayRef<Scope> open) {
    ArrayRef<Scope> path = tags.getPath(op->getLoc());
    if (path.size() < open.size() || path.take_front(open.size()) != open)
      return {};
    return path.drop_front(open.size());
  }

  /// The last operation of the run that `first` begins. What only computes may
  /// be in between, whatever it belongs to: compilers move such operations.
  Operation *findLast(Operation *first, Operation *end, ArrayRef<Scope> open) {
    Scope scope = getScopesInside(first, open).front();
    Operation *last = first;
    for (Operation *op = first->getNextNode(); op != end;
         op = op->getNextNode()) {
      if (isTransparent(op))
        continue;
      ArrayRef<Scope> inside = getScopesInside(op, open);
      if (!inside.empty() && inside.front() == scope)
        last = op;
      else if (!inside.empty() || classifyOp(op) || op->getNumRegions() != 0 ||
               isa<KPerfDialect>(op->getDialect()))
        break;
    }
    return last;
  }

  /// Returns the record behind `last`.
  Operation *enclose(Operation *first, Operation *last, const Scope &scope) {
    Location loc = first->getLoc();
    if (scope.file)
      loc = FileLineColLoc::get(scope.file, scope.line, scope.column);
    OpBuilder builder(first);
    RecordOp::create(builder, loc, Edge::Start, scope.name, Kind::User,
                     builder.getStringAttr("scope"));
    builder.setInsertionPointAfter(last);
    return RecordOp::create(builder, loc, Edge::End, scope.name, Kind::User,
                            StringAttr());
  }

  ScopeTags &tags;
};

/// Replaces a mark's stand-in.
void insertMark(Operation *standIn, const SourceMark &mark) {
  OpBuilder builder(standIn);
  Value value = standIn->getNumOperands() ? standIn->getOperand(0) : Value();
  MarkOp::create(builder, standIn->getLoc(), mark.name, value, mark.isUnsigned);
  standIn->erase();
}

struct InsertScopes : Unverified<impl::InsertScopesBase<InsertScopes>> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<FunctionOpInterface> kernel = findKernel(module);
    if (failed(kernel))
      return signalPassFailure();
    ScopeTags tags;
    SmallVector<std::pair<Operation *, SourceMark>> marks;
    module->walk([&](Operation *op) {
      if (std::optional<SourceMark> mark = getMark(op))
        marks.emplace_back(op, *mark);
      (void)tags.getPath(op->getLoc()); // Remembers whether there are any.
    });
    if (!tags.found() && marks.empty())
      return markAllAnalysesPreserved();
    for (auto &[standIn, mark] : marks) {
      // What is called is not recorded.
      if (standIn->getParentOfType<FunctionOpInterface>() == *kernel)
        insertMark(standIn, mark);
      else
        standIn->erase();
    }
    leaveToNextVerifier();
    if (!tags.found())
      return;
    ScopeInserter(tags).run(kernel->getFunctionBody(), {});
    tags.strip(module);
  }
};

} // namespace

std::unique_ptr<Pass> createInsertScopes(OptionTexts texts) {
  OptionReader reader("kperf-insert-scopes", texts);
  if (std::unique_ptr<Pass> rejected = reader.reject())
    return rejected;
  return std::make_unique<InsertScopes>();
}

} // namespace mlir::kperf
