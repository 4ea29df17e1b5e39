//===- Json.h - Just enough JSON to read a chip file ----------------------===//

#ifndef KPERFIR_SIMT_TIMING_JSON_H
#define KPERFIR_SIMT_TIMING_JSON_H

#include <string>
#include <utility>
#include <vector>

namespace kperfir::simt::json {

struct Value {
  enum class Kind { Null, Bool, Number, String, Array, Object };
  Kind kind = Kind::Null;
  bool boolean = false;
  double number = 0;
  std::string string;
  std::vector<Value> array;
  std::vector<std::pair<std::string, Value>> object; // in file order

  /// Member of an object, or null.
  const Value *find(const std::string &key) const;
};

/// Throws std::invalid_argument with the line of the mistake.
Value parse(const std::string &text);

} // namespace kperfir::simt::json

#endif // KPERFIR_SIMT_TIMING_JSON_H
