//===- LayoutTest.cpp - The byte layout is the documented one -------------===//

#include "Record/RecordLayout.h"

#include <gtest/gtest.h>

using namespace kperfir::record;

TEST(RecordLayout, MagicSpellsTheFormat) {
  // "KPF1", most significant byte first.
  EXPECT_EQ(kCtaMagic, uint32_t('K') << 24 | 'P' << 16 | 'F' << 8 | '1');
}

TEST(RecordLayout, SharesAreHeadersAndSegments) {
  // 16 words, then 4 warps of 4 + 512 words.
  EXPECT_EQ(ctaBytes(4, 512), 4u * (16 + 4 * 516));
  EXPECT_EQ(segmentOffset(0, 512), 64u);
  EXPECT_EQ(segmentOffset(3, 512), 64u + 3 * 516 * 4);
  EXPECT_EQ(segmentOffset(4, 512), ctaBytes(4, 512));
}

TEST(RecordLayout, SizesOfLargeBuffersDoNotWrap) {
  EXPECT_EQ(ctaBytes(64, 1u << 28), 4ull * (16 + 64ull * ((1ull << 28) + 4)));
}

TEST(RecordLayout, LimitLeavesRoomForTheLargestFrame) {
  EXPECT_EQ(cursorLimitBytes(16, 5), 44);
  EXPECT_EQ(cursorLimitBytes(5, 5), 0);
}

TEST(RecordLayout, HashIsFnv1a) {
  // Published test vectors.
  EXPECT_EQ(fnv1a("", 0), 0x811c9dc5u);
  EXPECT_EQ(fnv1a("a", 1), 0xe40c292cu);
  EXPECT_EQ(fnv1a("foobar", 6), 0xbf9cf968u);
  EXPECT_EQ(fnv1a("bar", 3, fnv1a("foo", 3)), fnv1a("foobar", 6));
}
