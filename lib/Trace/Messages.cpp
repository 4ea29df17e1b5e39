//===- Messages.cpp - Many protobuf messages of one shape -----------------===//

#include "Trace/Messages.h"

#include <algorithm>
#include <cstring>

namespace kperfir::trace {

constexpr size_t kMostVarintBytes = 10;

static uint8_t *writeVarint(uint64_t value, uint8_t *at) {
  while (value > 0x7F) {
    *at++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *at++ = static_cast<uint8_t>(value);
  return at;
}

/// Put the length of what lies from \p begin to \p end into the byte in front,
/// and make room where it takes more than that.
static uint8_t *writeLength(uint8_t *begin, uint8_t *end) {
  auto length = static_cast<size_t>(end - begin);
  if (length <= 0x7F) {
    begin[-1] = static_cast<uint8_t>(length);
    return end;
  }
  std::array<uint8_t, kMostVarintBytes> bytes;
  auto size =
      static_cast<size_t>(writeVarint(length, bytes.data()) - bytes.data());
  std::memmove(begin - 1 + size, begin, length);
  std::memcpy(begin - 1, bytes.data(), size);
  return end + size - 1;
}

static uint8_t *writeFields(const Field *field, const Field *end, size_t row,
                            uint8_t *at) {
  while (field != end) {
    const Field *next = field + 1 + field->inside;
    if (!field->present || field->present[row]) {
      // All of it, since that is one instruction; what is too much is written
      // over by what follows.
      std::memcpy(at, field->literal.data(), Field::kLiteral);
      at += field->literalBytes;
      switch (field->kind) {
      case FieldKind::Constant:
        break;
      case FieldKind::Varint:
        at = writeVarint(field->values[row], at);
        break;
      case FieldKind::Fixed64:
        std::memcpy(at, &field->values[row], sizeof(uint64_t));
        at += sizeof(uint64_t);
        break;
      case FieldKind::Message:
        at = writeLength(at + 1, writeFields(field + 1, next, row, at + 1));
        break;
      }
    }
    field = next;
  }
  return at;
}

size_t MessageBatch::mostBytes() const {
  return fields.size() * (Field::kLiteral + kMostVarintBytes) + Field::kLiteral;
}

std::vector<uint8_t> writeMessages(std::span<const MessageBatch> batches,
                                   std::span<const Source> order) {
  size_t most = 0;
  for (const MessageBatch &batch : batches)
    most = std::max(most, batch.mostBytes());
  std::vector<uint8_t> out;
  size_t used = 0;
  for (Source source : order) {
    if (out.size() - used < most)
      out.resize(2 * out.size() + most);
    const std::vector<Field> &fields = batches[source.batch].fields;
    uint8_t *begin = out.data() + used;
    used += static_cast<size_t>(writeFields(fields.data(),
                                            fields.data() + fields.size(),
                                            source.row, begin) -
                                begin);
  }
  out.resize(used);
  return out;
}

} // namespace kperfir::trace
