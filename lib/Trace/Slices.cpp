//===- Slices.cpp - Slices of a Perfetto trace ----------------------------===//
//
// Fields are those of perfetto.protos.Trace, TracePacket, TrackEvent and
// DebugAnnotation, in the order of their numbers; so the bytes are the ones
// that the protobuf library writes.
//
//===----------------------------------------------------------------------===//

#include "Trace/Slices.h"

#include <algorithm>
#include <cstring>

namespace kperfir::trace {
namespace {

constexpr size_t kMostVarintBytes = 10;
enum WireType : uint8_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2 };
enum EventType : uint8_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3 };
constexpr uint8_t kNeedsIncrementalState = 2; // For interned names.

constexpr uint32_t tag(uint32_t field, WireType type) {
  return field << 3 | type;
}

// TrackEvent.
constexpr uint32_t kCategory = tag(3, kVarint);
constexpr uint32_t kAnnotation = tag(4, kLengthDelimited);
constexpr uint32_t kType = tag(9, kVarint);
constexpr uint32_t kName = tag(10, kVarint);
constexpr uint32_t kTrack = tag(11, kVarint);
constexpr uint32_t kSource = tag(34, kVarint);
constexpr uint32_t kFlow = tag(47, kFixed64);
constexpr uint32_t kLastFlow = tag(48, kFixed64);
// DebugAnnotation.
constexpr uint32_t kArgumentName = tag(1, kVarint);
constexpr uint32_t kBool = tag(2, kVarint);
constexpr uint32_t kUint = tag(3, kVarint);
constexpr uint32_t kInt = tag(4, kVarint);
constexpr uint32_t kDouble = tag(5, kFixed64);
constexpr uint32_t kText = tag(17, kVarint);
// TracePacket, Trace.
constexpr uint32_t kTime = tag(8, kVarint);
constexpr uint32_t kSequence = tag(10, kVarint);
constexpr uint32_t kEvent = tag(11, kLengthDelimited);
constexpr uint32_t kFlags = tag(13, kVarint);
constexpr uint32_t kPacket = tag(1, kLengthDelimited);

uint8_t *writeVarint(uint64_t value, uint8_t *at) {
  while (value > 0x7F) {
    *at++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *at++ = static_cast<uint8_t>(value);
  return at;
}

uint8_t *writeField(uint32_t tag, uint64_t value, uint8_t *at) {
  return writeVarint(value, writeVarint(tag, at));
}

uint8_t *writeFixed(uint32_t tag, uint64_t value, uint8_t *at) {
  at = writeVarint(tag, at);
  std::memcpy(at, &value, sizeof(value));
  return at + sizeof(value);
}

/// Put the length of what lies from \p begin to \p end into the byte in front,
/// and make room where it takes more than that.
uint8_t *writeLength(uint8_t *begin, uint8_t *end) {
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

/// The entries of \p all, which are in the order of rows, that are of \p row.
template <typename T>
std::span<const T> ofRow(const std::vector<T> &all, size_t row) {
  auto range =
      std::ranges::equal_range(all, static_cast<int64_t>(row), {}, &T::row);
  return {range.begin(), range.end()};
}

template <typename T> size_t mostOfARow(const std::vector<T> &all) {
  size_t most = 0, run = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    run = i != 0 && all[i].row == all[i - 1].row ? run + 1 : 1;
    most = std::max(most, run);
  }
  return most;
}

} // namespace

SliceWriter::SliceWriter(Drawing of, Sequence in)
    : drawing(std::move(of)), sequence(in), most(mostBytes()) {
  if (drawing.values.empty() && drawing.leaving.empty() &&
      drawing.reaching.empty())
    return;
  special.resize(drawing.start.size());
  auto note = [&](const auto &entries, uint8_t flag) {
    for (const auto &entry : entries)
      special[static_cast<size_t>(entry.row)] |= flag;
  };
  note(drawing.values, kCarries);
  note(drawing.leaving, kLeaves);
  note(drawing.reaching, kReaches);
}

/// Of any packet: arguments, of which some rows may have several values, ten
/// more fields, and arrows. An argument is two fields, and its length.
size_t SliceWriter::mostBytes() const {
  size_t arrows =
      std::max(mostOfARow(drawing.leaving), mostOfARow(drawing.reaching));
  size_t arguments = kArguments + mostOfARow(drawing.values);
  constexpr size_t kMostFieldBytes = 2 * kMostVarintBytes;
  return (3 * arguments + 10 + arrows) * kMostFieldBytes;
}

uint8_t *SliceWriter::writeNumber(Argument argument, int64_t value,
                                  uint8_t *at) const {
  const std::array<uint8_t, 5> head = {
      kAnnotation, 0, kArgumentName,
      sequence.argumentNames[static_cast<size_t>(argument)], kInt};
  std::memcpy(at, head.data(), head.size());
  return writeLength(
      at + 2, writeVarint(static_cast<uint64_t>(value), at + head.size()));
}

uint8_t *SliceWriter::writeFlag(Argument argument, uint8_t *at) const {
  const std::array<uint8_t, 6> all = {
      kAnnotation,   4,
      kArgumentName, sequence.argumentNames[static_cast<size_t>(argument)],
      kBool,         1};
  std::memcpy(at, all.data(), all.size());
  return at + all.size();
}

