//===- Json.h - Just enough JSON to read a chip file ----------------------===//

#ifndef KPERFIR_SIMT_TIMING_JSON_H
#define KPERFIR_SIMT_TIMING_JSON_H

#include <string>
#include <vector>

namespace kperfir::simt::json {

struct Member;

struct Value {
  enum class Kind { Null, Bool, Number, String, Array, Object };
  Kind kind = Kind::Null;
  bool boolean = false;
  double number = 0;
  std::string string;
  std::vector<Value> array;
  std::vector<Member> object; // in file order

  /// Member of an object, or null.
  const Value *find(const std::string &key) const;
};

/// A type of its own, not a std::pair, which must not be named with an
/// incomplete type.
struct Member {
  std::string name;
  Value value;
};

/// Throws std::invalid_argument with the line of the mistake.
Value parse(const std::string &text);

} // namespace kperfir::simt::json

#endif // KPERFIR_SIMT_TIMING_JSON_H
