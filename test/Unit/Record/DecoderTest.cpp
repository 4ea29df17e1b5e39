//===- DecoderTest.cpp - Hand-written buffers and their spans -------------===//
//
// The layout of these tests: kernel 0, loop 1, iteration 2, load 3; frames
//   0: [start 0]   1: [start 1]   2: [start 2, start 3] [end 3]   3: [end 1,
//   end 0]
//
//===----------------------------------------------------------------------===//

#include "Record/Decoder.h"
#include "Record/RecordLayout.h"

#include <gmock/gmock.h>

#include <cstring>

using namespace kperfir::record;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr uint32_t kHash = 0xABCD;
constexpr uint32_t kTag0 = kTagBase, kTag1 = kTagBase + 1, kTag2 = kTagBase + 2,
                   kTag3 = kTagBase + 3;

DecoderLayout loopLayout(bool ring, uint32_t words) {
  DecoderLayout layout;
  layout.hash = kHash;
  layout.ring = ring;
  layout.totalWarps = 1;
  layout.wordsPerWarp = words;
  layout.maxFrameWords = 3;
  layout.regionParents = {-1, 0, 1, 2};
  layout.regionKinds = {RegionKind::Other, RegionKind::Loop,
                        RegionKind::Iteration, RegionKind::Other};
  layout.frameOffsets = {0, 1, 2, 4, 5};
  layout.stampOffsets = {0, 1, 2, 4, 5, 7};
  layout.events = {{Edge::Start, 0}, {Edge::Start, 1}, {Edge::Start, 2},
                   {Edge::Start, 3}, {Edge::End, 3},   {Edge::End, 1},
                   {Edge::End, 0}};
  return layout;
}

struct Buffer {
  std::vector<uint32_t> words;

  Buffer(const DecoderLayout &layout, std::vector<uint32_t> header,
         std::vector<uint32_t> data)
      : words(layout.ctaBytes() / kWordBytes) {
    words[kCtaMagicWord] = kCtaMagic;
    words[kLayoutHashWord] = kHash;
    words[kSmIdWord] = 9;
    words[kStartClockWord] = 100;
    words[kEndClockWord] = 1000;
    std::copy(header.begin(), header.end(), words.begin() + kCtaHeaderWords);
    std::copy(data.begin(), data.end(),
              words.begin() + kCtaHeaderWords + kSegmentHeaderWords);
  }

  std::optional<DecodeError> decode(const DecoderLayout &layout,
                                    Columns &columns) const {
    std::span bytes(reinterpret_cast<const uint8_t *>(words.data()),
                    words.size() * kWordBytes);
    uint32_t id = 0;
    return Decoder(layout).decode({bytes, {&id, 1}, {}}, {1, 1, 1},
                                  {true, true}, columns);
  }
};

} // namespace

TEST(Decoder, AGapEndsWithTheNextEventWhicheverThatIs) {
  // After the start of the loop a gap, up to the iteration; another one behind
  // the load, up to the end of the loop.
  DecoderLayout layout = loopLayout(/*ring=*/false, 16);
  layout.regionParents.insert(layout.regionParents.end(), {1, 2});
  layout.regionKinds.insert(layout.regionKinds.end(), 2, RegionKind::Other);
  layout.stampOffsets = {0, 1, 3, 5, 7, 9};
  layout.events = {{Edge::Start, 0}, {Edge::Start, 1}, {Edge::Gap, 4},
                   {Edge::Start, 2}, {Edge::Start, 3}, {Edge::End, 3},
                   {Edge::Gap, 5},   {Edge::End, 1},   {Edge::End, 0}};
  Buffer buffer(layout, {9 * 4, 5, 0, 0},
                {100, kTag0, 110, kTag1, 120, 130, kTag2, 150, kTag3});
  Columns columns;
  ASSERT_FALSE(buffer.decode(layout, columns));
  EXPECT_THAT(columns.spans.region, ElementsAre(0, 1, 4, 2, 3, 5));
  EXPECT_THAT(columns.spans.depth, ElementsAre(0, 1, 2, 2, 3, 3));
  EXPECT_THAT(columns.spans.start, ElementsAre(100, 110, 110, 120, 120, 130));
  EXPECT_THAT(columns.spans.end, ElementsAre(150, 150, 120, 150, 130, 150));
  EXPECT_THAT(columns.spans.complete, Each(1));
}

