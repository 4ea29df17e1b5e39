//===- ScopeTags.h - Scopes of the user's source in locations -------------===//
//
// While Triton's passes run, a scope is no operation: it is part of the
// locations of the operations inside it, so that it changes nothing and goes
// where they go. `kperfir.language` writes such locations, as a NameLoc around
// the location that an operation would have:
//
//   loc("kperf.scope|12:4:0:outer|13:8:1:inner"("k.py":14:12))
//
// names the scopes of one function around an operation, outermost first: line,
// column, number within the function, and the name (%20 for what a URL would
// escape). A call in a kernel with scopes has `kperf.scope|call 7`, with a
// number within the calling function: code that is repeated calls several times
// from one place, and the callee's scopes are others each time. A mark has to
// be an operation, to keep its value: inline assembly of nothing but a comment,
// `// kperf.mark|i|tile` (u for an unsigned value), which Triton's passes know,
// and pipeline a loop around, unlike a tt.print.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_SCOPETAGS_H
#define KPERFIR_PASSES_SCOPETAGS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"

#include <memory>

namespace mlir::kperf {

/// One `with` of the user's source, in one execution of its function's code.
struct Scope {
  StringAttr name;
  StringAttr file; // Null if unknown.
  uint32_t line, column;
  uint32_t number;  // Tells unrolled repetitions apart.
  Attribute caller; // Where the function around it was inlined, with all
                    // calls around that; null: nowhere.

  bool operator==(const Scope &other) const = default;
};

class ScopeTags {
public:
  /// The scopes around an operation with this location, outermost first.
  ArrayRef<Scope> getPath(Location loc);

  /// Whether a location that was asked for has scopes or a numbered call.
  bool found() const { return hasTags; }

  /// `loc` as it would be without scopes.
  Location strip(Location loc);

  /// Strips all locations of `module`.
  void strip(ModuleOp module);

private:
  DenseMap<Attribute, std::unique_ptr<SmallVector<Scope>>> paths;
  DenseMap<Attribute, Attribute> stripped;
  bool hasTags = false;
};

/// Turns `%20` and the like back into what they stand for.
std::string unescape(StringRef text);

/// A mark of the user's source.
struct SourceMark {
  std::string name;
  bool isUnsigned;
};

/// What `op` stands for; nothing if it is no mark.
std::optional<SourceMark> getMark(Operation *op);

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_SCOPETAGS_H
