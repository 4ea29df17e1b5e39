//===- MemorySystemTest.cpp - L2 and DRAM ---------------------------------===//

#include "Simt/Timing/MemorySystem.h"

#include "TestChip.h"

#include <gtest/gtest.h>

using namespace kperfir::simt;

TEST(MemorySystem, MissCostsDramAndThenHits) {
  Chip chip = test::chip();
  MemorySystem system(chip);
  EXPECT_EQ(system.read(250, 1, 50), 50u + chip.l2Latency + chip.dramLatency);
  EXPECT_EQ(system.read(250, 1, 5000), 5000u + chip.l2Latency);
  EXPECT_EQ(system.statistics().l2SectorHits, 1u);
  EXPECT_EQ(system.statistics().dramReadBytes, kSectorBytes);
}

TEST(MemorySystem, ForgetsWhatItHeldAndWhatItWasBusyWith) {
  Chip chip = test::chip();
  chip.l2Bytes = 64 * 1024;
  MemorySystem system(chip);
  auto run = [&](uint64_t start) {
    uint64_t last = 0;
    for (uint64_t line = 0; line < 4096; ++line)
      last = std::max(last, line % 3 ? system.read(line, 0xF, start)
                                     : system.write(line, 0xF, start));
    return last - start;
  };
  uint64_t first = run(0);
  EXPECT_NE(run(100), first) << "it holds some, and is busy";
  system.forget();
  EXPECT_EQ(run(100), first);
  system.forget();
  EXPECT_EQ(run(1'000'000'000), first);
}

TEST(MemorySystem, SecondMissOfASectorWaitsForTheFirst) {
  Chip chip = test::chip();
  MemorySystem system(chip);
  uint64_t first = system.read(250, 1, 50);
  EXPECT_EQ(system.read(250, 1, 60), first);
}

TEST(MemorySystem, BandwidthOfDramIsThatOfTheChip) {
  Chip chip = test::chip();
  MemorySystem system(chip);
  constexpr uint64_t kSectors = 1 << 18;
  uint64_t last = 0;
  for (uint64_t sector = 0; sector < kSectors; ++sector)
    last =
        std::max(last, system.read(sector / 4,
                                   static_cast<uint8_t>(1u << sector % 4), 0));
  double bytesPerCycle = double(kSectors) * kSectorBytes / double(last);
  double expected = chip.dramBytesPerSecond / (chip.clockMhz * 1e6);
  // Channels fill unevenly, so the last one ends late.
  EXPECT_LT(bytesPerCycle, expected);
  EXPECT_GT(bytesPerCycle, expected * 0.85);
}

TEST(MemorySystem, WritesAreWrittenBackWhenEvicted) {
  Chip chip = test::chip();
  chip.l2Bytes = 64 * 1024;
  MemorySystem system(chip);
  for (uint64_t sector = 0; sector < 16384; ++sector)
    system.write(sector / 4, static_cast<uint8_t>(1u << sector % 4), sector);
  uint64_t written = 16384 * kSectorBytes;
  EXPECT_EQ(system.statistics().dramWriteBytes, written - chip.l2Bytes);
}

TEST(MemorySystem, WritesAreAcceptedAsFastAsDramTakesWhatTheyEvict) {
  Chip chip = test::chip();
  chip.l2Bytes = 64 * 1024;
  MemorySystem system(chip);
  constexpr uint64_t kLines = 1 << 16;
  uint64_t last = 0;
  for (uint64_t line = 0; line < kLines; ++line)
    last = std::max(last, system.write(line, 0xF, 0));
  double bytesPerCycle = double(kLines) * kLineBytes / double(last);
  double expected = chip.dramBytesPerSecond / (chip.clockMhz * 1e6);
  EXPECT_LT(bytesPerCycle, expected * 1.02); // The end stays in L2.
  EXPECT_GT(bytesPerCycle, expected * 0.85);
}

TEST(MemorySystem, AtomicsOfOneSectorQueue) {
  Chip chip = test::chip();
  MemorySystem system(chip);
  system.read(250, 1, 0);
  uint64_t first = system.atomic(250, 1, 10000, 32);
  uint64_t second = system.atomic(250, 1, 10000, 32);
  EXPECT_GE(second, first + 32 / chip.l2AtomicLanesPerCycle);
}
