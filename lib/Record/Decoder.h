//===- Decoder.h - Profile buffer to columns ------------------------------===//
//
// Turns the bytes that a kernel left in its profile buffer into flat columns:
// CTAs, tracks (one per warp), stamps and spans. Owns the replay rules (what an
// event does to the open spans of a warp); FORMAT.md states them, and
// kperfir/capture/reference.py is the slow version that this one is tested
// against. Owns no byte offsets: those are in RecordLayout.h.
//
// Any bytes are safe to decode: the result is columns or a DecodeError.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_LIB_RECORD_DECODER_H
#define KPERFIR_LIB_RECORD_DECODER_H

#include "Record/Column.h"
#include "Record/DecoderLayout.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kperfir::record {

struct Grid {
  uint32_t x, y, z;
};

/// One row per CTA of the buffer.
struct CtaColumns {
  Column<uint8_t> recorded; // The magic is there.
  Column<uint8_t> started;  // Some header word is not 0.
  Column<int32_t> x, y, z, sm;
  Column<int64_t> startClock, startNs, endClock, endNs;
};

/// One row per warp of each recorded CTA, in order of (CTA, warp).
struct TrackColumns {
  Column<int32_t> cta; // Row of CtaColumns.
  Column<int32_t> warp;
  Column<int64_t> stamps, spans; // How many rows below belong to it.
  Column<int64_t> records, dropped, laps, orphanEnds;
  Column<int64_t> firstClock, lastClock; // Of the stamps; else the CTA's start.
};

/// One row per stored clock value, in order of (track, time).
struct StampColumns {
  Column<int32_t> frame, slot;
  Column<uint32_t> raw;
  Column<int64_t> clock; // Unwrapped to 64 bits.
};

/// One row per mark that was passed, in order of (track, time).
struct MarkColumns {
  Column<int32_t> region;
  Column<int64_t> span;   // Row of SpanColumns; -1 without them.
  Column<uint64_t> value; // Its bits, the low word first; 0 if it has none.
};

/// One row per execution of a region, in order of (track, start).
struct SpanColumns {
  Column<int32_t> region;
  Column<int16_t> depth;
  Column<int64_t> parent; // Row of this table, or -1.
  Column<int64_t> iteration;
  Column<int64_t> start, end; // Unwrapped clock.
  Column<uint8_t> complete;

  size_t rows() const { return region.size(); }
  void resize(size_t rows);
  void reserve(size_t rows);
};

/// One row per region that a warp executed, where executions are summed up; in
/// order of (track, region).
struct SumsColumns {
  Column<int64_t> track; // Row of TrackColumns.
  Column<int32_t> region;
  Column<int64_t> count, least, most; // Executions; cycles.
  Column<uint64_t> sum, squares;
  Column<uint8_t> knowsSquares; // The sum of squares cannot have wrapped.
  Column<uint32_t> buckets;     // kBuckets for each row.
};

/// The spans of a warp added up: one row per region that it executed, in order
/// of (track, first start).
struct TotalColumns {
  Column<int64_t> track; // Row of TrackColumns.
  Column<int32_t> region;
  Column<int64_t> count, complete;        // Spans; those that have their end.
  Column<int64_t> cycles, completeCycles; // Sums of durations.
  Column<int64_t> start, end;             // Of the first, of the last.
  Column<int64_t> parent;                 // Row of the region around, or -1.
  std::vector<Column<int64_t>> durations; // Per region: of complete spans.
};

struct Columns {
  CtaColumns ctas;
  TrackColumns tracks;
  StampColumns stamps;
  SpanColumns spans;
  MarkColumns marks;
  SumsColumns sums;
  TotalColumns totals;
};

/// Which of the large tables to make; marks come with spans or with totals.
/// Everything is checked either way.
struct DecodeOptions {
  bool stamps = false;
  bool spans = true;
  bool totals = false;
};

/// Why a buffer cannot be decoded, and where. `warp` and `word` (index of a
/// data word of the warp) are -1 where they do not apply.
struct DecodeError {
  int64_t cta = -1;
  int32_t warp = -1;
  int64_t word = -1;
  std::string found;
  std::string expected;
};

/// The shares of the CTAs with linear ids `ctaIds`, one after the other in
/// `data`. `warpWords`, if not empty, has the size of each segment, by CTA and
/// warp: where laps were put together they are as long as what a warp wrote.
struct RawShares {
  std::span<const uint8_t> data;
  std::span<const uint32_t> ctaIds;
  std::span<const uint32_t> warpWords;
};

class Decoder {
public:
  /// \p layout must be valid: `layout.validate().empty()`.
  explicit Decoder(DecoderLayout layout);

  const DecoderLayout &layout() const { return plan; }

  /// Per frame: how many spans and marks its events start.
  const std::vector<uint32_t> &spansOfFrames() const { return frameSpans; }

  /// Appends to \p columns; after an error their content is unspecified.
  std::optional<DecodeError> decode(const RawShares &shares, Grid grid,
                                    DecodeOptions options,
                                    Columns &columns) const;

private:
  DecoderLayout plan;
  std::vector<uint32_t> frameSpans;
};

} // namespace kperfir::record

#endif // KPERFIR_LIB_RECORD_DECODER_H
