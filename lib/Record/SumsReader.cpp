//===- SumsReader.cpp - Sums of the executions of a warp ------------------===//

#include "Record/SumsReader.h"

#include "Record/ClockUnwrap.h"
#include "Record/RecordLayout.h"

#include <algorithm>
#include <bit>

namespace kperfir::record {
namespace {

using Wide = unsigned __int128;

std::string number(uint64_t value) { return std::to_string(value); }

uint32_t bucketOf(uint32_t cycles) {
  return static_cast<uint32_t>(std::bit_width(cycles | 1) - 1);
}

uint64_t loadWide(const uint8_t *words, uint32_t index) {
  return loadWord(words, index) | uint64_t(loadWord(words, index + 1)) << 32;
}

/// The words of one region, and where they are.
struct Sums {
  uint32_t first;
  uint32_t open, least, most;
  uint64_t sum, squares, count = 0;
  uint32_t lowest = kBuckets, highest = 0; // Buckets that are not empty.

  Sums(const uint8_t *data, uint32_t first)
      : first(first), open(loadWord(data, first + kOpenWord)),
        least(~loadWord(data, first + kLeastInvertedWord)),
        most(loadWord(data, first + kMostWord)),
        sum(loadWide(data, first + kSumWord)),
        squares(loadWide(data, first + kSquaresWord)) {
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      uint32_t executions = loadWord(data, first + kBucketsWord + bucket);
      if (executions == 0)
        continue;
      count += executions;
      lowest = std::min(lowest, bucket);
      highest = bucket;
    }
  }

  bool isEmpty() const {
    return ~least == 0 && most == 0 && sum == 0 && squares == 0;
  }
  bool sumIsPossible() const {
    return Wide(count) * least <= sum && sum <= Wide(count) * most;
  }
  /// With a larger product the sum of squares may have wrapped.
  bool knowsSquares() const { return Wide(sum) * most <= UINT64_MAX; }
  bool squaresArePossible() const {
    return Wide(least) * sum <= squares && squares <= Wide(most) * sum;
  }
};

} // namespace

std::optional<DecodeError> SumsReader::readHeader(const Segment &segment) {
  uint32_t cursor = loadWord(segment.header, kCursorWord);
  uint32_t size = plan.wordsPerWarp * kWordBytes;
  if (cursor != 0 && cursor != size)
    return segment.error(-1, "cursor " + number(cursor),
                         "0 or " + number(size));
  for (uint32_t word : {kRecordsWord, kLapEndWord, kLapsWord})
    if (uint32_t value = loadWord(segment.header, word); value != 0)
      return segment.error(
          -1, number(value) + " in word " + number(word) + " of the header",
          "0 with sums");
  return std::nullopt;
}

std::optional<DecodeError> SumsReader::readRegion(const Segment &segment,
                                                  uint32_t region) {
  Sums sums(segment.data, region * kSumsWords);
  auto error = [&](uint32_t word, std::string found, std::string expected) {
    return segment.error(sums.first + word, std::move(found),
                         std::move(expected));
  };
  if (sums.open != 0)
    return error(kOpenWord, number(sums.open), "0: every iteration ended");
  if (sums.count == 0) {
    if (!sums.isEmpty())
      return error(kBucketsWord, "no execution, and sums of some",
                   "executions in the buckets");
    return std::nullopt;
  }
  if (sums.least > sums.most || bucketOf(sums.least) != sums.lowest ||
      bucketOf(sums.most) != sums.highest)
    return error(kLeastInvertedWord,
                 number(sums.least) + " to " + number(sums.most) + " cycles",
                 "durations of buckets " + number(sums.lowest) + " to " +
                     number(sums.highest));
  if (ctaCycles < int64_t(1) << 31 && sums.most > ctaCycles + kSlackCycles)
    return error(kMostWord, number(sums.most) + " cycles",
                 "a time in a CTA of " +
                     number(static_cast<uint64_t>(ctaCycles)));
  if (!sums.sumIsPossible())
    return error(kSumWord, number(sums.sum) + " cycles",
                 "a sum of " + number(sums.count) + " executions of " +
                     number(sums.least) + " to " + number(sums.most));
  if (sums.knowsSquares() && !sums.squaresArePossible())
    return error(kSquaresWord, number(sums.squares),
                 "a sum of squares of such executions");
  columns.region.push_back(static_cast<int32_t>(region));
  columns.count.push_back(static_cast<int64_t>(sums.count));
  columns.least.push_back(sums.least);
  columns.most.push_back(sums.most);
  columns.sum.push_back(sums.sum);
  columns.squares.push_back(sums.squares);
  columns.knowsSquares.push_back(sums.knowsSquares());
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket)
    columns.buckets.push_back(
        loadWord(segment.data, sums.first + kBucketsWord + bucket));
  executed += static_cast<int64_t>(sums.count);
  return std::nullopt;
}

std::optional<DecodeError> SumsReader::run(const Segment &segment,
                                           int64_t cycles) {
  executed = 0;
  ctaCycles = cycles;
  if (auto error = readHeader(segment))
    return error;
  if (loadWord(segment.header, kCursorWord) == 0)
    return std::nullopt; // It recorded nothing; its words were not copied.
  for (uint32_t region = 0; region < plan.regionKinds.size(); ++region)
    if (auto error = readRegion(segment, region))
      return error;
  return std::nullopt;
}

} // namespace kperfir::record
