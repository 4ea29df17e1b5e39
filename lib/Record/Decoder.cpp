//===- Decoder.cpp - Profile buffer to columns ----------------------------===//
//
// A warp is decoded in two passes: its frames are found from the tags, walking
// back from the cursor; then their events are replayed forwards over a stack of
// open spans. Every word that steers the walk is checked before it is used.
//
//===----------------------------------------------------------------------===//

#include "Record/Decoder.h"

#include "Record/ClockUnwrap.h"
#include "Record/FrameWalk.h"
#include "Record/RecordLayout.h"
#include "Record/Replay.h"
#include "Record/SumsReader.h"
#include "Record/Totals.h"

#include <algorithm>
#include <bit>
#include <utility>

static_assert(std::endian::native == std::endian::little,
              "profile buffers are little-endian and read in place");

namespace kperfir::record {
namespace {

/// Clocks and timers above this are corrupt, and sums of them cannot overflow.
constexpr int64_t kMaxTime = int64_t(1) << 62;

/// Cursors count bytes in 32 bits.
constexpr uint32_t kMaxSegmentWords = UINT32_MAX / kWordBytes;

std::string number(int64_t value) { return std::to_string(value); }

int64_t loadWide(const uint8_t *words, uint64_t index) {
  return static_cast<int64_t>(uint64_t(loadWord(words, index)) |
                              uint64_t(loadWord(words, index + 1)) << 32);
}

/// Decodes CTA after CTA into one set of columns; keeps the scratch memory.
class BufferDecoder {
public:
  BufferDecoder(const Decoder &decoder, Grid grid, DecodeOptions options,
                Columns &columns)
      : plan(decoder.layout()), frameSpans(decoder.spansOfFrames()), grid(grid),
        options(options), columns(columns), walk(plan), replay(plan),
        sums(plan, columns.sums), totals(plan, columns.totals) {}

  /// \p warpWords are the sizes of its segments; null: those of the layout.
  std::optional<DecodeError> decodeCta(const uint8_t *words, uint32_t id,
                                       const uint32_t *warpWords);

private:
  std::optional<DecodeError> readHeader(const uint8_t *words, uint32_t id);
  std::optional<DecodeError> decodeWarp(const Segment &segment,
                                        CtaAnchors anchors);
  std::optional<DecodeError> readSums(const Segment &segment,
                                      CtaAnchors anchors);
  std::optional<DecodeError> replayFrames(const Segment &segment,
                                          CtaAnchors anchors);
  std::optional<DecodeError>
  replayFrame(const Segment &segment, FramePosition frame, ClockUnwrap &unwrap);
  const Event *replayStamp(const Segment &segment, uint32_t stamp,
                           int64_t clock, uint32_t &valueWord);
  std::optional<DecodeError> contradiction(const Segment &segment,
                                           uint32_t word, Event event) const;
  void noteMark(const Segment &segment, Event event, uint32_t &valueWord);
  ClockUnwrap placeClock(const Segment &segment, CtaAnchors anchors) const;

