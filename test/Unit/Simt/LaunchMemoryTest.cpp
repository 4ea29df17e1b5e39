//===- LaunchMemoryTest.cpp - What is kept from launch to launch ----------===//

#include "Simt/Exec/LaunchMemory.h"

#include <gtest/gtest.h>

using namespace kperfir::simt;

TEST(ReusedPages, KnowWhetherSomebodyHasWrittenToThem) {
  ReusedPages pages;
  pages.take(10000);
  EXPECT_TRUE(pages.isFresh());
  EXPECT_EQ(pages.data()[9999], 0);
  pages.data()[9999] = 1;
  pages.take(5000);
  EXPECT_FALSE(pages.isFresh());
  pages.take(size_t(1) << 20);
  EXPECT_TRUE(pages.isFresh());
  EXPECT_EQ(pages.data()[9999], 0);
}

TEST(ReusedPages, AreDroppedIfTheyAreTooMany) {
  ReusedPages pages;
  pages.take(10000);
  pages.dropIfAbove(20000);
  pages.take(10000);
  EXPECT_FALSE(pages.isFresh());
  pages.dropIfAbove(5000);
  pages.take(100);
  EXPECT_TRUE(pages.isFresh());
}
