//===- RecordLayout.h - Byte layout of the device profile buffer ----------===//
//
// The one owner of the byte layout that the compiler writes and the decoder
// reads. FORMAT.md draws it. Everything is a little-endian 32-bit word; indices
// are in words. Header-only and free of MLIR, so that the passes, the decoder
// and the Python seam can all include it.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_LIB_RECORD_RECORDLAYOUT_H
#define KPERFIR_LIB_RECORD_RECORDLAYOUT_H

#include <cstdint>

namespace kperfir::record {

inline constexpr uint32_t kWordBytes = 4;

/// Version of the layout JSON and of everything in this file. A change of any
/// constant below is a new version. 2: marks may carry values. 3: iterations
/// may be left out, and those that are not end. 4: frames may be padded. 5:
/// executions may be summed up instead of recorded. 6: gaps: regions that the
/// next event ends. 7: where the first records are kept, a frame begins with
/// its tag, and the cursor stops at the limit. 8: laps that the host takes
/// while the kernel runs.
inline constexpr uint32_t kLayoutVersion = 8;
/// Version of a layout in which tags come first.
inline constexpr uint32_t kTagFirstVersion = 7;
/// Version of a layout with gaps in which tags come last.
inline constexpr uint32_t kGapsVersion = 6;
/// Version of a layout whose executions are summed up, without gaps.
inline constexpr uint32_t kSumsVersion = 5;
/// Version of a layout that pads frames, records executions and has no gaps.
inline constexpr uint32_t kPaddedFramesVersion = 4;
/// Version of a layout that leaves iterations out and pads no frames.
inline constexpr uint32_t kSelectedIterationsVersion = 3;
/// Version of a layout that records every iteration of its loops.
inline constexpr uint32_t kEveryIterationVersion = 2;

//===----------------------------------------------------------------------===//
// Address of the buffer
//===----------------------------------------------------------------------===//

/// The low bits of the address that a kernel is launched with are a code: how
/// many CTAs have room. 0: none records, so that null is an address as well;
/// c: the first 2^(c - 1). The CTA with linear id i has its share at the
/// address without the code + i * the size of a share, rounded up to this.
inline constexpr uint32_t kBufferAlignment = 32;
inline constexpr uint32_t kEveryCtaCode = kBufferAlignment - 1;

//===----------------------------------------------------------------------===//
// CTA header
//===----------------------------------------------------------------------===//

/// "KPF1". 0 there means that the CTA recorded nothing.
inline constexpr uint32_t kCtaMagic = 0x4B504631;

enum CtaHeaderWord : uint32_t {
  kCtaMagicWord = 0,
  kLayoutHashWord = 1, // Ties the buffer to the layout it was written with.
  kCtaIdXWord = 2,
  kCtaIdYWord = 3,
  kCtaIdZWord = 4,
  kSmIdWord = 5,
  kStartClockWord = 6, // 64-bit values: low word first.
  kStartGlobalTimerWord = 8,
  kEndClockWord = 10,
  kEndGlobalTimerWord = 12,
  kReservedWord = 14, // Two words, 0.
};
inline constexpr uint32_t kCtaHeaderWords = 16;

//===----------------------------------------------------------------------===//
// Warp segment
//===----------------------------------------------------------------------===//

enum SegmentHeaderWord : uint32_t {
  kCursorWord = 0,  // Byte offset of the next frame from the first data word.
  kRecordsWord = 1, // Stamps executed, dropped ones included, modulo 2^32.
  kLapEndWord = 2,  // Ring: byte offset where the previous lap ended; 0: none.
  kLapsWord = 3,    // Ring: laps finished, modulo 2^32.
};
inline constexpr uint32_t kSegmentHeaderWords = 4;

/// The tag of a frame, its first or its last word, is kTagBase | frame id.
inline constexpr uint32_t kTagBase = 0x4B500000;
inline constexpr uint32_t kTagBaseMask = 0xFFF00000;
inline constexpr uint32_t kTagFrameMask = 0x000FFFFF;
inline constexpr uint32_t kMaxFrames = kTagFrameMask + 1;

/// A frame: its tag, if that comes first; its stamps, the values of its marks
/// in the marks' order (low word first), words without meaning up to a multiple
/// of \p align, of which the last is its tag if that comes last.
constexpr uint32_t frameWords(uint32_t stamps, uint32_t valueWords = 0,
                              uint32_t align = 1) {
  return (stamps + valueWords + align) / align * align;
}
inline constexpr uint32_t kMaxFrameAlign = 4;

constexpr uint32_t segmentWords(uint32_t wordsPerWarp) {
  return kSegmentHeaderWords + wordsPerWarp;
}

constexpr uint64_t ctaBytes(uint32_t totalWarps, uint32_t wordsPerWarp) {
  return uint64_t(kWordBytes) *
         (kCtaHeaderWords + uint64_t(totalWarps) * segmentWords(wordsPerWarp));
}

/// Byte offset, in a CTA's share, of the segment header of \p warp.
constexpr uint64_t segmentOffset(uint32_t warp, uint32_t wordsPerWarp) {
  return uint64_t(kWordBytes) *
         (kCtaHeaderWords + uint64_t(warp) * segmentWords(wordsPerWarp));
}

/// A frame may start where the largest frame still fits: at this byte offset
/// from the first data word or before it. One limit for all frame types makes
/// saturation sticky without a flag. Where tags come first, the cursor stops
/// here: a frame that would pass is cut, and all later ones begin here.
constexpr int64_t cursorLimitBytes(uint32_t wordsPerWarp,
                                   uint32_t maxFrameWords) {
  return int64_t(kWordBytes) * (int64_t(wordsPerWarp) - maxFrameWords);
}

//===----------------------------------------------------------------------===//
// Laps
//===----------------------------------------------------------------------===//

/// With strategy flush a segment is two halves, each of a power of two of
/// words, that are written in turn while the host empties the other one. The
/// last words of a half describe the lap that ended in it.
inline constexpr uint32_t kHalfTrailerWords = 2;
enum HalfTrailerWord : uint32_t {
  kLapNumberWord = 0, // Laps that had ended then, 1 or more; 0: none in it.
  kLapBytesWord = 1,  // Bytes of frames, from the half's beginning.
};

/// Segment header, until the host has read it: address of the warp's entry in
/// the control block, 64 bits, or 0 where nobody empties laps. Never written by
/// the kernel.
inline constexpr uint32_t kControlEntryWord = 2;

/// The control block, which kernel and host see at once: a header, then an
/// entry for each warp of each CTA with room. All are of this size.
inline constexpr uint32_t kControlWords = 4;
enum ControlHeaderWord : uint32_t {
  kStoppedWord = 0,  // Not 0: no warp waits any more.
  kPatienceWord = 2, // 64 bits: ns that a warp waits for the host at most.
};
enum ControlEntryWord : uint32_t {
  kLapsEndedWord = 0, // By the kernel.
  kLapsTakenWord = 1, // By the host.
  kToHeaderWord = 2,  // Bytes from the block's header to this entry.
};

constexpr uint32_t halfWords(uint32_t wordsPerWarp) { return wordsPerWarp / 2; }

//===----------------------------------------------------------------------===//
// Sums of a region
//===----------------------------------------------------------------------===//

/// With strategy aggregate the data words of a warp are one such block for
/// each region, by its id. All words are 0 at the beginning.
enum SumsWord : uint32_t {
  kOpenWord = 0,  // An iteration without an end event is open.
  kBeginWord = 1, // Clock at which the present execution began.
  // The least duration, inverted: 0 is the neutral element then.
  kLeastInvertedWord = 2,
  kMostWord = 3,
  kSumWord = 4, // 64-bit values: low word first.
  kSquaresWord = 6,
  /// Executions that took 2^k cycles or more and less than 2^(k + 1); 0 cycles
  /// are among those of k = 0.
  kBucketsWord = 8,
};
inline constexpr uint32_t kBuckets = 32;
inline constexpr uint32_t kSumsWords = kBucketsWord + kBuckets;

//===----------------------------------------------------------------------===//
// Layout hash
//===----------------------------------------------------------------------===//

inline constexpr uint32_t kFnvOffset = 2166136261u;
inline constexpr uint32_t kFnvPrime = 16777619u;

/// FNV-1a over \p size bytes; continue an earlier hash by passing it as
/// \p seed. The hash of a layout is that of its JSON text with "hash":0.
constexpr uint32_t fnv1a(const char *data, uint64_t size,
                         uint32_t seed = kFnvOffset) {
  uint32_t hash = seed;
  for (uint64_t i = 0; i < size; ++i)
    hash = (hash ^ static_cast<unsigned char>(data[i])) * kFnvPrime;
  return hash;
}

} // namespace kperfir::record

#endif // KPERFIR_LIB_RECORD_RECORDLAYOUT_H
