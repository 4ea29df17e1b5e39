//===- FrameWalk.h - Find the frames of a warp's segment ------------------===//
//
// Owns how a segment is read: cursors, laps, tags, counters. What the stamps of
// a frame mean is Replay's business.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_LIB_RECORD_FRAMEWALK_H
#define KPERFIR_LIB_RECORD_FRAMEWALK_H

#include "Record/Decoder.h"
#include "Record/RecordLayout.h"

#include <cstring>
#include <utility>

namespace kperfir::record {

/// Word \p index behind \p words, which need not be aligned.
inline uint32_t loadWord(const uint8_t *words, uint64_t index) {
  uint32_t value;
  std::memcpy(&value, words + index * kWordBytes, sizeof(value));
  return value;
}

/// The words of one warp, and what error reports need to find them.
struct Segment {
  int64_t cta;
  int32_t warp;
  const uint8_t *header;
  const uint8_t *data;
  uint32_t words; // Of `data`: how many there is room for.

  DecodeError error(int64_t word, std::string found,
                    std::string expected) const {
    return {cta, warp, word, std::move(found), std::move(expected)};
  }
};

struct FramePosition {
  uint32_t begin; // Of its first stamp, in data words.
  uint32_t id;
};

/// Finds the frames of a segment by walking from tag to tag: back from its
/// cursors or, where frames begin with their tags, from the first one on.
class FrameWalk {
public:
  explicit FrameWalk(const DecoderLayout &plan);

  /// Fill the public members from \p segment and check its counters.
  std::optional<DecodeError> run(const Segment &segment);

  /// A ring has overwritten the warp's first stamps.
  bool prefixLost() const { return laps != 0 && records != stamps; }

  std::vector<FramePosition> frames; // Newest first.
  uint64_t stamps = 0;
  uint32_t records = 0, laps = 0;

private:
  std::optional<DecodeError> readHeader(const Segment &segment);
  struct Tag {
    uint32_t id, stamps, words; // Of the frame.
  };
  std::optional<DecodeError> readTag(const Segment &segment, uint32_t word,
                                     Tag &tag) const;
  std::optional<DecodeError> forth(const Segment &segment, uint32_t end);
  std::optional<DecodeError> back(const Segment &segment, uint32_t end,
                                  uint32_t low);
  std::optional<DecodeError> checkCounters(const Segment &segment,
                                           uint64_t stampsOfThisLap) const;

  /// How many of a frame's words are stamps.
  struct Share {
    uint64_t stamps, words;
    bool operator<(const Share &other) const {
      return stamps * other.words < other.stamps * words;
    }
  };

  const DecoderLayout &plan;
  std::vector<uint32_t> frameSizes; // In words.
  Share least{1, 1}, most{0, 1};    // Of any frame.
  uint32_t limit = 0;               // Bytes, of the present segment.
  uint32_t cursor = 0, lapEnd = 0;
  uint32_t cutStamps = 0; // Of the frame that passed the limit.
};

} // namespace kperfir::record

#endif // KPERFIR_LIB_RECORD_FRAMEWALK_H