uint8_t *SliceWriter::writeValue(size_t row, uint8_t *at) const {
  for (const Value &value : ofRow(drawing.values, row)) {
    *at++ = kAnnotation;
    uint8_t *begin = ++at;
    at = writeField(kArgumentName,
                    sequence.argumentNames[size_t(Argument::Value)], at);
    switch (value.kind) {
    case ValueKind::Unsigned:
      at = writeField(kUint, value.bits, at);
      break;
    case ValueKind::Signed:
      at = writeField(kInt, value.bits, at);
      break;
    case ValueKind::Double:
      at = writeFixed(kDouble, value.bits, at);
      break;
    }
    at = writeLength(begin, at);
  }
  return at;
}

uint8_t *SliceWriter::writeRoot(size_t row, uint8_t *at) const {
  const Root &root = drawing.roots[row];
  at = writeField(kCategory, sequence.ctaCategory, at);
  for (size_t i = 0; i < kRootNumbers; ++i)
    at = writeNumber(static_cast<Argument>(i), root.numbers[i], at);
  *at++ = kAnnotation;
  uint8_t *role = ++at;
  at = writeField(kArgumentName, sequence.argumentNames[size_t(Argument::Role)],
                  at);
  at = writeLength(role, writeField(kText, root.role, at));
  at = writeField(kType, kSliceBegin, at);
  at = writeField(kName, root.name, at);
  return writeTrack(at);
}

uint8_t *SliceWriter::writeSpan(size_t row, uint8_t *at) const {
  size_t span = row - drawing.roots.size();
  const RegionIds &region =
      drawing.regions[static_cast<size_t>(drawing.region[span])];
  uint8_t extra = special.empty() ? 0 : special[row];
  at = writeField(kCategory, region.kind, at);
  if (drawing.iteration[span] >= 0)
    at = writeNumber(Argument::Iteration, drawing.iteration[span], at);
  at = writeNumber(Argument::StartCycles, drawing.startCycles[span], at);
  at = writeNumber(Argument::DurationCycles, drawing.durationCycles[span], at);
  if (!drawing.complete[span])
    at = writeFlag(Argument::Incomplete, at);
  if (region.isWait)
    at = writeFlag(Argument::Wait, at);
  if (drawing.waitCycles[span] > 0)
    at = writeNumber(Argument::WaitCycles, drawing.waitCycles[span], at);
  if (extra & kCarries)
    at = writeValue(row, at);
  at = writeField(kType, region.isInstant ? kInstant : kSliceBegin, at);
  at = writeField(kName, region.name, at);
  at = writeTrack(at);
  at = writeField(kSource, region.source, at);
  if (extra & kLeaves)
    for (const Arrow &arrow : ofRow(drawing.leaving, row))
      at = writeFixed(kFlow, arrow.id, at);
  return at;
}

/// Arrows arrive at an end: the wait may have begun before what it waits for
/// was issued by another warp.
uint8_t *SliceWriter::writeEnd(size_t row, uint8_t *at) const {
  at = writeField(kType, kSliceEnd, at);
  at = writeTrack(at);
  if (!special.empty() && special[row] & kReaches)
    for (const Arrow &arrow : ofRow(drawing.reaching, row))
      at = writeFixed(kLastFlow, arrow.id, at);
  return at;
}

void SliceWriter::enterTrack(uint64_t uuid) {
  uint8_t *begin = track.bytes.data();
  track.size = static_cast<size_t>(writeField(kTrack, uuid, begin) - begin);
}

uint8_t *SliceWriter::writeTrack(uint8_t *at) const {
  std::memcpy(at, track.bytes.data(), track.bytes.size());
  return at + track.size;
}

uint8_t *SliceWriter::writePacket(size_t event, uint8_t *at) {
  size_t rows = drawing.start.size();
  bool isEnd = event >= rows;
  size_t row = isEnd ? event - rows : event;
  int64_t time = (isEnd ? drawing.end : drawing.start)[row] + sequence.offset;
  *at++ = kPacket;
  uint8_t *packet = ++at;
  at = writeField(kTime, static_cast<uint64_t>(time), at);
  at = writeField(kSequence, sequence.id, at);
  *at++ = kEvent;
  uint8_t *body = ++at;
  bool isRoot = row < drawing.roots.size();
  if (isRoot)
    enterTrack(drawing.roots[row].track);
  at = isEnd    ? writeEnd(row, at)
       : isRoot ? writeRoot(row, at)
                : writeSpan(row, at);
  at = writeLength(body, at);
  at = writeField(kFlags, kNeedsIncrementalState, at);
  return writeLength(packet, at);
}

std::span<const uint8_t> SliceWriter::write(size_t first, size_t end) {
  size_t used = 0;
  for (size_t i = first; i < end; ++i) {
    if (out.size() - used < most)
      out.resize(2 * out.size() + most);
    uint8_t *begin = out.data() + used;
    used += static_cast<size_t>(
        writePacket(static_cast<size_t>(drawing.events[i]), begin) - begin);
  }
  return {out.data(), used};
}

} // namespace kperfir::trace
