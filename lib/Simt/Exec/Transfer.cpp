//===- Transfer.cpp -------------------------------------------------------===//

#include "Simt/Exec/Transfer.h"

#include <cstring>

namespace kperfir::simt {

namespace {
/// Rows of the elements: the pool when there are several, else dst[0].
const RowIndex *destinations(const ExecContext &context, const MicroOp &op) {
  return op.width == 1 ? &op.dst[0] : context.pool + op.ext;
}

int64_t signExtend(uint64_t value, unsigned bits) {
  return static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
}

bool isSigned(Type type) {
  return type == Type::S8 || type == Type::S16 || type == Type::S32 ||
         type == Type::S64;
}

/// Any combination of element and register size.
void loadElement(ExecContext &context, const MicroOp &op, RowIndex row,
                 unsigned lane, const uint8_t *from) {
  unsigned bits = typeBits(op.type);
  if (bits == 128) {
    std::memcpy(reinterpret_cast<uint8_t *>(context.dst(row)) + lane * 16, from,
                16);
    return;
  }
  uint64_t value = 0;
  std::memcpy(&value, from, bits / 8);
  if (isSigned(op.type))
    value = static_cast<uint64_t>(signExtend(value, bits));
  writeRegister(context, row, lane, op.destBits(), value);
}

/// 32-bit elements in 32-bit registers, Width of them.
template <unsigned Width>
void loadWords(ExecContext &context, const RowIndex *rows, LaneMask lanes,
               const uint64_t *address) {
  uint32_t discarded[kWarpSize];
  uint32_t *to[Width];
  for (unsigned i = 0; i < Width; ++i)
    to[i] = rows[i] == kNoRow ? discarded : context.dst(rows[i]);
  auto one = [&](unsigned lane) {
    uint32_t words[Width];
    std::memcpy(words, reinterpret_cast<const void *>(address[lane]),
                sizeof words);
    for (unsigned i = 0; i < Width; ++i)
      to[i][lane] = words[i];
  };
  if (lanes == kFullMask) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      one(lane);
    return;
  }
  for (; lanes; lanes &= lanes - 1)
    one(static_cast<unsigned>(__builtin_ctz(lanes)));
}

template <unsigned Width>
void spreadWords(ExecContext &context, const RowIndex *rows,
                 const uint8_t *bytes) {
  for (unsigned i = 0; i < Width; ++i) {
    if (rows[i] == kNoRow)
      continue;
    uint32_t *to = context.dst(rows[i]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      std::memcpy(&to[lane], bytes + (lane * Width + i) * 4, 4);
  }
}

template <unsigned Width>
void gatherWords(const ExecContext &context, const RowIndex *rows,
                 uint8_t *bytes) {
  for (unsigned i = 0; i < Width; ++i) {
    const uint32_t *from = context.src(rows[i]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      std::memcpy(bytes + (lane * Width + i) * 4, &from[lane], 4);
  }
}
} // namespace

uint64_t readRegister(const ExecContext &context, RowIndex row, unsigned lane,
                      unsigned bits) {
  if (bits > 32)
    return context.src64(row)[lane];
  return context.src(row)[lane];
}

void writeRegister(const ExecContext &context, RowIndex row, unsigned lane,
                   unsigned bits, uint64_t value) {
  if (row == kNoRow)
    return;
  if (bits > 32)
    context.dst64(row)[lane] = value;
  else if (bits == 32)
    context.dst(row)[lane] = static_cast<uint32_t>(value);
  else
    context.dst(row)[lane] =
        static_cast<uint32_t>(value & ((uint64_t(1) << bits) - 1));
}

void loadLanes(ExecContext &context, const MicroOp &op, LaneMask lanes,
               const uint64_t *address) {
  const RowIndex *rows = destinations(context, op);
  unsigned bits = typeBits(op.type);
  if (bits == 32 && op.destBits() == 32) {
    switch (op.width) {
    case 1:
      return loadWords<1>(context, rows, lanes, address);
    case 2:
      return loadWords<2>(context, rows, lanes, address);
    case 4:
      return loadWords<4>(context, rows, lanes, address);
    default:
      break;
    }
  }
  for (; lanes; lanes &= lanes - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(lanes));
    auto *from = reinterpret_cast<const uint8_t *>(address[lane]);
    for (unsigned i = 0; i < op.width; ++i)
      if (rows[i] != kNoRow)
        loadElement(context, op, rows[i], lane, from + i * bits / 8);
  }
}

void loadContiguous(ExecContext &context, const MicroOp &op,
                    const uint8_t *bytes) {
  const RowIndex *rows = destinations(context, op);
  unsigned bits = typeBits(op.type);
  if (bits == 32 && op.destBits() == 32) {
    switch (op.width) {
    case 1:
      return spreadWords<1>(context, rows, bytes);
    case 2:
      return spreadWords<2>(context, rows, bytes);
    case 4:
      return spreadWords<4>(context, rows, bytes);
    default:
      break;
    }
  }
  unsigned size = accessBytes(op);
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    for (unsigned i = 0; i < op.width; ++i)
      if (rows[i] != kNoRow)
        loadElement(context, op, rows[i], lane,
                    bytes + lane * size + i * bits / 8);
}

void packLanes(const ExecContext &context, const MicroOp &op,
               const RowIndex *rows, uint8_t *bytes) {
  unsigned bits = typeBits(op.type);
  if (bits == 32) {
    switch (op.width) {
    case 1:
      return gatherWords<1>(context, rows, bytes);
    case 2:
      return gatherWords<2>(context, rows, bytes);
    case 4:
      return gatherWords<4>(context, rows, bytes);
    default:
      break;
    }
  }
  unsigned element = bits / 8;
  unsigned size = element * op.width;
  for (unsigned i = 0; i < op.width; ++i) {
    // Little-endian: an element is the first bytes of its register.
    auto *from = reinterpret_cast<const uint8_t *>(context.src(rows[i]));
    unsigned stride = bits == 128 ? 16 : bits == 64 ? 8 : 4;
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      std::memcpy(bytes + lane * size + i * element, from + lane * stride,
                  element);
  }
}

} // namespace kperfir::simt
