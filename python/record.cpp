//===- record.cpp - kperfir._native.record --------------------------------===//
//
// Hands lib/Record to Python: the constants of the byte layout, and the decoder
// with numpy columns. Converts, decides nothing.
//
//===----------------------------------------------------------------------===//

#include "Record/Decoder.h"
#include "Record/RecordLayout.h"
#include "Record/SharedLayout.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <tuple>

namespace nb = nanobind;
using namespace kperfir::record;

namespace {

using Bytes =
    nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ids =
    nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Move \p values into a numpy array that owns them.
template <typename T> nb::object column(Column<T> &&values) {
  auto *owner = new Column<T>(std::move(values));
  nb::capsule free(
      owner, [](void *p) noexcept { delete static_cast<Column<T> *>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(
      owner->data(), {owner->size()}, free));
}

nb::dict columnsToDict(Columns &&c) {
  nb::dict ctas, tracks, stamps, spans, marks, sums, totals, all;
#define KPERF_COLUMN(table, name, member)                                      \
  table[name] = column(std::move(c.table.member))
  KPERF_COLUMN(ctas, "recorded", recorded);
  KPERF_COLUMN(ctas, "started", started);
  KPERF_COLUMN(ctas, "x", x);
  KPERF_COLUMN(ctas, "y", y);
  KPERF_COLUMN(ctas, "z", z);
  KPERF_COLUMN(ctas, "sm", sm);
  KPERF_COLUMN(ctas, "start_clock", startClock);
  KPERF_COLUMN(ctas, "start_ns", startNs);
  KPERF_COLUMN(ctas, "end_clock", endClock);
  KPERF_COLUMN(ctas, "end_ns", endNs);
  KPERF_COLUMN(tracks, "cta", cta);
  KPERF_COLUMN(tracks, "warp", warp);
  KPERF_COLUMN(tracks, "stamps", stamps);
  KPERF_COLUMN(tracks, "spans", spans);
  KPERF_COLUMN(tracks, "records", records);
  KPERF_COLUMN(tracks, "dropped", dropped);
  KPERF_COLUMN(tracks, "laps", laps);
  KPERF_COLUMN(tracks, "orphan_ends", orphanEnds);
  KPERF_COLUMN(tracks, "first_clock", firstClock);
  KPERF_COLUMN(tracks, "last_clock", lastClock);
  KPERF_COLUMN(stamps, "frame", frame);
  KPERF_COLUMN(stamps, "slot", slot);
  KPERF_COLUMN(stamps, "raw", raw);
  KPERF_COLUMN(stamps, "clock", clock);
  KPERF_COLUMN(spans, "region", region);
  KPERF_COLUMN(spans, "depth", depth);
  KPERF_COLUMN(spans, "parent", parent);
  KPERF_COLUMN(spans, "iteration", iteration);
  KPERF_COLUMN(spans, "start", start);
  KPERF_COLUMN(spans, "end", end);
  KPERF_COLUMN(spans, "complete", complete);
  KPERF_COLUMN(marks, "region", region);
  KPERF_COLUMN(marks, "span", span);
  KPERF_COLUMN(marks, "value", value);
  KPERF_COLUMN(sums, "track", track);
  KPERF_COLUMN(sums, "region", region);
  KPERF_COLUMN(sums, "count", count);
  KPERF_COLUMN(sums, "least", least);
  KPERF_COLUMN(sums, "most", most);
  KPERF_COLUMN(sums, "sum", sum);
  KPERF_COLUMN(sums, "squares", squares);
  KPERF_COLUMN(sums, "knows_squares", knowsSquares);
  KPERF_COLUMN(sums, "buckets", buckets);
  KPERF_COLUMN(totals, "track", track);
  KPERF_COLUMN(totals, "region", region);
  KPERF_COLUMN(totals, "count", count);
  KPERF_COLUMN(totals, "complete", complete);
  KPERF_COLUMN(totals, "cycles", cycles);
  KPERF_COLUMN(totals, "complete_cycles", completeCycles);
  KPERF_COLUMN(totals, "start", start);
  KPERF_COLUMN(totals, "end", end);
  KPERF_COLUMN(totals, "parent", parent);
#undef KPERF_COLUMN
  nb::list durations;
  for (Column<int64_t> &ofRegion : c.totals.durations)
    durations.append(column(std::move(ofRegion)));
  all["ctas"] = ctas;
  all["tracks"] = tracks;
  all["stamps"] = stamps;
  all["spans"] = spans;
  all["marks"] = marks;
  all["sums"] = sums;
  all["totals"] = totals;
  all["durations"] = durations;
  return all;
}

std::vector<Event> toEvents(const std::vector<uint8_t> &edges,
                            const std::vector<int32_t> &regions) {
  if (edges.size() != regions.size())
    throw std::invalid_argument("edges and regions of events differ in number");
  std::vector<Event> events(edges.size());
  for (size_t i = 0; i < edges.size(); ++i)
    events[i] = {static_cast<Edge>(edges[i]), regions[i]};
  return events;
}

Decoder makeDecoder(DecoderLayout layout) {
  if (std::string fault = layout.validate(); !fault.empty())
    throw std::invalid_argument("layout: " + fault);
  return Decoder(std::move(layout));
}

void bindConstants(nb::module_ &module) {
  module.attr("LAYOUT_VERSION") = kLayoutVersion;
  module.attr("WORD_BYTES") = kWordBytes;
  module.attr("BUFFER_ALIGNMENT") = kBufferAlignment;
  module.attr("EVERY_CTA_CODE") = kEveryCtaCode;
  module.attr("CTA_MAGIC") = kCtaMagic;
  module.attr("CTA_HEADER_WORDS") = kCtaHeaderWords;
  module.attr("SEGMENT_HEADER_WORDS") = kSegmentHeaderWords;
  module.attr("TAG_BASE") = kTagBase;
  module.attr("MAX_FRAMES") = kMaxFrames;
  module.attr("BUCKETS") = kBuckets;
  module.attr("SUMS_WORDS") = kSumsWords;
  module.attr("HALF_TRAILER_WORDS") = kHalfTrailerWords;
  module.attr("CONTROL_ENTRY_WORD") = kControlEntryWord;
  module.attr("CONTROL_WORDS") = kControlWords;
  module.attr("STOPPED_WORD") = uint32_t(kStoppedWord);
  module.attr("PATIENCE_WORD") = uint32_t(kPatienceWord);
  module.attr("LAPS_ENDED_WORD") = uint32_t(kLapsEndedWord);
  module.attr("LAPS_TAKEN_WORD") = uint32_t(kLapsTakenWord);
  module.attr("TO_HEADER_WORD") = uint32_t(kToHeaderWord);
  module.def("cta_bytes", &ctaBytes, nb::arg("total_warps"),
             nb::arg("words_per_warp"),
             "Bytes of one CTA's share of a buffer.");
  module.def("shared_bytes", &sharedBytes, nb::arg("total_warps"),
             nb::arg("words_per_warp"),
             "Bytes of a CTA's shared memory that records take where they are "
             "held there.");
  module.def("segment_offset", &segmentOffset, nb::arg("warp"),
             nb::arg("words_per_warp"),
             "Byte offset of a warp's segment in its CTA's share.");
  module.def(
      "fnv1a",
      [](nb::bytes data) {
        return fnv1a(static_cast<const char *>(data.data()), data.size());
      },
      nb::arg("data"), "The hash of layouts: FNV-1a, 32 bits.");
}

nb::object decode(const Decoder &decoder, Bytes data, Ids ctaIds,
                  std::tuple<uint32_t, uint32_t, uint32_t> grid, bool stamps,
                  bool spans, bool totals, std::optional<Ids> warpWords) {
  Columns columns;
  std::optional<DecodeError> error;
  {
    nb::gil_scoped_release release;
    auto [x, y, z] = grid;
    RawShares shares{
        {data.data(), data.size()}, {ctaIds.data(), ctaIds.size()}, {}};
    if (warpWords)
      shares.warpWords = {warpWords->data(), warpWords->size()};
    error = decoder.decode(shares, {x, y, z}, {stamps, spans, totals}, columns);
  }
  if (error)
    return nb::cast(std::move(*error));
  return columnsToDict(std::move(columns));
}

} // namespace

namespace kperfir::python {

void bindRecord(nb::module_ &module) {
  bindConstants(module);

  nb::class_<DecodeError>(module, "DecodeError",
                          "Why a buffer cannot be decoded. `warp` and `word` "
                          "are -1 where they do not apply.")
      .def_ro("cta", &DecodeError::cta)
      .def_ro("warp", &DecodeError::warp)
      .def_ro("word", &DecodeError::word)
      .def_ro("found", &DecodeError::found)
      .def_ro("expected", &DecodeError::expected);

  nb::class_<DecoderLayout>(
      module, "DecoderLayout",
      "What the decoder needs of a layout. Region kinds: "
      "0 other, 1 loop, 2 iteration, 3 mark; edges: 0 start, "
      "1 end, 2 mark, 3 gap.")
      .def(nb::init<>())
      .def_rw("hash", &DecoderLayout::hash)
      .def_rw("ring", &DecoderLayout::ring)
      .def_rw("aggregate", &DecoderLayout::aggregate)
      .def_rw("total_warps", &DecoderLayout::totalWarps)
      .def_rw("words_per_warp", &DecoderLayout::wordsPerWarp)
      .def_rw("max_frame_words", &DecoderLayout::maxFrameWords)
      .def_rw("frame_align", &DecoderLayout::frameAlign)
      .def_rw("tag_first", &DecoderLayout::tagFirst)
      .def(
          "set_regions",
          [](DecoderLayout &self, std::vector<int32_t> parents,
             const std::vector<uint8_t> &kinds,
             std::vector<uint8_t> valueWords) {
            self.regionParents = std::move(parents);
            self.regionValueWords = std::move(valueWords);
            self.regionKinds.clear();
            for (uint8_t kind : kinds)
              self.regionKinds.push_back(static_cast<RegionKind>(kind));
          },
          nb::arg("parents"), nb::arg("kinds"),
          nb::arg("value_words") = std::vector<uint8_t>())
      .def(
          "set_frames",
          [](DecoderLayout &self, std::vector<uint32_t> frameOffsets,
             std::vector<uint32_t> stampOffsets,
             const std::vector<uint8_t> &edges,
             const std::vector<int32_t> &regions) {
            self.events = toEvents(edges, regions);
            self.frameOffsets = std::move(frameOffsets);
            self.stampOffsets = std::move(stampOffsets);
          },
          nb::arg("frame_offsets"), nb::arg("stamp_offsets"), nb::arg("edges"),
          nb::arg("regions"));

  nb::class_<Decoder>(module, "Decoder", "Decodes the buffers of one layout.")
      .def(
          "__init__",
          [](Decoder *self, const DecoderLayout &layout) {
            new (self) Decoder(makeDecoder(layout));
          },
          nb::arg("layout"))
      .def(
          "decode", &decode, nb::arg("data"), nb::arg("cta_ids"),
          nb::arg("grid"), nb::arg("stamps") = false, nb::arg("spans") = true,
          nb::arg("totals") = false, nb::arg("warp_words") = nb::none(),
          "Columns of `ctas`, `tracks`, `stamps`, `spans`, `marks`, `sums` and "
          "`totals`, and `durations`, an array per region, or a "
          "DecodeError.\n\n`data` holds the shares of the CTAs `cta_ids` "
          "(linear), one after the other; `warp_words`, if given, the size of "
          "each segment.");
}

} // namespace kperfir::python
