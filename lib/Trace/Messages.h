//===- Messages.h - Many protobuf messages of one shape -------------------===//
//
// Writes messages whose fields are columns: message i takes row i of each. Owns
// the wire format of protobuf (varints, lengths of nested messages); which
// fields there are is the caller's business.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_LIB_TRACE_MESSAGES_H
#define KPERFIR_LIB_TRACE_MESSAGES_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kperfir::trace {

enum class FieldKind : uint8_t {
  Constant, // The literal alone.
  Varint,
  Fixed64,
  Message, // The next `inside` fields, with their length in front.
};

/// One field of the messages, as it lies behind \p literal: its tag, or tag and
/// value where all messages have the same.
struct Field {
  static constexpr size_t kLiteral = 16;

  FieldKind kind = FieldKind::Constant;
  std::array<uint8_t, kLiteral> literal{};
  uint32_t literalBytes = 0;
  const uint64_t *values = nullptr; // Per row.
  const bool *present = nullptr;    // Per row; null: each message has it.
  uint32_t inside = 0;
};

/// Messages of one shape. Columns belong to the caller.
struct MessageBatch {
  std::vector<Field> fields;
  size_t rows = 0;

  /// Bytes that no message is longer than.
  size_t mostBytes() const;
};

/// Where a message of the result comes from.
struct Source {
  uint32_t batch;
  uint32_t row;
};

/// The messages of \p order, one behind the other.
std::vector<uint8_t> writeMessages(std::span<const MessageBatch> batches,
                                   std::span<const Source> order);

} // namespace kperfir::trace

#endif // KPERFIR_LIB_TRACE_MESSAGES_H
