//===- Atomic.cpp - atom and red ------------------------------------------===//
//
// Shared memory is updated at once, global memory at the exchange, where L2 is:
// lanes in order, requests in the order of their cycles.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Atomic.h"

#include "Simt/Exec/Sm.h"
#include "Simt/Exec/Transfer.h"
#include "Simt/Timing/SharedBanks.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kperfir::simt {

namespace {
//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  explicit BFloat16(float value) {
    auto word = std::bit_cast<uint32_t>(value);
    if (value != value)
      bits = 0x7FFF;
    else
      bits = static_cast<uint16_t>((word + 0x7FFF + (word >> 16 & 1)) >> 16);
  }
  explicit operator float() const {
    return std::bit_cast<float>(uint32_t(bits) << 16);
  }
};

/// Addition, minimum and maximum as PTX defines them for `T`. 16-bit formats
/// are exact enough in float that rounding once more gives the same result.
template <typename T> T add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                          static_cast<std::make_unsigned_t<T>>(b));
  else if constexpr (std::is_same_v<T, double>)
    return a + b;
  else
    return static_cast<T>(static_cast<float>(a) + static_cast<float>(b));
}

template <typename T> T smaller(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return std::min(a, b);
  else if constexpr (std::is_same_v<T, double>)
    return std::fmin(a, b);
  else
    return static_cast<T>(
        std::fmin(static_cast<float>(a), static_cast<float>(b)));
}

template <typename T> T larger(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return std::max(a, b);
  else if constexpr (std::is_same_v<T, double>)
    return std::fmax(a, b);
  else
    return static_cast<T>(
        std::fmax(static_cast<float>(a), static_cast<float>(b)));
}

template <typename T>
void arithmetic(AtomicOp operation, uint8_t *memory, const uint8_t *operand) {
  T value, other;
  std::memcpy(&value, memory, sizeof value);
  std::memcpy(&other, operand, sizeof other);
  switch (operation) {
  case AtomicOp::Add:
    value = add(value, other);
    break;
  case AtomicOp::Min:
    value = smaller(value, other);
    break;
  case AtomicOp::Max:
    value = larger(value, other);
    break;
  default:
    break;
  }
  std::memcpy(memory, &value, sizeof value);
}

template <typename T>
void bitwise(AtomicOp operation, uint8_t *memory, const uint8_t *operand) {
  T value, other;
  std::memcpy(&value, memory, sizeof value);
  std::memcpy(&other, operand, sizeof other);
  switch (operation) {
  case AtomicOp::And:
    value &= other;
    break;
  case AtomicOp::Or:
    value |= other;
    break;
  case AtomicOp::Xor:
    value ^= other;
    break;
  case AtomicOp::Inc:
    value = value >= other ? 0 : value + 1;
    break;
  case AtomicOp::Dec:
    value = value == 0 || value > other ? other : value - 1;
    break;
  default:
    break;
  }
  std::memcpy(memory, &value, sizeof value);
}

void arithmeticByType(AtomicOp operation, Type type, uint8_t *memory,
                      const uint8_t *operand) {
  switch (type) {
  case Type::S32:
    return arithmetic<int32_t>(operation, memory, operand);
  case Type::U64:
  case Type::B64:
    return arithmetic<uint64_t>(operation, memory, operand);
  case Type::S64:
    return arithmetic<int64_t>(operation, memory, operand);
  case Type::F32:
    return arithmetic<float>(operation, memory, operand);
  case Type::F32x2:
    arithmetic<float>(operation, memory, operand);
    return arithmetic<float>(operation, memory + 4, operand + 4);
  case Type::F64:
    return arithmetic<double>(operation, memory, operand);
  case Type::F16:
    return arithmetic<_Float16>(operation, memory, operand);
  case Type::BF16:
    return arithmetic<BFloat16>(operation, memory, operand);
  case Type::F16x2:
    arithmetic<_Float16>(operation, memory, operand);
    return arithmetic<_Float16>(operation, memory + 2, operand + 2);
  case Type::BF16x2:
    arithmetic<BFloat16>(operation, memory, operand);
    return arithmetic<BFloat16>(operation, memory + 2, operand + 2);
  default:
    return arithmetic<uint32_t>(operation, memory, operand);
  }
}

bool isFloat(Type type) {
  switch (type) {
  case Type::F16:
  case Type::BF16:
  case Type::F16x2:
  case Type::BF16x2:
  case Type::F32:
  case Type::F32x2:
  case Type::F64:
    return true;
  default:
    return false;
  }
}

} // namespace

bool isAtomicSupported(AtomicOp operation, Type type) {
  unsigned bits = typeBits(type);
  switch (operation) {
  case AtomicOp::Exch:
  case AtomicOp::Cas:
    return bits == 16 || bits == 32 || bits == 64 || bits == 128;
  case AtomicOp::And:
  case AtomicOp::Or:
  case AtomicOp::Xor:
    return (bits == 32 || bits == 64) && !isFloat(type);
  case AtomicOp::Inc:
  case AtomicOp::Dec:
    return bits == 32 && !isFloat(type);
  case AtomicOp::Add:
  case AtomicOp::Min:
  case AtomicOp::Max:
    return isFloat(type) || bits == 32 || bits == 64;
  }
  return false;
}

