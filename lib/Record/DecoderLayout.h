//===- DecoderLayout.h - What decoding needs of a layout ------------------===//
//
// The layout JSON, which kperfir/capture/layout_json.py parses, as flat tables.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_LIB_RECORD_DECODERLAYOUT_H
#define KPERFIR_LIB_RECORD_DECODERLAYOUT_H

#include <cstdint>
#include <string>
#include <vector>

namespace kperfir::record {

/// What the replay needs to know of a region's kind.
enum class RegionKind : uint8_t { Other, Loop, Iteration, Mark };

/// A gap starts a region that the next event, whichever it is, ends.
enum class Edge : uint8_t { Start, End, Mark, Gap };

struct Event {
  Edge edge;
  int32_t region;
};

/// The part of the layout JSON that decoding needs. Frames own stamps and
/// stamps own events through offsets: frame f has the stamps
/// [frameOffsets[f], frameOffsets[f + 1]).
struct DecoderLayout {
  uint32_t hash = 0;
  bool ring = false;
  bool aggregate = false; // Sums of executions in place of frames.
  bool tagFirst = false;  // Frames begin with their tag, in place of ending.
  uint32_t totalWarps = 0;
  uint32_t wordsPerWarp = 0;
  uint32_t maxFrameWords = 0;
  uint32_t frameAlign = 1;            // Words.
  std::vector<int32_t> regionParents; // -1: no parent.
  std::vector<RegionKind> regionKinds;
  /// Words of the value that a mark carries, 0 to 2; empty: no mark has one.
  std::vector<uint8_t> regionValueWords;
  std::vector<uint32_t> frameOffsets;
  std::vector<uint32_t> stampOffsets;
  std::vector<Event> events;

  uint64_t ctaBytes() const;

  uint32_t valueWords(int32_t region) const {
    return regionValueWords.empty()
               ? 0
               : regionValueWords[static_cast<size_t>(region)];
  }
  /// Words of a frame; its stamps and events must be in range.
  uint32_t frameWords(size_t frame) const;

  /// Empty if decoding with this layout is well defined; otherwise what is not.
  std::string validate() const;
};

} // namespace kperfir::record

#endif // KPERFIR_LIB_RECORD_DECODERLAYOUT_H
