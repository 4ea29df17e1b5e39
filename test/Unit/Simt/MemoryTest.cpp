//===- MemoryTest.cpp - Ranges of global memory, state of shared memory ---===//

#include "Simt/Exec/Memory.h"

#include <gmock/gmock.h>

#include <random>
#include <vector>

using namespace kperfir::simt;

TEST(GlobalMemory, FindsTheRangeOfAnAddress) {
  GlobalMemory memory;
  memory.map(1000, 24, "x", true);
  memory.map(2000, 8, "y", false);
  EXPECT_EQ(memory.find(999), nullptr);
  EXPECT_EQ(memory.find(1000)->name, "x");
  EXPECT_EQ(memory.find(1023)->name, "x");
  EXPECT_EQ(memory.find(1024), nullptr);
  EXPECT_EQ(memory.find(2007)->name, "y");
  EXPECT_TRUE(memory.find(1000)->contains(1016, 8));
  EXPECT_FALSE(memory.find(1000)->contains(1017, 8));
}

TEST(GlobalMemory, RefusesOverlapsAndEmptyRanges) {
  GlobalMemory memory;
  memory.map(1000, 24, "x", true);
  EXPECT_THROW(memory.map(1020, 8, "y", true), std::invalid_argument);
  EXPECT_THROW(memory.map(990, 11, "y", true), std::invalid_argument);
  EXPECT_THROW(memory.map(3000, 0, "y", true), std::invalid_argument);
  EXPECT_THROW(memory.map(~0ull - 3, 8, "y", true), std::invalid_argument);
  EXPECT_THROW(memory.unmap(1001), std::invalid_argument);
  memory.map(1000, 24, "again", false);
  EXPECT_EQ(memory.find(1000)->name, "again");
  memory.unmap(1000);
  EXPECT_EQ(memory.find(1000), nullptr);
}

TEST(GlobalMemory, AsksTheResolverOncePerRange) {
  GlobalMemory memory;
  int calls = 0;
  memory.setResolver([&](uint64_t address) -> std::optional<GlobalRange> {
    ++calls;
    if (address < 5000 || address >= 5100)
      return std::nullopt;
    GlobalRange range;
    range.begin = 5000;
    range.end = 5100;
    range.name = "found";
    return range;
  });
  EXPECT_EQ(memory.resolve(5050)->name, "found");
  EXPECT_EQ(memory.resolve(5060)->name, "found");
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(memory.resolve(6000), nullptr);
}

TEST(GlobalMemory, TimingAddressesFollowFirstUseNotTheHost) {
  GlobalMemory one, other;
  one.map(0x5000, 100, "a", true);
  one.map(0x9000, 100, "b", true);
  other.map(0xF010, 100, "a", true);
  other.map(0x3004, 100, "b", true);
  for (auto [memory, address] : {std::pair{&one, 0x5000}, {&one, 0x9000}})
    memory->place(*memory->find(static_cast<uint64_t>(address)));
  for (auto [memory, address] : {std::pair{&other, 0xF010}, {&other, 0x3004}})
    memory->place(*memory->find(static_cast<uint64_t>(address)));
  EXPECT_EQ(one.find(0x5000)->timingBegin, other.find(0xF010)->timingBegin);
  EXPECT_EQ(one.find(0x9000)->timingBegin, other.find(0x3004)->timingBegin);
}

TEST(GlobalMemory, StartsOverWhenNothingHasAPlace) {
  GlobalMemory memory;
  memory.map(0x1000, 64, "x", true);
  memory.map(0x2000, 64, "y", true);
  memory.place(*memory.find(0x1000));
  uint64_t first = memory.find(0x1000)->timingBegin;
  EXPECT_FALSE(memory.startOver());
  memory.place(*memory.find(0x2000));
  EXPECT_NE(memory.find(0x2000)->timingBegin, first);
  memory.unmap(0x1000);
  EXPECT_FALSE(memory.startOver()) << "y keeps its place";
  memory.unmap(0x2000);
  memory.map(0x3000, 64, "z", true);
  EXPECT_TRUE(memory.startOver());
  memory.place(*memory.find(0x3000));
  EXPECT_EQ(memory.find(0x3000)->timingBegin, first);
}

TEST(SharedMemory, KnowsWhichBytesAreWritten) {
  SharedMemory shared;
  shared.reset(100);
  EXPECT_FALSE(shared.isWritten(0, 1));
  shared.setWritten(5, 3);
  EXPECT_TRUE(shared.isWritten(5, 3));
  EXPECT_FALSE(shared.isWritten(4, 4));
  EXPECT_FALSE(shared.isWritten(5, 4));
  shared.setWritten(64, 32);
  EXPECT_TRUE(shared.isWritten(64, 32));
  EXPECT_FALSE(shared.isWritten(68, 32));
  shared.clearWritten(70, 16);
  EXPECT_TRUE(shared.isWritten(64, 6));
  EXPECT_FALSE(shared.isWritten(64, 7));
  EXPECT_TRUE(shared.isWritten(86, 10));
  shared.reset(100);
  EXPECT_FALSE(shared.isWritten(86, 1));
}

TEST(SharedMemory, BoundsDoNotWrap) {
  SharedMemory shared;
  shared.reset(100);
  EXPECT_TRUE(shared.inBounds(96, 4));
  EXPECT_FALSE(shared.inBounds(97, 4));
  EXPECT_FALSE(shared.inBounds(0xFFFFFFFE, 4));
}

TEST(SharedMemory, RangeIsWrittenWhenAllOfItsBytesAre) {
  SharedMemory memory;
  memory.reset(256);
  for (uint32_t offset = 3; offset < 203; offset += 4)
    memory.setWritten(offset, 4);
  for (uint32_t begin : {0u, 2u, 3u, 40u})
    for (uint32_t end : {41u, 72u, 104u, 203u, 204u})
      EXPECT_EQ(memory.isAllWritten(begin, end), begin >= 3 && end <= 203)
          << begin << " to " << end;
}

/// Against a bit for each byte.
TEST(SharedMemory, RandomMarksAgreeWithAModel) {
  std::mt19937_64 random(7);
  constexpr uint32_t kBytes = 256;
  SharedMemory memory;
  memory.reset(kBytes);
  std::vector<bool> expected(kBytes, false);
  for (unsigned step = 0; step < 20000; ++step) {
    unsigned counts[] = {1, 2, 4, 8, 12, 16, 24, 32};
    unsigned count = counts[random() % 8];
    auto offset = static_cast<uint32_t>(random() % (kBytes - count + 1));
    if (random() % 2)
      offset = offset / 8 * 8;
    bool set = random() % 2;
    set ? memory.setWritten(offset, count) : memory.clearWritten(offset, count);
    for (uint32_t byte = offset; byte < offset + count; ++byte)
      expected[byte] = set;
    for (uint32_t byte = 0; byte < kBytes; ++byte)
      ASSERT_EQ(memory.isWritten(byte, 1), expected[byte]) << "step " << step;
  }
}