  const DecoderLayout &plan;
  const std::vector<uint32_t> &frameSpans;
  Grid grid;
  DecodeOptions options;
  Columns &columns;
  FrameWalk walk;
  Replay replay;
  SumsReader sums;
  Totals totals;
  SpanColumns unwanted; // Spans are always replayed: it checks the buffer.
};

std::optional<DecodeError> BufferDecoder::decodeCta(const uint8_t *words,
                                                    uint32_t id,
                                                    const uint32_t *warpWords) {
  if (auto error = readHeader(words, id))
    return error;
  CtaColumns &ctas = columns.ctas;
  if (!ctas.recorded.back())
    return std::nullopt;
  CtaAnchors anchors{ctas.startClock.back(), ctas.endClock.back()};
  const uint8_t *header = words + kCtaHeaderWords * kWordBytes;
  for (uint32_t warp = 0; warp < plan.totalWarps; ++warp) {
    uint32_t size = warpWords ? warpWords[warp] : plan.wordsPerWarp;
    Segment segment{id, static_cast<int32_t>(warp), header,
                    header + kSegmentHeaderWords * kWordBytes, size};
    header += uint64_t(segmentWords(size)) * kWordBytes;
    auto error = plan.aggregate ? readSums(segment, anchors)
                                : decodeWarp(segment, anchors);
    if (error)
      return error;
  }
  return std::nullopt;
}

std::optional<DecodeError> BufferDecoder::readHeader(const uint8_t *words,
                                                     uint32_t id) {
  uint32_t magic = loadWord(words, kCtaMagicWord);
  bool started = false;
  for (uint32_t word = 0; word < kCtaHeaderWords; ++word)
    started |= loadWord(words, word) != 0;
  CtaColumns &ctas = columns.ctas;
  ctas.recorded.push_back(magic != 0);
  ctas.started.push_back(started);
  ctas.x.push_back(static_cast<int32_t>(loadWord(words, kCtaIdXWord)));
  ctas.y.push_back(static_cast<int32_t>(loadWord(words, kCtaIdYWord)));
  ctas.z.push_back(static_cast<int32_t>(loadWord(words, kCtaIdZWord)));
  ctas.sm.push_back(static_cast<int32_t>(loadWord(words, kSmIdWord)));
  ctas.startClock.push_back(loadWide(words, kStartClockWord));
  ctas.startNs.push_back(loadWide(words, kStartGlobalTimerWord));
  ctas.endClock.push_back(loadWide(words, kEndClockWord));
  ctas.endNs.push_back(loadWide(words, kEndGlobalTimerWord));
  if (magic == 0)
    return std::nullopt;

  auto error = [&](std::string found, std::string expected) {
    return DecodeError{id, -1, -1, std::move(found), std::move(expected)};
  };
  if (magic != kCtaMagic)
    return error("CTA magic " + number(magic), number(kCtaMagic) + " or 0");
  if (uint32_t hash = loadWord(words, kLayoutHashWord); hash != plan.hash)
    return error("layout hash " + number(hash), number(plan.hash));
  uint64_t x = loadWord(words, kCtaIdXWord), y = loadWord(words, kCtaIdYWord),
           z = loadWord(words, kCtaIdZWord);
  if (x >= grid.x || y >= grid.y || z >= grid.z ||
      x + grid.x * (y + grid.y * z) != id)
    return error("ctaid (" + std::to_string(x) + ", " + std::to_string(y) +
                     ", " + std::to_string(z) + ")",
                 "that of CTA " + number(id) + " in a grid of (" +
                     number(grid.x) + ", " + number(grid.y) + ", " +
                     number(grid.z) + ")");
  if (loadWord(words, kSmIdWord) > uint32_t(INT32_MAX))
    return error("SM " + number(loadWord(words, kSmIdWord)), "less than 2^31");
  for (uint32_t word = kStartClockWord; word < kReservedWord; word += 2)
    if (int64_t time = loadWide(words, word); time < 0 || time > kMaxTime)
      return error("time " + std::to_string(static_cast<uint64_t>(time)),
                   "at most 2^62");
  if (loadWide(words, kReservedWord) != 0)
    return error("reserved words that are not 0", "0");
  if (ctas.endClock.back() < ctas.startClock.back())
    return error("end clock " + number(ctas.endClock.back()),
                 "the start clock, " + number(ctas.startClock.back()) +
                     ", or later");
  return std::nullopt;
}

/// Of the track, records are what was summed up; nothing is ever dropped.
std::optional<DecodeError> BufferDecoder::readSums(const Segment &segment,
                                                   CtaAnchors anchors) {
  if (auto error = sums.run(segment, anchors.endClock - anchors.startClock))
    return error;
  TrackColumns &tracks = columns.tracks;
  columns.sums.track.resize(columns.sums.region.size(),
                            static_cast<int64_t>(tracks.warp.size()));
  tracks.cta.push_back(static_cast<int32_t>(columns.ctas.sm.size()) - 1);
  tracks.warp.push_back(segment.warp);
  tracks.records.push_back(sums.executions());
  for (auto *none : {&tracks.stamps, &tracks.spans, &tracks.dropped,
                     &tracks.laps, &tracks.orphanEnds})
    none->push_back(0);
  tracks.firstClock.push_back(anchors.startClock);
  tracks.lastClock.push_back(anchors.startClock);
  return std::nullopt;
}

std::optional<DecodeError> BufferDecoder::decodeWarp(const Segment &segment,
                                                     CtaAnchors anchors) {
  if (auto error = walk.run(segment))
    return error;
  SpanColumns &spans = options.spans ? columns.spans : unwanted;
  unwanted.resize(0);
  size_t spansBefore = spans.rows();
  replay.begin(spans, walk.prefixLost());
  if (auto error = replayFrames(segment, anchors))
    return error;
  TrackColumns &tracks = columns.tracks;
  if (options.totals)
    totals.add(spans, spansBefore, static_cast<int64_t>(tracks.warp.size()));
  tracks.cta.push_back(static_cast<int32_t>(columns.ctas.sm.size()) - 1);
  tracks.warp.push_back(segment.warp);
  tracks.stamps.push_back(static_cast<int64_t>(walk.stamps));
  tracks.spans.push_back(static_cast<int64_t>(spans.rows() - spansBefore));
  tracks.records.push_back(walk.records);
  tracks.dropped.push_back(static_cast<int64_t>(walk.records - walk.stamps));
  tracks.laps.push_back(walk.laps);
  tracks.orphanEnds.push_back(replay.orphanEnds());
  return std::nullopt;
}

std::optional<DecodeError> BufferDecoder::replayFrames(const Segment &segment,
                                                       CtaAnchors anchors) {
  TrackColumns &tracks = columns.tracks;
  if (walk.frames.empty()) {
    tracks.firstClock.push_back(anchors.startClock);
    tracks.lastClock.push_back(anchors.startClock);
    return std::nullopt;
  }
  ClockUnwrap unwrap = placeClock(segment, anchors);
  tracks.firstClock.push_back(unwrap.current());
  if (walk.prefixLost()) {
    uint32_t firstStamp = plan.frameOffsets[walk.frames.back().id];
    Event event = plan.events[plan.stampOffsets[firstStamp]];
    replay.reopenAncestors(event, unwrap.current());
  }
  uint64_t starts = 0;
  for (FramePosition frame : walk.frames)
    starts += frameSpans[frame.id];
  replay.reserve(starts);
  for (size_t i = walk.frames.size(); i-- > 0;)
    if (auto error = replayFrame(segment, walk.frames[i], unwrap))
      return error;
  replay.finish(unwrap.current());
  tracks.lastClock.push_back(unwrap.current());
  return std::nullopt;
}

std::optional<DecodeError> BufferDecoder::replayFrame(const Segment &segment,
                                                      FramePosition frame,
                                                      ClockUnwrap &unwrap) {
  uint32_t firstStamp = plan.frameOffsets[frame.id];
  uint32_t count = plan.frameOffsets[frame.id + 1] - firstStamp;
  uint32_t valueWord = frame.begin + count; // Values lie behind the stamps.
  for (uint32_t slot = 0; slot < count; ++slot) {
    uint32_t word = frame.begin + slot;
    uint32_t raw = loadWord(segment.data, word);
    int64_t clock = unwrap.advance(raw);
    if (!unwrap.plausible(clock))
      return segment.error(word, "clock " + number(clock),
                           "a time near the CTA's, " + unwrap.describe());
    if (const Event *event =
            replayStamp(segment, firstStamp + slot, clock, valueWord))
      return contradiction(segment, word, *event);
    if (options.stamps) {
      columns.stamps.frame.push_back(static_cast<int32_t>(frame.id));
      columns.stamps.slot.push_back(static_cast<int32_t>(slot));
      columns.stamps.raw.push_back(raw);
      columns.stamps.clock.push_back(clock);
    }
  }
  return std::nullopt;
}

/// The event of \p stamp that cannot follow on those before, or null.
const Event *BufferDecoder::replayStamp(const Segment &segment, uint32_t stamp,
                                        int64_t clock, uint32_t &valueWord) {
  for (uint32_t i = plan.stampOffsets[stamp]; i < plan.stampOffsets[stamp + 1];
       ++i) {
    const Event &event = plan.events[i];
    if (!replay.apply(event, clock))
      return &event;
    if (event.edge == Edge::Mark)
      noteMark(segment, event, valueWord);
  }
  return nullptr;
}

std::optional<DecodeError> BufferDecoder::contradiction(const Segment &segment,
                                                        uint32_t word,
                                                        Event event) const {
  const char *edge = event.edge == Edge::End ? "end" : "start";
  return segment.error(
      word, std::string(edge) + " of region " + std::to_string(event.region),
      "an event that can follow: " + replay.openRegion());
}

void BufferDecoder::noteMark(const Segment &segment, Event event,
                             uint32_t &valueWord) {
  uint64_t value = 0;
  uint32_t words = plan.valueWords(event.region);
  for (uint32_t i = 0; i < words; ++i)
    value |= uint64_t(loadWord(segment.data, valueWord + i)) << (32 * i);
  valueWord += words;
  if (!options.spans && !options.totals)
    return;
  columns.marks.region.push_back(event.region);
  columns.marks.span.push_back(options.spans ? replay.lastRow() : -1);
  columns.marks.value.push_back(value);
}

/// A lost prefix may have had any length: then time is counted from the end.
ClockUnwrap BufferDecoder::placeClock(const Segment &segment,
                                      CtaAnchors anchors) const {
  ClockUnwrap unwrap(anchors);
  uint32_t previous = loadWord(segment.data, walk.frames.back().begin);
  if (!walk.prefixLost()) {
    unwrap.begin(previous);
    return unwrap;
  }
  int64_t elapsed = 0;
  for (size_t i = walk.frames.size(); i-- > 0;) {
    auto [begin, id] = walk.frames[i];
    uint32_t count = plan.frameOffsets[id + 1] - plan.frameOffsets[id];
    for (uint32_t slot = 0; slot < count; ++slot) {
      uint32_t raw = loadWord(segment.data, begin + slot);
      elapsed += uint32_t(raw - previous);
      previous = raw;
    }
  }
  unwrap.beginBefore(previous, elapsed);
  return unwrap;
}

/// \p warpWords as in `decodeCta`.
uint64_t shareBytes(const DecoderLayout &plan, const uint32_t *warpWords) {
  if (!warpWords)
    return plan.ctaBytes();
  uint64_t words = kCtaHeaderWords;
  for (uint32_t warp = 0; warp < plan.totalWarps; ++warp)
    words += kSegmentHeaderWords + uint64_t(warpWords[warp]);
  return words * kWordBytes;
}

std::optional<DecodeError> checkSizes(const DecoderLayout &plan,
                                      const RawShares &shares) {
  auto error = [](uint64_t found, std::string expected) {
    return DecodeError{-1, -1, -1, std::to_string(found) + " bytes",
                       std::move(expected)};
  };
  size_t ctas = shares.ctaIds.size();
  if (shares.warpWords.empty()) {
    uint64_t bytes = plan.ctaBytes();
    if (shares.data.size() / bytes != ctas || shares.data.size() % bytes != 0)
      return error(shares.data.size(), std::to_string(ctas) + " CTAs of " +
                                           std::to_string(bytes) + " bytes");
    return std::nullopt;
  }
  if (shares.warpWords.size() != ctas * plan.totalWarps)
    return error(shares.warpWords.size() * kWordBytes,
                 "the size of each segment of " + std::to_string(ctas) +
                     " CTAs");
  uint64_t bytes = 0;
  for (size_t i = 0; i < ctas; ++i)
    bytes += shareBytes(plan, shares.warpWords.data() + i * plan.totalWarps);
  for (uint32_t words : shares.warpWords)
    if (words > kMaxSegmentWords)
      return error(uint64_t(words) * kWordBytes, "less than 2^32 of a warp");
  if (shares.data.size() != bytes)
    return error(shares.data.size(), std::to_string(bytes) + " bytes");
  return std::nullopt;
}

/// The CTAs of a launch are alike, so the first one tells how much room is
/// needed. Pages that are not written cost nothing.
void reserveLikeFirst(Columns &columns, size_t ctas, size_t words) {
  size_t most = ctas + ctas / 8;
  columns.spans.reserve(std::min(columns.spans.rows() * most, words));
  StampColumns &stamps = columns.stamps;
  size_t rows = std::min(stamps.raw.size() * most, words);
  stamps.frame.reserve(rows);
  stamps.slot.reserve(rows);
  stamps.raw.reserve(rows);
  stamps.clock.reserve(rows);
}

} // namespace

void SpanColumns::resize(size_t rows) {
  region.resize(rows);
  depth.resize(rows);
  parent.resize(rows);
  iteration.resize(rows);
  start.resize(rows);
  end.resize(rows);
  complete.resize(rows);
}

void SpanColumns::reserve(size_t rows) {
  region.reserve(rows);
  depth.reserve(rows);
  parent.reserve(rows);
  iteration.reserve(rows);
  start.reserve(rows);
  end.reserve(rows);
  complete.reserve(rows);
}

Decoder::Decoder(DecoderLayout layout) : plan(std::move(layout)) {
  for (size_t frame = 0; frame + 1 < plan.frameOffsets.size(); ++frame) {
    uint32_t begin = plan.stampOffsets[plan.frameOffsets[frame]];
    uint32_t end = plan.stampOffsets[plan.frameOffsets[frame + 1]];
    frameSpans.push_back(static_cast<uint32_t>(
        std::count_if(plan.events.begin() + begin, plan.events.begin() + end,
                      [](Event event) { return event.edge != Edge::End; })));
  }
}

std::optional<DecodeError> Decoder::decode(const RawShares &shares, Grid grid,
                                           DecodeOptions options,
                                           Columns &columns) const {
  auto [data, ctaIds, warpWords] = shares;
  if (auto error = checkSizes(plan, shares))
    return error;
  BufferDecoder buffer(*this, grid, options, columns);
  const uint8_t *share = data.data();
  for (size_t i = 0; i < ctaIds.size(); ++i) {
    const uint32_t *sizes =
        warpWords.empty() ? nullptr : warpWords.data() + i * plan.totalWarps;
    if (auto error = buffer.decodeCta(share, ctaIds[i], sizes))
      return error;
    share += shareBytes(plan, sizes);
    if (i == 0)
      reserveLikeFirst(columns, ctaIds.size(), data.size() / kWordBytes);
  }
  return std::nullopt;
}

} // namespace kperfir::record