void applyAtomic(AtomicOp operation, Type type, uint8_t *memory,
                 const uint8_t *operand, const uint8_t *replacement,
                 uint8_t *old) {
  size_t bytes = typeBits(type) / 8;
  std::memcpy(old, memory, bytes);
  switch (operation) {
  case AtomicOp::Exch:
    std::memcpy(memory, operand, bytes);
    return;
  case AtomicOp::Cas:
    if (std::memcmp(memory, operand, bytes) == 0)
      std::memcpy(memory, replacement, bytes);
    return;
  case AtomicOp::Add:
  case AtomicOp::Min:
  case AtomicOp::Max:
    return arithmeticByType(operation, type, memory, operand);
  default:
    return bytes == 8 ? bitwise<uint64_t>(operation, memory, operand)
                      : bitwise<uint32_t>(operation, memory, operand);
  }
}

//===----------------------------------------------------------------------===//
// Issue
//===----------------------------------------------------------------------===//

void Sm::atomic(Warp &warp, const MicroOp &op, LaneMask active) {
  auto operation = static_cast<AtomicOp>(op.sub);
  if (!isAtomicSupported(operation, op.type))
    fail(warp, warp.pc - 1,
         {ErrorKind::Unsupported, "this atomic operation is not supported"});
  setReady(warp, op, now + 1);
  if (!active)
    return;
  Addresses addresses = addressesOf(warp, op);
  unsigned bytes = accessBytes(op);
  checkAlignment(warp, op, active, addresses, bytes);

  bool shared = op.space == Space::Shared || op.space == Space::SharedCluster;
  if (op.space == Space::Generic) {
    LaneMask inShared = 0;
    for (LaneMask rest = active; rest; rest &= rest - 1)
      if ((addresses.lane[firstLane(rest)] & kWindowMask) == kSharedWindow)
        inShared |= rest & (~rest + 1);
    if (inShared && inShared != active)
      fail(warp, warp.pc - 1,
           {ErrorKind::Unsupported,
            "atomic on shared and global memory at once",
            static_cast<int>(firstLane(inShared))});
    shared = inShared != 0;
  }

  // Operands of all lanes, those of Cas' new values behind them.
  size_t size = size_t(kWarpSize) * bytes;
  const RowIndex *rows = &op.src[1];
  if (op.width > 1)
    rows = program.pool.data() + op.ext +
           (op.opcode == Opcode::Atom ? op.width : 0);
  size_t begin = requests.reserve(2 * size);
  uint8_t *operands = requests.data.data() + begin;
  packLanes(warp.context, op, rows, operands);
  if (operation == AtomicOp::Cas)
    packLanes(warp.context, op, &op.src[2], operands + size);
  if (shared) {
    std::vector<uint8_t> values(operands, operands + 2 * size);
    requests.data.resize(begin);
    LaneMask remote =
        launch.usesClusters ? splitRemote(warp, active, addresses) : 0;
    if (active & ~remote)
      atomicShared(warp, op, active & ~remote, addresses, values.data());
    if (remote)
      accessRemote(warp, op, remote, addresses, values);
    return;
  }

  LineList list;
  const GlobalRange *range = commonRange(*launch.memory, addresses.lane, bytes,
                                         active, rangeHint[warp.pc - 1]);
  if (range)
    coalesce(*range, addresses.lane, bytes, active,
             isContiguous(addresses.lane, bytes, active), list);
  else
    coalesceMapped(*launch.memory, addresses.lane, bytes, active, list);
  logUnits(list.countSectors());
  if (!range || mayBeInL1(range))
    dropFromL1(list);
  if (isUntimed)
    noteUntimedWrite(range);
  uint64_t served =
      currentIsFree() ? now : occupyLsu(std::max(1u, list.countSectors()));
  GlobalRequest &request =
      queue(warp, op, GlobalRequest::Kind::Atomic, active, served);
  request.range = range;
  std::memcpy(request.address, addresses.lane, sizeof request.address);
  request.data = begin;
  ++warp.unresolvedStores;
  setReady(warp, op, kUnresolved);
}

void Sm::atomicShared(Warp &warp, const MicroOp &op, LaneMask active,
                      const Addresses &addresses, const uint8_t *operands) {
  unsigned bytes = accessBytes(op);
  unsigned element = typeBits(op.type) / 8;
  uint32_t offsets[kWarpSize];
  SharedSpan span = sharedOffsets(warp, active, addresses, bytes, offsets);
  checkWritten(warp, active, offsets, bytes, span);

  alignas(64) uint8_t old[kWarpSize * 64];
  uint64_t oldAddress[kWarpSize];
  unsigned repeated = 0;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = firstLane(rest);
    size_t at = size_t(lane) * bytes;
    for (unsigned i = 0; i < bytes; i += element)
      applyAtomic(static_cast<AtomicOp>(op.sub), op.type,
                  warp.cta->shared.data() + offsets[lane] + i,
                  operands + at + i,
                  operands + size_t(kWarpSize) * bytes + at + i, old + at + i);
    oldAddress[lane] = reinterpret_cast<uint64_t>(old + at);
    for (unsigned earlier = 0; earlier < lane; ++earlier)
      if ((active >> earlier & 1) && offsets[earlier] == offsets[lane]) {
        ++repeated; // Lanes at one address take turns.
        break;
      }
  }
  if (op.opcode == Opcode::Atom) {
    MicroOp result = op;
    result.sub = static_cast<uint8_t>(
        typeBits(op.type)); // Ld's field for the register size.
    loadLanes(warp.context, result, active, oldAddress);
  }
  unsigned wavefronts = sharedWavefronts(offsets, bytes, active) +
                        repeated * chip.sharedAtomicCycles;
  uint64_t served = accountShared(wavefronts, 1);
  setReady(warp, op, currentIsFree() ? now : served + chip.sharedLatency);
}

} // namespace kperfir::simt
