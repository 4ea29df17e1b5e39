//===- SharedLayout.h - Records in a CTA's shared memory ------------------===//
//
// How much of it they take until the CTA's end, when they are copied out: the
// segments, behind each of which there is room for the zeros that fill its last
// 16 bytes up, then the CTA's start anchor.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_LIB_RECORD_SHAREDLAYOUT_H
#define KPERFIR_LIB_RECORD_SHAREDLAYOUT_H

#include "Record/RecordLayout.h"

namespace kperfir::record {

/// At most three words of zeros.
inline constexpr uint32_t kSharedPaddingBytes = 4 * kWordBytes;
inline constexpr uint32_t kSharedAnchorBytes = 4 * kWordBytes;

constexpr uint32_t sharedSegmentBytes(uint32_t wordsPerWarp) {
  return kWordBytes * segmentWords(wordsPerWarp) + kSharedPaddingBytes;
}

constexpr uint32_t sharedBytes(uint32_t totalWarps, uint32_t wordsPerWarp) {
  return totalWarps * sharedSegmentBytes(wordsPerWarp) + kSharedAnchorBytes;
}

} // namespace kperfir::record

#endif // KPERFIR_LIB_RECORD_SHAREDLAYOUT_H
