//===- HostIsaTest.cpp - One result on every instruction set --------------===//
//
// Runs every row of the instruction table, on edge values and random ones, with
// each instruction set that this CPU has: the bits must agree. Lanes that are
// not active must keep theirs.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Semantics.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

using namespace kperfir::simt;

namespace {

constexpr unsigned kRows = 64, kPredicates = 8;
constexpr unsigned kSourceRow = 16;

struct State {
  alignas(64) uint32_t rows[kRows * kWarpSize];
  uint32_t predicates[kPredicates];
  bool operator==(const State &other) const {
    return std::memcmp(rows, other.rows, sizeof rows) == 0 &&
           std::memcmp(predicates, other.predicates, sizeof predicates) == 0;
  }
};

class Random {
public:
  uint64_t next() {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
  }

private:
  uint64_t state = 0x9E3779B97F4A7C15u;
};

constexpr uint64_t kEdges[] = {
    0,
    1,
    2,
    31,
    32,
    33,
    63,
    64,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    0x3F800000,
    0xBF800000,
    0x7F800000,
    0xFF800000,
    0x7FC00000,
    0x7F800001,
    0x00800000,
    0x007FFFFF,
    0x477FE000,
    0x477FF000,
    0x33800000,
    0x4F000000,
    0xCF000000,
    0x5F000000,
    0x3C003C00,
    0x7C007C00,
    0x7E00FC01,
    0x03FF0400,
    0x7BFF7BFF,
    0x80008000,
    0x43E00000,
    0x47600000,
    0x41200000,
    0xC2AEAC50,
    0x42B17218,
    0x7FFFFFFFFFFFFFFF,
    0x8000000000000000,
    0xFFFFFFFFFFFFFFFF,
    0x3FF0000000000000,
    0x7FF0000000000000,
    0xFFF0000000000000,
    0x7FF8000000000000,
    0x000FFFFFFFFFFFFF,
    0x0010000000000000,
    0x43E0000000000000,
    0x41DFFFFFFFC00000,
    0x36A0000000000000,
    0x47EFFFFFF0000000,
    0x3FF00000FFFFFFFF,
};

unsigned rowsOf(char letter) {
  return letter == 'q' ? 4 : letter == 'd' ? 2 : 1;
}

uint64_t pick(Random &random, char letter) {
  uint64_t choice = random.next();
  uint64_t value =
      choice % 3 ? kEdges[choice / 3 % std::size(kEdges)] : random.next();
  if (choice % 3 && choice >> 60 == 1)
    value = ~value;
  switch (letter) {
  case 'b':
    return value & 0xFF;
  case 'h':
    return (choice >> 40 & 1 ? value >> 16 : value) & 0xFFFF;
  default:
    return value;
  }
}

/// Fill the sources of `row` and build its op.
MicroOp prepare(const Semantics &row, State &state, Random &random,
                RowIndex *pool) {
  for (uint32_t &word : state.rows)
    word = static_cast<uint32_t>(random.next());
  for (uint32_t &mask : state.predicates)
    mask = static_cast<uint32_t>(random.next());
  MicroOp op;
  op.opcode = row.opcode;
  op.handler = row.form.handler;
  const char *letter = row.form.signature;
  unsigned next = 0, predicate = 0, index = 0;
  for (; *letter != '='; ++letter, ++index) {
    if (row.opcode == Opcode::Unpack)
      pool[index] = static_cast<RowIndex>(next);
    else
      op.dst[index] =
          static_cast<RowIndex>(*letter == 'p' ? predicate++ : next);
    next += *letter == 'p' ? 0 : 4;
  }
  next = kSourceRow;
  predicate = 4;
  for (index = 0, ++letter; *letter; ++letter, ++index) {
    op.src[index] = static_cast<RowIndex>(*letter == 'p' ? predicate++ : next);
    if (*letter == 'p')
      continue;
    bool isMask = index == 3 || row.opcode == Opcode::Redux ||
                  row.opcode == Opcode::Elect;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      uint64_t value = pick(random, *letter);
      if (isMask && row.opcode != Opcode::Bfi && row.opcode != Opcode::Redux)
        value = ~uint64_t(0);
      if (rowsOf(*letter) == 1)
        state.rows[next * kWarpSize + lane] = static_cast<uint32_t>(value);
      else
        std::memcpy(&state.rows[next * kWarpSize + 2 * lane], &value, 8);
    }
    next += 4;
  }
  return op;
}

State run(const MicroOp &op, Handler handler, const State &before,
          LaneMask active, const RowIndex *pool, const uint8_t *params) {
  State state = before;
  WarpSpecials specials;
  ExecContext context;
  context.rowBase[0] = state.rows;
  context.rowBase[1] = state.rows;
  context.predicates = state.predicates;
  context.specials = &specials;
  context.params = params;
  context.pool = pool;
  handler(context, op, active);
  return state;
}

