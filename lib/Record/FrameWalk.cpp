//===- FrameWalk.cpp - Find the frames of a warp's segment ----------------===//

#include "Record/FrameWalk.h"

#include <algorithm>
#include <cstdio>

namespace kperfir::record {

static std::string hex(uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%08x", value);
  return text;
}

static std::string number(uint64_t value) { return std::to_string(value); }

FrameWalk::FrameWalk(const DecoderLayout &plan) : plan(plan) {
  for (size_t frame = 0; frame + 1 < plan.frameOffsets.size(); ++frame) {
    uint32_t count = plan.frameOffsets[frame + 1] - plan.frameOffsets[frame];
    frameSizes.push_back(plan.frameWords(frame));
    Share share{count, frameSizes.back()};
    least = std::min(least, share);
    most = std::max(most, share);
  }
}

std::optional<DecodeError> FrameWalk::run(const Segment &segment) {
  frames.clear();
  stamps = 0;
  cutStamps = 0;
  if (auto error = readHeader(segment))
    return error;
  uint32_t end = cursor / kWordBytes;
  if (auto error = plan.tagFirst ? forth(segment, end) : back(segment, end, 0))
    return error;
  uint64_t stampsOfThisLap = stamps;
  // What the last lap wrote at the cursor and behind it is still there.
  if (laps != 0)
    if (auto error = back(segment, lapEnd / kWordBytes, end))
      return error;
  return checkCounters(segment, stampsOfThisLap);
}

std::optional<DecodeError> FrameWalk::readHeader(const Segment &segment) {
  cursor = loadWord(segment.header, kCursorWord);
  records = loadWord(segment.header, kRecordsWord);
  lapEnd = loadWord(segment.header, kLapEndWord);
  laps = loadWord(segment.header, kLapsWord);
  uint32_t size = segment.words * kWordBytes;
  limit = static_cast<uint32_t>(std::max<int64_t>(
      cursorLimitBytes(segment.words, plan.maxFrameWords), 0));
  uint32_t lastCursor = plan.ring || plan.tagFirst ? limit : size;
  if (cursor % kWordBytes != 0 || cursor > lastCursor)
    return segment.error(-1, "cursor " + number(cursor),
                         "a multiple of 4 up to " + number(lastCursor));
  if (!plan.ring && (laps != 0 || lapEnd != 0))
    return segment.error(-1, number(laps) + " laps, lap end " + number(lapEnd),
                         "no laps in a buffer that saturates");
  if ((laps == 0) != (lapEnd == 0))
    return segment.error(-1, number(laps) + " laps, lap end " + number(lapEnd),
                         "both or neither");
  if (laps != 0 &&
      (lapEnd % kWordBytes != 0 || lapEnd <= limit || lapEnd > size))
    return segment.error(-1, "lap end " + number(lapEnd),
                         "a multiple of 4 above " + number(limit) + ", up to " +
                             number(size));
  return std::nullopt;
}

std::optional<DecodeError> FrameWalk::readTag(const Segment &segment,
                                              uint32_t word, Tag &tag) const {
  auto frameCount = static_cast<uint32_t>(frameSizes.size());
  uint32_t found = loadWord(segment.data, word), id = found & kTagFrameMask;
  if ((found & kTagBaseMask) != kTagBase || id >= frameCount)
    return segment.error(word, hex(found),
                         "a tag, " + hex(kTagBase) + " to " +
                             hex(kTagBase + frameCount - 1));
  tag = {id, plan.frameOffsets[id + 1] - plan.frameOffsets[id], frameSizes[id]};
  return std::nullopt;
}

/// Collect the frames before \p end, where only one that passed the limit may
/// be cut short.
std::optional<DecodeError> FrameWalk::forth(const Segment &segment,
                                            uint32_t end) {
  Tag tag;
  for (uint32_t begin = 0; begin < end; begin += tag.words) {
    if (auto error = readTag(segment, begin, tag))
      return error;
    if (tag.words > end - begin) {
      if (cursor != limit)
        return segment.error(
            begin, "tag of a frame of " + number(tag.words) + " words",
            "at most " + number(end - begin) + " words");
      cutStamps = tag.stamps;
      break;
    }
    frames.push_back({begin + 1, tag.id});
    stamps += tag.stamps;
  }
  std::reverse(frames.begin(), frames.end());
  return std::nullopt;
}

/// Collect the frames that end at \p end and before it and begin at \p low or
/// behind it.
std::optional<DecodeError> FrameWalk::back(const Segment &segment, uint32_t end,
                                           uint32_t low) {
  Tag tag;
  while (end > low) {
    if (auto error = readTag(segment, end - 1, tag))
      return error;
    if (tag.words > end)
      return segment.error(end - 1,
                           "tag of a frame of " + number(tag.words) + " words",
                           "at most " + number(end) + " words");
    uint32_t begin = end - tag.words;
    if (begin < low)
      break; // The present lap has overwritten its beginning.
    frames.push_back({begin, tag.id});
    stamps += tag.stamps;
    end = begin;
  }
  return std::nullopt;
}

std::optional<DecodeError>
FrameWalk::checkCounters(const Segment &segment,
                         uint64_t stampsOfThisLap) const {
  std::string found = number(records) + " stamps executed";
  if (records < stamps + cutStamps)
    return segment.error(-1, found,
                         number(stamps + cutStamps) + " or more are stored");
  bool mayDrop = plan.ring       ? laps != 0
                 : plan.tagFirst ? cursor == limit
                                 : cursor > limit;
  if (!mayDrop && records != stamps)
    return segment.error(
        -1, found, number(stamps) + ": every frame had room and is stored");
  if (laps == 0)
    return std::nullopt;
  // A lap has more words than `limit`, at most all, and a known share
  // of them are stamps.
  uint64_t words = uint64_t(limit) / kWordBytes + 1;
  uint64_t lapMin = (words * least.stamps + least.words - 1) / least.words;
  uint64_t lapMax = uint64_t(segment.words) * most.stamps / most.words;
  uint64_t earlier = records - stampsOfThisLap;
  if (laps * lapMax + stamps > UINT32_MAX)
    return std::nullopt; // The count of stamps may have wrapped.
  if (earlier < laps * lapMin || earlier > laps * lapMax)
    return segment.error(-1, found,
                         number(laps * lapMin + stampsOfThisLap) + " to " +
                             number(laps * lapMax + stampsOfThisLap) + " in " +
                             number(laps) + " laps");
  return std::nullopt;
}

} // namespace kperfir::record
