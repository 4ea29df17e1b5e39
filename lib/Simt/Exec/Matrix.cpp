//===- Matrix.cpp - ldmatrix, stmatrix, movmatrix and mma.sync ------------===//

#include "Simt/Exec/MatrixKernels.h"
#include "Simt/Exec/Sm.h"
#include "Simt/Timing/SharedBanks.h"

#include <algorithm>
#include <bit>

namespace kperfir::simt {

namespace baseline {
MmaKernel find(const MmaShape &shape);
} // namespace baseline
namespace avx2 {
MmaKernel find(const MmaShape &shape);
} // namespace avx2
namespace avx512 {
MmaKernel find(const MmaShape &shape);
} // namespace avx512

MmaKernel findMmaKernel(const MmaShape &shape, HostIsa isa) {
  switch (isa) {
  case HostIsa::Avx512:
    return avx512::find(shape);
  case HostIsa::Avx2:
    return avx2::find(shape);
  case HostIsa::Baseline:
    break;
  }
  return baseline::find(shape);
}

namespace {
constexpr unsigned kMatrixRows = 8;
constexpr unsigned kRowBytes = 16;

/// Between the dense 8x8 matrix of 16-bit elements (row by row) and the words
/// that the lanes hold, transposed: lane 4c + t has rows 2t, 2t + 1 of column
/// c.
void transpose(const uint16_t *from, uint16_t *to) {
  for (unsigned row = 0; row < kMatrixRows; ++row)
    for (unsigned column = 0; column < kMatrixRows; ++column)
      to[column * kMatrixRows + row] = from[row * kMatrixRows + column];
}
} // namespace

void Sm::executeMatrix(Warp &warp, const MicroOp &op, LaneMask active) {
  if (!active) {
    setReady(warp, op, now + 1);
    return;
  }
  if (active != kFullMask)
    fail(warp, warp.pc - 1,
         {ErrorKind::Deadlock, "a matrix instruction is executed by " +
                                   std::to_string(std::popcount(active)) +
                                   " lanes of the warp; need all 32"});
  switch (op.opcode) {
  case Opcode::LdMatrix:
    return loadMatrix(warp, op);
  case Opcode::StMatrix:
    return storeMatrix(warp, op);
  case Opcode::MovMatrix: {
    uint16_t result[kMatrixRows * kMatrixRows];
    transpose(reinterpret_cast<const uint16_t *>(warp.context.src(op.src[0])),
              result);
    std::memcpy(warp.context.dst(op.dst[0]), result, sizeof result);
    break;
  }
  default:
    multiply(warp, op);
    break;
  }
  setReady(warp, op,
           currentIsFree() ? now : now + launch.costs[warp.pc - 1].latency);
}

void Sm::multiply(Warp &warp, const MicroOp &op) const {
  const MmaShape &shape = program.mmas[static_cast<size_t>(op.imm)];
  const RowIndex *rows = program.pool.data() + op.ext;
  MmaOperands operands;
  for (unsigned i = 0; i < shape.numD; ++i)
    operands.d[i] = warp.context.dst(*rows++);
  for (unsigned i = 0; i < shape.numA; ++i)
    operands.a[i] = warp.context.src(*rows++);
  for (unsigned i = 0; i < shape.numB; ++i)
    operands.b[i] = warp.context.src(*rows++);
  for (unsigned i = 0; i < shape.numC; ++i)
    operands.c[i] = warp.context.src(*rows++);
  launch.mmaKernels[static_cast<size_t>(op.imm)](operands);
}

Sm::SharedSpan Sm::matrixRows(const Warp &warp, const MicroOp &op,
                              uint32_t *offsets) const {
  if (op.type != Type::B16)
    fail(warp, warp.pc - 1,
         {ErrorKind::Unsupported,
          "ldmatrix and stmatrix of 8-bit elements are not supported"});
  Addresses addresses = addressesOf(warp, op);
  unsigned rows = kMatrixRows * op.width;
  LaneMask lanes = rows == kWarpSize ? kFullMask : (1u << rows) - 1;
  checkAlignment(warp, op, lanes, addresses, kRowBytes);
  return sharedOffsets(warp, lanes, addresses, kRowBytes, offsets);
}

void Sm::loadMatrix(Warp &warp, const MicroOp &op) {
  uint32_t offsets[kWarpSize];
  SharedSpan span = matrixRows(warp, op, offsets);
  unsigned rows = kMatrixRows * op.width;
  checkWritten(warp, rows == kWarpSize ? kFullMask : (1u << rows) - 1, offsets,
               kRowBytes, span);
  const uint8_t *shared = warp.cta->shared.data();
  for (unsigned matrix = 0; matrix < op.width; ++matrix) {
    alignas(16) uint16_t dense[kMatrixRows * kMatrixRows];
    for (unsigned row = 0; row < kMatrixRows; ++row)
      std::memcpy(dense + row * kMatrixRows,
                  shared + offsets[matrix * kMatrixRows + row], kRowBytes);
    RowIndex destination = program.pool[op.ext + matrix];
    if (destination == kNoRow)
      continue;
    auto *to = reinterpret_cast<uint16_t *>(warp.context.dst(destination));
    if (op.has(kTranspose))
      transpose(dense, to);
    else
      std::memcpy(to, dense, sizeof dense);
  }
  uint64_t served =
      accountShared(matrixWavefronts(offsets, op.width), op.width);
  setReady(warp, op,
           currentIsFree() ? now : served + chip.cost(op.latency).latency);
}

void Sm::storeMatrix(Warp &warp, const MicroOp &op) {
  uint32_t offsets[kWarpSize];
  matrixRows(warp, op, offsets);
  SharedMemory &shared = warp.cta->shared;
  if (usesAsyncProxy)
    noteGenericWrite(warp, kFullMask >> (kWarpSize - kMatrixRows * op.width),
                     offsets, kRowBytes);
  for (unsigned matrix = 0; matrix < op.width; ++matrix) {
    uint16_t dense[kMatrixRows * kMatrixRows];
    auto *from = reinterpret_cast<const uint16_t *>(
        warp.context.src(program.pool[op.ext + matrix]));
    if (op.has(kTranspose))
      transpose(from, dense);
    else
      std::memcpy(dense, from, sizeof dense);
    for (unsigned row = 0; row < kMatrixRows; ++row) {
      uint32_t offset = offsets[matrix * kMatrixRows + row];
      std::memcpy(shared.data() + offset, dense + row * kMatrixRows, kRowBytes);
      shared.setWritten(offset, kRowBytes);
    }
  }
  uint64_t served =
      accountShared(matrixWavefronts(offsets, op.width), op.width);
  logComplete(served + 1);
}

} // namespace kperfir::simt