void compareWith(HostIsa other) {
  HostIsa best = detectHostIsa();
  if (static_cast<int>(other) >= static_cast<int>(best))
    GTEST_SKIP() << "this CPU has no wider instruction set to compare with";
  Random random;
  alignas(64) uint8_t params[64];
  for (uint8_t &byte : params)
    byte = static_cast<uint8_t>(random.next());
  size_t rows = 0;
  for (std::span<const Semantics> family : instructionSet(best).families)
    for (const Semantics &row : family) {
      const Semantics *twin = findSemantics(other, row.mnemonic);
      ASSERT_NE(twin, nullptr) << row.mnemonic;
      ++rows;
      for (unsigned round = 0; round < 24; ++round) {
        State before;
        RowIndex pool[4] = {};
        MicroOp op = prepare(row, before, random, pool);
        if (row.opcode == Opcode::Setp)
          op.sub = static_cast<uint8_t>(round % 4), op.src[2] = 6,
          op.dst[1] = 1;
        LaneMask partial = static_cast<LaneMask>(random.next());
        State full = run(op, row.form.handler, before, kFullMask, pool, params);
        ASSERT_TRUE(full == run(op, twin->form.handler, before, kFullMask, pool,
                                params))
            << row.mnemonic << " differs on " << hostIsaName(other);
        State some = run(op, row.form.handler, before, partial, pool, params);
        ASSERT_TRUE(some ==
                    run(op, twin->form.handler, before, partial, pool, params))
            << row.mnemonic << " differs on " << hostIsaName(other)
            << " under a mask";
      }
    }
  EXPECT_GT(rows, 1000u);
}

TEST(HostIsa, BaselineGivesTheSameBits) { compareWith(HostIsa::Baseline); }
TEST(HostIsa, Avx2GivesTheSameBits) { compareWith(HostIsa::Avx2); }

bool combinesLanes(Opcode opcode) {
  return opcode >= Opcode::Shfl && opcode <= Opcode::Elect;
}

/// Inactive lanes keep their bits, active ones get those of a full warp.
TEST(HostIsa, MasksSelectLanes) {
  Random random;
  uint8_t params[64] = {1, 2, 3};
  for (std::span<const Semantics> family :
       instructionSet(detectHostIsa()).families)
    for (const Semantics &row : family) {
      if (combinesLanes(row.opcode))
        continue;
      State before;
      RowIndex pool[4] = {};
      MicroOp op = prepare(row, before, random, pool);
      LaneMask active = static_cast<LaneMask>(random.next());
      State full = run(op, row.form.handler, before, kFullMask, pool, params);
      State some = run(op, row.form.handler, before, active, pool, params);
      unsigned wordsPerLane = rowsOf(row.form.signature[0]);
      if (row.form.signature[0] != 'p' && row.opcode != Opcode::Unpack)
        for (unsigned lane = 0; lane < kWarpSize; ++lane)
          for (unsigned k = 0; k < wordsPerLane; ++k) {
            unsigned word = lane * wordsPerLane + k;
            ASSERT_EQ(some.rows[word],
                      active >> lane & 1 ? full.rows[word] : before.rows[word])
                << row.mnemonic;
          }
      for (unsigned p = 0; p < 2; ++p)
        ASSERT_EQ(some.predicates[p], (full.predicates[p] & active) |
                                          (before.predicates[p] & ~active))
            << row.mnemonic;
    }
}

/// The op may write the very row that it reads.
TEST(HostIsa, DestinationMayBeASource) {
  Random random;
  uint8_t params[64] = {};
  for (std::span<const Semantics> family :
       instructionSet(detectHostIsa()).families)
    for (const Semantics &row : family) {
      const char *equals = std::strchr(row.form.signature, '=');
      if (equals != row.form.signature + 1 || row.form.signature[0] == 'p')
        continue;
      for (unsigned k = 0; equals[1 + k]; ++k) {
        if (equals[1 + k] == 'p' ||
            rowsOf(equals[1 + k]) != rowsOf(row.form.signature[0]))
          continue;
        State before;
        RowIndex pool[4] = {};
        MicroOp op = prepare(row, before, random, pool);
        LaneMask active = random.next() & 1
                              ? kFullMask
                              : static_cast<LaneMask>(random.next());
        unsigned words = rowsOf(row.form.signature[0]) * kWarpSize;
        // Same old content in both destinations, so that inactive lanes
        // compare.
        std::memcpy(before.rows, before.rows + op.src[k] * kWarpSize,
                    words * 4);
        State apart = run(op, row.form.handler, before, active, pool, params);
        MicroOp same = op;
        same.dst[0] = op.src[k];
        State together =
            run(same, row.form.handler, before, active, pool, params);
        ASSERT_EQ(0,
                  std::memcmp(apart.rows, together.rows + op.src[k] * kWarpSize,
                              words * 4))
            << row.mnemonic << " source " << k;
      }
    }
}

} // namespace
