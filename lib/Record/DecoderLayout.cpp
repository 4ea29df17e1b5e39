//===- DecoderLayout.cpp - What decoding needs of a layout ----------------===//

#include "Record/DecoderLayout.h"

#include "Record/RecordLayout.h"

#include <algorithm>

namespace kperfir::record {

// What the decoder's arithmetic and recursion-free replay are sized for; far
// above what a kernel can have.
static constexpr uint32_t kMaxWarps = 1024;
static constexpr uint32_t kMaxWordsPerWarp = 1u << 28;
static constexpr int kMaxDepth = 4096;

/// Offsets of a table of \p rows rows into one of \p total.
static bool areOffsets(const std::vector<uint32_t> &offsets, size_t total) {
  return !offsets.empty() && offsets.front() == 0 && offsets.back() == total &&
         std::is_sorted(offsets.begin(), offsets.end());
}

uint64_t DecoderLayout::ctaBytes() const {
  return record::ctaBytes(totalWarps, wordsPerWarp);
}

uint32_t DecoderLayout::frameWords(size_t frame) const {
  uint32_t first = frameOffsets[frame], last = frameOffsets[frame + 1];
  uint32_t values = 0;
  for (uint32_t i = stampOffsets[first]; i < stampOffsets[last]; ++i)
    values += valueWords(events[i].region);
  return record::frameWords(last - first, values, frameAlign);
}

std::string DecoderLayout::validate() const {
  if (totalWarps == 0 || totalWarps > kMaxWarps)
    return "number of warps";
  if (maxFrameWords == 0 || wordsPerWarp < maxFrameWords ||
      wordsPerWarp > kMaxWordsPerWarp)
    return "words per warp";
  if (aggregate && (ring || wordsPerWarp != kSumsWords * regionKinds.size()))
    return "words per warp";
  if (tagFirst && (ring || aggregate))
    return "place of the tags";
  if (frameAlign == 0 || frameAlign > kMaxFrameAlign)
    return "alignment of frames";
  if (regionKinds.size() != regionParents.size())
    return "kinds of the regions";
  if (!regionValueWords.empty() &&
      regionValueWords.size() != regionKinds.size())
    return "values of the regions";
  std::vector<int> depth(regionParents.size());
  for (size_t region = 0; region < regionParents.size(); ++region) {
    int32_t parent = regionParents[region];
    if (parent < -1 || parent >= static_cast<int64_t>(region))
      return "parent of region " + std::to_string(region);
    depth[region] = parent < 0 ? 0 : depth[static_cast<size_t>(parent)] + 1;
    if (depth[region] > kMaxDepth)
      return "depth of region " + std::to_string(region);
    bool inLoop = parent >= 0 &&
                  regionKinds[static_cast<size_t>(parent)] == RegionKind::Loop;
    if (regionKinds[region] == RegionKind::Iteration && !inLoop)
      return "parent of iteration " + std::to_string(region);
    uint32_t words = valueWords(static_cast<int32_t>(region));
    if (words > 2 || (words != 0 && regionKinds[region] != RegionKind::Mark))
      return "value of region " + std::to_string(region);
  }
  if (stampOffsets.empty() || !areOffsets(stampOffsets, events.size()) ||
      !areOffsets(frameOffsets, stampOffsets.size() - 1))
    return "offsets of frames and stamps";
  if (frameOffsets.size() - 1 > kMaxFrames)
    return "number of frames";
  for (size_t stamp = 0; stamp + 1 < stampOffsets.size(); ++stamp)
    if (stampOffsets[stamp] == stampOffsets[stamp + 1])
      return "stamp " + std::to_string(stamp) + " without an event";
  for (Event event : events) {
    bool known = event.region >= 0 &&
                 static_cast<size_t>(event.region) < regionKinds.size();
    if (!known || event.edge > Edge::Gap)
      return "event of region " + std::to_string(event.region);
    RegionKind kind = regionKinds[static_cast<size_t>(event.region)];
    if ((event.edge == Edge::Mark) != (kind == RegionKind::Mark))
      return "edge of region " + std::to_string(event.region);
    if (event.edge == Edge::Gap && kind != RegionKind::Other)
      return "gap of region " + std::to_string(event.region);
  }
  for (size_t frame = 0; frame + 1 < frameOffsets.size(); ++frame)
    if (frameOffsets[frame] == frameOffsets[frame + 1] ||
        frameWords(frame) > maxFrameWords)
      return "size of frame " + std::to_string(frame);
  return {};
}

} // namespace kperfir::record