TEST(Decoder, ReplaysALoopOfTwoIterations) {
  DecoderLayout layout = loopLayout(/*ring=*/false, 16);
  Buffer buffer(
      layout, {4 * 12, 7, 0, 0},
      {110, kTag0, 120, kTag1, 130, 140, kTag2, 150, 170, kTag2, 180, kTag3});
  Columns columns;
  ASSERT_FALSE(buffer.decode(layout, columns));
  EXPECT_THAT(columns.spans.region, ElementsAre(0, 1, 2, 3, 2, 3));
  EXPECT_THAT(columns.spans.depth, ElementsAre(0, 1, 2, 3, 2, 3));
  EXPECT_THAT(columns.spans.parent, ElementsAre(-1, 0, 1, 2, 1, 4));
  EXPECT_THAT(columns.spans.iteration, ElementsAre(-1, -1, 0, 0, 1, 1));
  EXPECT_THAT(columns.spans.start, ElementsAre(110, 120, 130, 130, 150, 150));
  EXPECT_THAT(columns.spans.end, ElementsAre(180, 180, 150, 140, 180, 170));
  EXPECT_THAT(columns.spans.complete, ElementsAre(1, 1, 1, 1, 1, 1));
  EXPECT_THAT(columns.stamps.frame, ElementsAre(0, 1, 2, 2, 2, 2, 3));
  EXPECT_THAT(columns.stamps.slot, ElementsAre(0, 0, 0, 1, 0, 1, 0));
  EXPECT_THAT(columns.tracks.dropped, ElementsAre(0));
  EXPECT_THAT(columns.ctas.sm, ElementsAre(9));
}

