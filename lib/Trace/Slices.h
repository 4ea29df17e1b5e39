//===- Slices.h - Slices of a Perfetto trace ------------------------------===//
//
// Writes the events of a drawing as packets of a Perfetto trace. Owns which
// fields they have and the wire format of protobuf; what interned ids and track
// uuids stand for is the caller's business.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_LIB_TRACE_SLICES_H
#define KPERFIR_LIB_TRACE_SLICES_H

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace kperfir::trace {

/// Arguments of slices, in the order in which a slice has them.
enum class Argument : uint8_t {
  Cta,
  CtaX,
  CtaY,
  CtaZ,
  Warp,
  Records,
  Dropped,
  Role,
  Iteration,
  StartCycles,
  DurationCycles,
  Incomplete,
  Wait,
  WaitCycles,
  Value,
};
constexpr size_t kArguments = size_t(Argument::Value) + 1;
/// The first ones, of the slice of a CTA, are integers.
constexpr size_t kRootNumbers = size_t(Argument::Role);

enum class ValueKind : uint8_t { Unsigned, Signed, Double };

/// What a mark carries, and an arrow that leaves or reaches a row.
struct Value {
  int64_t row;
  ValueKind kind;
  uint64_t bits;
};
struct Arrow {
  int64_t row;
  uint64_t id;
};

/// What all spans of a region have in common.
struct RegionIds {
  uint64_t kind, name, source;
  bool isWait, isInstant;
};

/// The slice of a warp of a CTA.
struct Root {
  std::array<int64_t, kRootNumbers> numbers; // As in Argument.
  uint64_t role, name, track;
};

/// A drawing: roots, then spans, with all columns of spans but the last two
/// being as long as there are spans. Belongs to the caller.
struct Drawing {
  std::span<const int64_t> events;     // As orderEvents says.
  std::span<const int64_t> start, end; // Per row, from the launch's own zero.
  std::span<const int32_t> region;
  std::span<const int64_t> iteration, startCycles, durationCycles, waitCycles;
  std::span<const bool> complete;
  std::vector<RegionIds> regions;
  std::vector<Root> roots;
  std::vector<Value> values;            // By row.
  std::vector<Arrow> leaving, reaching; // By row; several may have the same.
};

/// What all packets of a sequence have in common.
struct Sequence {
  uint64_t id = 0, ctaCategory = 0;
  int64_t offset = 0;                              // On top of all times.
  std::array<uint8_t, kArguments> argumentNames{}; // Less than 128.
};

class SliceWriter {
public:
  SliceWriter(Drawing drawing, Sequence sequence);

  /// The packets of events \p first to \p end; valid until the next call.
  /// Calls must go through the events in order.
  std::span<const uint8_t> write(size_t first, size_t end);

  size_t events() const { return drawing.events.size(); }

private:
  enum : uint8_t { kLeaves = 1, kReaches = 2, kCarries = 4 };

  void enterTrack(uint64_t uuid);
  uint8_t *writePacket(size_t event, uint8_t *at);
  uint8_t *writeRoot(size_t row, uint8_t *at) const;
  uint8_t *writeSpan(size_t row, uint8_t *at) const;
  uint8_t *writeEnd(size_t row, uint8_t *at) const;
  uint8_t *writeValue(size_t row, uint8_t *at) const;
  uint8_t *writeNumber(Argument argument, int64_t value, uint8_t *at) const;
  uint8_t *writeFlag(Argument argument, uint8_t *at) const;
  uint8_t *writeTrack(uint8_t *at) const;
  size_t mostBytes() const;

  Drawing drawing;
  Sequence sequence;
  std::vector<uint8_t> special; // Per row, or empty if all are 0.
  std::vector<uint8_t> out;
  size_t most; // Bytes of a packet.
  /// The field of the track that the events at hand are on; it has eight bytes
  /// or so, and is the same for hundreds of events.
  struct {
    std::array<uint8_t, 16> bytes{};
    size_t size = 0;
  } track;
};

} // namespace kperfir::trace

#endif // KPERFIR_LIB_TRACE_SLICES_H
