//===- DecoderFuzzer.cpp - Any bytes decode to columns or to an error -----===//
//
// libFuzzer target where the compiler is clang. Elsewhere a small driver of its
// own: `kperfir_decoder_fuzzer [cases [seed]]` decodes seeded mutations. Build
// with the asan preset to find reads out of bounds.
//
//===----------------------------------------------------------------------===//

#include "Record/Decoder.h"
#include "Record/RecordLayout.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

using namespace kperfir::record;

namespace {

constexpr uint32_t kHash = 7;

/// Kernel > loop > iteration > {load, dot}, a mark with a value, a second role
/// with a gap; frames are [start] [start] [start start|end start|end] [mark]
/// [end end].
DecoderLayout makeLayout(bool ring, bool aggregate, bool tagFirst,
                         uint32_t words) {
  DecoderLayout layout;
  layout.hash = kHash;
  layout.ring = ring && !aggregate;
  layout.aggregate = aggregate;
  layout.tagFirst = tagFirst && !ring && !aggregate;
  layout.totalWarps = 2;
  layout.wordsPerWarp = words;
  layout.maxFrameWords = 4;
  layout.regionParents = {-1, 0, 1, 2, 2, 0, -1, 6};
  layout.regionKinds = {RegionKind::Other,     RegionKind::Loop,
                        RegionKind::Iteration, RegionKind::Other,
                        RegionKind::Other,     RegionKind::Mark,
                        RegionKind::Other,     RegionKind::Other};
  layout.regionValueWords = {0, 0, 0, 0, 0, 2, 0, 0};
  layout.frameOffsets = {0, 1, 2, 5, 6, 7, 9};
  layout.stampOffsets = {0, 1, 2, 4, 6, 7, 8, 10, 12, 13};
  layout.events = {{Edge::Start, 0}, {Edge::Start, 1}, {Edge::Start, 2},
                   {Edge::Start, 3}, {Edge::End, 3},   {Edge::Start, 4},
                   {Edge::End, 4},   {Edge::Mark, 5},  {Edge::End, 1},
                   {Edge::End, 0},   {Edge::Start, 6}, {Edge::Gap, 7},
                   {Edge::End, 6}};
  if (aggregate)
    layout.wordsPerWarp =
        kSumsWords * static_cast<uint32_t>(layout.regionKinds.size());
  return layout;
}

bool isOfSums(uint8_t choice) { return choice % 5 == 0; }
bool hasTagsFirst(uint8_t choice) { return choice & 0x40; }

/// The first byte chooses the layout, the rest is the buffer. Magic, hash and
/// CTA id are set, or nothing behind them would ever be read.
int decodeOne(const uint8_t *data, size_t size, bool &decoded) {
  if (size == 0)
    return 0;
  DecoderLayout layout =
      makeLayout(data[0] & 1, isOfSums(data[0]), hasTagsFirst(data[0]),
                 4 + (data[0] >> 1) % 24);
  if (!layout.validate().empty())
    std::abort();
  std::vector<uint8_t> buffer(layout.ctaBytes());
  std::memcpy(buffer.data(), data + 1, std::min(buffer.size(), size - 1));
  auto put = [&](uint32_t word, uint32_t value) {
    std::memcpy(buffer.data() + word * kWordBytes, &value, sizeof(value));
  };
  put(kCtaMagicWord, kCtaMagic);
  put(kLayoutHashWord, kHash);
  for (uint32_t word : {kCtaIdXWord, kCtaIdYWord, kCtaIdZWord})
    put(word, 0);
  uint32_t id = 0;
  Columns columns;
  bool stamps = data[0] & 2;
  auto error = Decoder(layout).decode({buffer, {&id, 1}, {}}, {1, 1, 1},
                                      {stamps, !stamps, true}, columns);
  decoded = !error;
  if (error && error->expected.empty())
    std::abort();
  for (size_t row = 0; !error && row < columns.spans.rows(); ++row) {
    int64_t parent = columns.spans.parent[row];
    if (columns.spans.end[row] < columns.spans.start[row] ||
        parent >= static_cast<int64_t>(row))
      std::abort();
  }
  return 0;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  bool decoded;
  return decodeOne(data, size, decoded);
}

#ifndef KPERFIR_LIBFUZZER
namespace {

/// Words that are near to valid ones: tags, cursors, clocks.
uint32_t randomWord(std::mt19937 &random) {
  switch (random() % 4) {
  case 0:
    return kTagBase + random() % 7;
  case 1:
    return 4 * (random() % 32);
  case 2:
    return 1000 + random() % 1000;
  default:
    return static_cast<uint32_t>(random());
  }
}

/// What decodeOne reads: its choice of a layout, and words with some damage.
std::vector<uint8_t> damagedInput(std::mt19937 &random, uint8_t choice,
                                  std::vector<uint32_t> words) {
  for (uint32_t i = random() % 4; i > 0; --i)
    words[random() % words.size()] = randomWord(random);
  std::vector<uint8_t> input(1 + words.size() * kWordBytes);
  input[0] = choice;
  std::memcpy(input.data() + 1, words.data(), words.size() * kWordBytes);
  if (random() % 8 == 0)
    input.resize(1 + random() % input.size());
  return input;
}

/// Sums of one execution of some regions.
std::vector<uint8_t> randomSums(std::mt19937 &random, uint8_t choice) {
  constexpr uint32_t kRegions = 8, kPerWarp = kRegions * kSumsWords;
  std::vector<uint32_t> words(kCtaHeaderWords + 2 * segmentWords(kPerWarp));
  words[kStartClockWord] = 1000;
  words[kEndClockWord] = 3000;
  uint32_t *header = words.data() + kCtaHeaderWords;
  header[kCursorWord] = kPerWarp * kWordBytes;
  for (uint32_t region = 0; region < kRegions; region += 1 + random() % 2) {
    uint32_t *sums = header + kSegmentHeaderWords + region * kSumsWords;
    uint32_t power = random() % 11;
    uint32_t cycles = 1u << power;
    sums[kLeastInvertedWord] = ~cycles;
    sums[kMostWord] = sums[kSumWord] = cycles;
    sums[kSquaresWord] = cycles * cycles;
    sums[kBucketsWord + power] = 1;
  }
  return damagedInput(random, choice, std::move(words));
}

/// A warp that runs its frames in a likely order.
std::vector<uint8_t> randomInput(std::mt19937 &random) {
  uint8_t choice = static_cast<uint8_t>(random());
  if (isOfSums(choice))
    return randomSums(random, choice);
  uint32_t perWarp = 4 + (choice >> 1) % 24;
  std::vector<uint32_t> words(kCtaHeaderWords + 2 * segmentWords(perWarp));
  words[kStartClockWord] = 1000;
  words[kEndClockWord] = 3000;
  for (uint32_t warp = 0; warp < 2; ++warp) {
    uint32_t *header =
        words.data() + kCtaHeaderWords + warp * segmentWords(perWarp);
    uint32_t *data = header + kSegmentHeaderWords;
    uint32_t at = 0, stamps = 0, clock = 1000;
    bool tagFirst = hasTagsFirst(choice) && !(choice & 1);
    uint32_t limit = tagFirst ? perWarp - 4 : perWarp;
    auto frame = [&](uint32_t id, uint32_t count) {
      if (!tagFirst && at + 4 > perWarp)
        return;
      stamps += count;
      auto put = [&](uint32_t word) {
        if (at < limit)
          data[at++] = word;
      };
      if (tagFirst)
        put(kTagBase + id);
      for (uint32_t i = 0; i < count; ++i)
        put(clock += random() % 90);
      if (!tagFirst)
        put(kTagBase + id);
    };
    if (warp == 1)
      for (uint32_t i = random() % 4; i > 0; --i)
        frame(5, 2);
    else {
      frame(0, 1);
      frame(1, 1);
      for (uint32_t i = random() % 4; i > 0; --i)
        frame(2, 3);
    }
    header[kCursorWord] = 4 * at;
    header[kRecordsWord] = stamps;
  }
  return damagedInput(random, choice, std::move(words));
}

} // namespace

int main(int argc, char **argv) {
  unsigned long cases = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100000;
  std::mt19937 random(
      argc > 2 ? static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10)) : 0);
  unsigned long accepted = 0;
  for (unsigned long i = 0; i < cases; ++i) {
    std::vector<uint8_t> input = randomInput(random);
    bool decoded = false;
    decodeOne(input.data(), input.size(), decoded);
    accepted += decoded;
  }
  std::printf("%lu cases, %lu decoded, %lu refused\n", cases, accepted,
              cases - accepted);
  // Both happen, or the generator is at fault.
  return cases >= 1000 && (accepted == 0 || accepted == cases);
}
#endif
