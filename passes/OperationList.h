//===- OperationList.h - Numbers for the operations of a kernel -----------===//
//
// What `kperf-list-operations` tells and the passes that insert records where
// they are asked to are told have the same numbers: the order of the text,
// outer operations before inner ones.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_OPERATIONLIST_H
#define KPERFIR_PASSES_OPERATIONLIST_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"

#include <string>

namespace mlir::kperf {

class OperationList {
public:
  /// Where the list waits for Python, on the module.
  static constexpr StringRef kAttribute = "kperf.operations";

  explicit OperationList(FunctionOpInterface function);
  /// Of the kernel of a module, from which the list that waited for Python is
  /// taken away: how a pass begins that carries requests out. Fails with a
  /// diagnostic if there is no kernel.
  static FailureOr<OperationList> take(ModuleOp module);

  Operation *getKernel() const { return kernel; }

  ArrayRef<Operation *> getOperations() const { return operations; }
  /// The operation with such a number, or null.
  Operation *findOperation(StringRef digits) const;
  /// -1 for an operation outside of the kernel's body.
  int64_t getIndex(Operation *op) const;

  /// A value as text: `result:<operation>:<n>`, `argument:<operation>:<n>` of
  /// an operation's last region (0 is a loop's variable), or
  /// `parameter:<n>` of the kernel. Empty for others.
  std::string name(Value value) const;
  /// The value with such a name, or null.
  Value findValue(StringRef name) const;

  /// Whether a mark can have a value of this type.
  static bool isCarried(Type type);

  /// Calls `insert` with each of the requests in `text`, between which a `|`
  /// stands, until it fails.
  static LogicalResult
  forEachRequest(StringRef text,
                 llvm::function_ref<LogicalResult(StringRef)> insert);

private:
  Operation *kernel;
  SmallVector<Operation *> operations;
  DenseMap<Operation *, int64_t> indices;
};

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_OPERATIONLIST_H