TEST(Decoder, ReadsValuesBehindTheStamps) {
  // One frame: [mark 0, mark 1] [mark 2]; marks 0 and 2 carry two words and
  // one, which may look like a tag.
  DecoderLayout layout;
  layout.hash = kHash;
  layout.totalWarps = 1;
  layout.wordsPerWarp = 16;
  layout.maxFrameWords = 6;
  layout.regionParents = {-1, -1, -1};
  layout.regionKinds = {RegionKind::Mark, RegionKind::Mark, RegionKind::Mark};
  layout.regionValueWords = {2, 0, 1};
  layout.frameOffsets = {0, 2};
  layout.stampOffsets = {0, 2, 3};
  layout.events = {{Edge::Mark, 0}, {Edge::Mark, 1}, {Edge::Mark, 2}};
  ASSERT_EQ(layout.validate(), "");
  Buffer buffer(layout, {4 * 12, 4, 0, 0},
                {110, 120, 0xFFFFFFFF, 3, 7, kTag0, //
                 130, 140, kTag0, 0, kTag0, kTag0});
  Columns columns;
  ASSERT_FALSE(buffer.decode(layout, columns));
  EXPECT_THAT(columns.marks.span, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(columns.marks.value,
              ElementsAre(0x3FFFFFFFF, 0, 7, kTag0, 0, kTag0));
  EXPECT_THAT(columns.spans.start, ElementsAre(110, 110, 120, 130, 130, 140));
  EXPECT_THAT(columns.stamps.slot, ElementsAre(0, 1, 0, 1));

  layout.maxFrameWords = 5;
  EXPECT_EQ(layout.validate(), "size of frame 0");
  layout.regionKinds[0] = RegionKind::Other;
  EXPECT_EQ(layout.validate(), "value of region 0");
}

TEST(Decoder, ClosesWhatWasOpenWhenTheBufferSaturated) {
  // 7 words, limit 4: the third frame begins at word 4 and fills the buffer.
  DecoderLayout layout = loopLayout(/*ring=*/false, 7);
  Buffer buffer(layout, {4 * 7, 107, 0, 0},
                {110, kTag0, 120, kTag1, 130, 140, kTag2});
  Columns columns;
  ASSERT_FALSE(buffer.decode(layout, columns));
  EXPECT_THAT(columns.spans.region, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(columns.spans.end, ElementsAre(140, 140, 140, 140));
  EXPECT_THAT(columns.spans.complete, ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(columns.tracks.dropped, ElementsAre(103));
}

/// Tags first: 13 words of at most 3 a frame, so the cursor stops at word 10.
static DecoderLayout tagFirstLayout() {
  DecoderLayout layout = loopLayout(/*ring=*/false, 13);
  layout.tagFirst = true;
  return layout;
}

TEST(Decoder, LeavesAFrameOutThatPassedTheLimit) {
  // The third iteration begins at word 10 and passes the limit of 12. Its clock
  // looks like a tag, and what came later lies behind the limit.
  DecoderLayout layout = tagFirstLayout();
  layout.wordsPerWarp = 15;
  Buffer buffer(layout, {4 * 12, 100, 0, 0},
                {kTag0, 110, kTag1, 120, kTag2, 130, 140, kTag2, 150, 160,
                 kTag2, kTag0, kTag3, kTag0, kTag1});
  Columns columns;
  ASSERT_FALSE(buffer.decode(layout, columns));
  EXPECT_THAT(columns.spans.region, ElementsAre(0, 1, 2, 3, 2, 3));
  EXPECT_THAT(columns.spans.start, ElementsAre(110, 120, 130, 130, 150, 150));
  EXPECT_THAT(columns.spans.complete, ElementsAre(0, 0, 1, 1, 0, 1));
  EXPECT_THAT(columns.tracks.dropped, ElementsAre(94));
}

TEST(Decoder, AcceptsFramesThatEndAtTheLimit) {
  DecoderLayout layout = tagFirstLayout();
  Buffer buffer(layout, {4 * 10, 6, 0, 0},
                {kTag0, 110, kTag1, 120, kTag2, 130, 140, kTag2, 150, 160});
  for (uint32_t executed : {6u, 9u}) {
    buffer.words[kCtaHeaderWords + kRecordsWord] = executed;
    Columns columns;
    ASSERT_FALSE(buffer.decode(layout, columns));
    EXPECT_THAT(columns.stamps.raw, ElementsAre(110, 120, 130, 140, 150, 160));
    EXPECT_THAT(columns.tracks.dropped, ElementsAre(executed - 6));
  }
}

TEST(Decoder, RefusesWhatTagsInFrontContradict) {
  DecoderLayout layout = tagFirstLayout();
  std::vector<uint32_t> data{kTag0, 110, kTag1, 120, kTag2,
                             130,   140, kTag2, 150, 160};
  auto refuses = [&](uint32_t cursor, uint32_t records, uint32_t word,
                     uint32_t value) {
    Buffer buffer(layout, {cursor, records, 0, 0}, data);
    buffer.words[kCtaHeaderWords + kSegmentHeaderWords + word] = value;
    Columns columns;
    return bool(buffer.decode(layout, columns));
  };
  EXPECT_FALSE(refuses(28, 4, 0, kTag0));
  EXPECT_TRUE(refuses(32, 4, 0, kTag0));     // Cut below the limit.
  EXPECT_TRUE(refuses(28, 5, 0, kTag0));     // Dropped below the limit.
  EXPECT_TRUE(refuses(44, 6, 0, kTag0));     // Beyond the limit.
  EXPECT_TRUE(refuses(28, 4, 2, 120));       // No tag.
  EXPECT_TRUE(refuses(40, 5, 0, kTag0));     // Fewer than are stored.
  EXPECT_TRUE(refuses(40, 4, 7, kTag0 + 9)); // No frame of the kernel.
  layout.ring = true;
  EXPECT_EQ(layout.validate(), "place of the tags");
}

TEST(Decoder, ReopensAncestorsWhenARingLapped) {
  // 8 words, limit 5. Frames 0, 1, 2 end the first lap at word 7; then two
  // more iterations: the second ends that lap at word 6; then the end.
  DecoderLayout layout = loopLayout(/*ring=*/true, 8);
  Buffer buffer(layout, {4 * 2, 9, 4 * 6, 2},
                {180, kTag3, kTag2, 160, 170, kTag2, kTag2, 0xDEAD});
  Columns columns;
  ASSERT_FALSE(buffer.decode(layout, columns));
  EXPECT_THAT(columns.stamps.raw, ElementsAre(160, 170, 180));
  EXPECT_THAT(columns.spans.region, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(columns.spans.start, ElementsAre(160, 160, 160, 160));
  EXPECT_THAT(columns.spans.end, ElementsAre(180, 180, 180, 170));
  EXPECT_THAT(columns.spans.complete, ElementsAre(0, 0, 1, 1));
  // How many iterations came before is not known.
  EXPECT_THAT(columns.spans.iteration, ElementsAre(-1, -1, -1, -1));
  EXPECT_THAT(columns.tracks.dropped, ElementsAre(6));
  EXPECT_THAT(columns.tracks.orphanEnds, ElementsAre(0));
}

TEST(Decoder, CountsAnEndWhoseStartIsLost) {
  DecoderLayout layout = loopLayout(/*ring=*/true, 3);
  // Every frame fills or passes the limit of 0: each one is a lap.
  Buffer buffer(layout, {0, 5, 4 * 2, 4}, {180, kTag3, kTag2});
  Columns columns;
  ASSERT_FALSE(buffer.decode(layout, columns));
  // The first event, end 1, has lost its start; end 0 closes what encloses it.
  EXPECT_THAT(columns.spans.region, ElementsAre(0));
  EXPECT_THAT(columns.spans.complete, ElementsAre(0));
  EXPECT_THAT(columns.tracks.orphanEnds, ElementsAre(1));
  EXPECT_THAT(columns.tracks.dropped, ElementsAre(4));
}

TEST(Decoder, ExtendsClocksOverTheEndOfTheirRange) {
  DecoderLayout layout = loopLayout(/*ring=*/false, 16);
  Buffer buffer(layout, {4 * 4, 2, 0, 0}, {0xFFFFFFF0, kTag0, 5, kTag1});
  buffer.words[kStartClockWord] = 0xFFFFFFF8; // The warp is ahead of thread 0.
  buffer.words[kStartClockWord + 1] = 2;
  buffer.words[kEndClockWord] = 50;
  buffer.words[kEndClockWord + 1] = 3;
  Columns columns;
  ASSERT_FALSE(buffer.decode(layout, columns));
  EXPECT_THAT(columns.stamps.clock, ElementsAre(0x2FFFFFFF0ll, 0x300000005ll));
}

struct Fault {
  const char *name;
  uint32_t word; // Of the CTA's share.
  uint32_t value;
  int64_t dataWord; // Reported one; -1: none.
  const char *found;
};

class DecoderRefuses : public testing::TestWithParam<Fault> {};

TEST_P(DecoderRefuses, AndSaysWhere) {
  DecoderLayout layout = loopLayout(/*ring=*/false, 16);
  Buffer buffer(layout, {4 * 7, 4, 0, 0},
                {110, kTag0, 120, kTag1, 130, 140, kTag2});
  Fault fault = GetParam();
  buffer.words[fault.word] = fault.value;
  Columns columns;
  std::optional<DecodeError> error = buffer.decode(layout, columns);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->cta, 0);
  EXPECT_EQ(error->word, fault.dataWord);
  EXPECT_THAT(error->found, HasSubstr(fault.found));
  EXPECT_FALSE(error->expected.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Faults, DecoderRefuses,
    testing::Values(Fault{"Magic", 0, 0x4B504632, -1, "magic"},
                    Fault{"Hash", 1, 1, -1, "hash 1"},
                    Fault{"CtaId", 2, 1, -1, "ctaid (1, 0, 0)"},
                    Fault{"EndBeforeStart", 10, 99, -1, "end clock 99"},
                    Fault{"HugeTime", 13, 0x80000000, -1, "time"},
                    Fault{"Reserved", 15, 1, -1, "reserved"},
                    Fault{"CursorUnaligned", 16, 27, -1, "cursor 27"},
                    Fault{"CursorOutside", 16, 68, -1, "cursor 68"},
                    Fault{"CursorInFrame", 16, 24, 5, "0x0000008c"},
                    Fault{"TooFewRecords", 17, 3, -1, "3 stamps"},
                    Fault{"TooManyRecords", 17, 5, -1, "5 stamps"},
                    Fault{"LapsUnderSaturate", 19, 1, -1, "1 laps"},
                    Fault{"NotATag", 26, 7, 6, "0x00000007"},
                    Fault{"UnknownFrame", 26, kTagBase + 4, 6, "0x4b500004"},
                    Fault{"FrameBeforeBegin", 21, kTag2, 1, "frame of 3 words"},
                    Fault{"WrongOrder", 21, kTag1, 0, "start of region 1"},
                    Fault{"ClockFarAway", 20, 0x70000000, 0,
                          "clock 1879048192"}),
    [](const auto &info) { return info.param.name; });

/// The lapped ring of 8 words above, with one word of its header changed.
static bool acceptsRing(uint32_t headerWord, uint32_t value) {
  DecoderLayout layout = loopLayout(/*ring=*/true, 8);
  Buffer buffer(layout, {4 * 2, 9, 4 * 6, 2},
                {180, kTag3, kTag2, 160, 170, kTag2, kTag2, 0xDEAD});
  buffer.words[kCtaHeaderWords + headerWord] = value;
  Columns columns;
  return !buffer.decode(layout, columns);
}

TEST(Decoder, RefusesARingHeaderThatNoLapLeaves) {
  EXPECT_TRUE(acceptsRing(kLapEndWord, 4 * 6));
  EXPECT_FALSE(acceptsRing(kLapEndWord, 4 * 5)); // The limit: no lap ends here.
  EXPECT_FALSE(acceptsRing(kLapEndWord, 4 * 9));
  EXPECT_FALSE(acceptsRing(kLapEndWord, 4 * 6 + 1));
  EXPECT_FALSE(acceptsRing(kLapEndWord, 0));
  EXPECT_FALSE(acceptsRing(kLapsWord, 0));
  EXPECT_FALSE(acceptsRing(kCursorWord, 4 * 6)); // It would have lapped.
  // One stamp of this lap; two laps of 6 to 8 words, which hold 3 to 5 each.
  EXPECT_FALSE(acceptsRing(kRecordsWord, 6));
  EXPECT_TRUE(acceptsRing(kRecordsWord, 7));
  EXPECT_TRUE(acceptsRing(kRecordsWord, 11));
  EXPECT_FALSE(acceptsRing(kRecordsWord, 12));
}

TEST(Decoder, RefusesASecondEndWithoutAStart) {
  // Only the first event may have lost its start: 5 words, limit 2; the last
  // frame ended a lap at word 4, after another of its kind.
  DecoderLayout layout = loopLayout(/*ring=*/true, 5);
  Buffer buffer(layout, {0, 7, 4 * 4, 3}, {170, kTag3, 180, kTag3});
  Columns columns;
  std::optional<DecodeError> error = buffer.decode(layout, columns);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->word, 2);
  EXPECT_EQ(error->found, "end of region 1");
}

TEST(Decoder, AcceptsABufferThatIsFull) {
  // Word 16 is the end of the data; the cursor may stand there.
  DecoderLayout layout = loopLayout(/*ring=*/false, 4);
  Buffer buffer(layout, {4 * 4, 2, 0, 0}, {110, kTag0, 120, kTag1});
  Columns columns;
  EXPECT_FALSE(buffer.decode(layout, columns));
}

TEST(Decoder, RefusesABufferOfAnotherSize) {
  DecoderLayout layout = loopLayout(/*ring=*/false, 16);
  std::vector<uint8_t> bytes(layout.ctaBytes() + 1);
  uint32_t id = 0;
  Columns columns;
  auto error =
      Decoder(layout).decode({bytes, {&id, 1}, {}}, {1, 1, 1}, {}, columns);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->cta, -1);
}

TEST(DecoderLayout, ValidateNamesWhatIsWrong) {
  auto faultOf = [](auto change) {
    DecoderLayout layout = loopLayout(/*ring=*/false, 16);
    change(layout);
    return layout.validate();
  };
  EXPECT_EQ(faultOf([](auto &) {}), "");
  EXPECT_THAT(faultOf([](auto &l) { l.totalWarps = 0; }), HasSubstr("warps"));
  EXPECT_THAT(faultOf([](auto &l) { l.wordsPerWarp = 2; }), HasSubstr("words"));
  EXPECT_THAT(faultOf([](auto &l) { l.regionParents[1] = 1; }),
              HasSubstr("parent of region 1"));
  EXPECT_THAT(faultOf([](auto &l) { l.regionParents[2] = 0; }),
              HasSubstr("parent of iteration 2"));
  EXPECT_THAT(faultOf([](auto &l) { l.frameOffsets.back() = 6; }),
              HasSubstr("offsets"));
  EXPECT_THAT(faultOf([](auto &l) { l.stampOffsets[1] = 0; }),
              HasSubstr("without an event"));
  EXPECT_THAT(faultOf([](auto &l) { l.events[0].region = 4; }),
              HasSubstr("event of region 4"));
  EXPECT_THAT(faultOf([](auto &l) { l.events[4].edge = Edge::Mark; }),
              HasSubstr("edge of region"));
  EXPECT_THAT(faultOf([](auto &l) { l.events[1].edge = Edge::Gap; }),
              HasSubstr("gap of region 1"));
  EXPECT_THAT(faultOf([](auto &l) { l.maxFrameWords = 2; }),
              HasSubstr("size of frame 2"));
}
