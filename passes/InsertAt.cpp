//===- InsertAt.cpp - Put records where a callback asked for them ---------===//
//
// The other half of kperf-list-operations: requests name operations by their
// numbers in that list.
//
//===----------------------------------------------------------------------===//

#include "Dialect/KPerf/KPerf.h"
#include "passes/OperationList.h"
#include "passes/Options.h"
#include "passes/ScopeTags.h"

#include "llvm/ADT/StringExtras.h"

namespace mlir::kperf {
#define GEN_PASS_DEF_INSERTAT
#include "Passes.h.inc"

namespace {

class Requests {
public:
  explicit Requests(const OperationList &list)
      : list(list), kernel(list.getKernel()) {}

  /// `<first>:<last>:<kind>:<name>`
  LogicalResult insertRegion(StringRef text) {
    SmallVector<StringRef, 4> parts;
    text.split(parts, ':', /*MaxSplit=*/3);
    Operation *first =
        parts.size() == 4 ? list.findOperation(parts[0]) : nullptr;
    Operation *last = first ? list.findOperation(parts[1]) : nullptr;
    std::optional<Kind> kind =
        last ? symbolizeKind(parts[2]) : std::optional<Kind>();
    if (!kind)
      return kernel->emitError("kperf-insert-at: cannot read region '")
             << text << "', expected first:last:kind:name";
    if (first->getBlock() != last->getBlock() ||
        (first != last && !first->isBeforeInBlock(last)))
      return first->emitError("kperf-insert-at: a region begins here and ends "
                              "at an operation that is not behind it in the "
                              "same block");
    if (!last->getNextNode())
      return last->emitError("kperf-insert-at: a region cannot end behind the "
                             "last operation of a block");
    std::string name = unescape(parts[3]);
    OpBuilder builder(first);
    RecordOp::create(builder, first->getLoc(), Edge::Start, name, *kind,
                     builder.getStringAttr(first->getName().getStringRef()));
    builder.setInsertionPointAfter(last);
    RecordOp::create(builder, last->getLoc(), Edge::End, name, *kind,
                     StringAttr());
    return success();
  }

  /// `<operation>:before|after:<name>[:<value>]`
  LogicalResult insertMark(StringRef text) {
    SmallVector<StringRef, 4> parts;
    text.split(parts, ':', /*MaxSplit=*/3);
    Operation *at = parts.size() >= 3 ? list.findOperation(parts[0]) : nullptr;
    bool isBefore = at && parts[1] == "before";
    if (!at || (!isBefore && parts[1] != "after"))
      return kernel->emitError("kperf-insert-at: cannot read mark '")
             << text << "', expected operation:before|after:name[:value]";
    if (!isBefore && !at->getNextNode())
      return at->emitError("kperf-insert-at: a mark cannot stand behind the "
                           "last operation of a block");
    Value value;
    if (parts.size() == 4 && !parts[3].empty()) {
      value = list.findValue(parts[3]);
      if (!value)
        return at->emitError("kperf-insert-at: there is no value '")
               << parts[3] << "'";
      if (!OperationList::isCarried(value.getType()))
        return at->emitError("kperf-insert-at: a mark carries an i32, i64, f32 "
                             "or f64, '")
               << parts[3] << "' is of type " << value.getType();
    }
    OpBuilder builder(at);
    if (!isBefore)
      builder.setInsertionPointAfter(at);
    MarkOp::create(builder, at->getLoc(), unescape(parts[2]), value,
                   /*isUnsigned=*/false);
    return success();
  }

private:
  const OperationList &list;
  Operation *kernel;
};

struct InsertAt : impl::InsertAtBase<InsertAt> {
  InsertAt(std::string regions, std::string marks)
      : regions(std::move(regions)), marks(std::move(marks)) {}

  void runOnOperation() override {
    FailureOr<OperationList> list = OperationList::take(getOperation());
    if (failed(list))
      return signalPassFailure();
    Requests requests(*list);
    auto insertRegion = [&](StringRef text) {
      return requests.insertRegion(text);
    };
    auto insertMark = [&](StringRef text) { return requests.insertMark(text); };
    if (failed(OperationList::forEachRequest(regions, insertRegion)) ||
        failed(OperationList::forEachRequest(marks, insertMark)))
      signalPassFailure();
  }

  std::string regions;
  std::string marks;
};

} // namespace

std::unique_ptr<Pass> createInsertAt(OptionTexts texts) {
  OptionReader reader("kperf-insert-at", texts);
  std::string regions, marks;
  reader.readText("regions", regions);
  reader.readText("marks", marks);
  if (std::unique_ptr<Pass> rejected = reader.reject())
    return rejected;
  return std::make_unique<InsertAt>(std::move(regions), std::move(marks));
}

} // namespace mlir::kperf
