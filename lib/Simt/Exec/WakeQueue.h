//===- WakeQueue.h - Which warps of a sub-core may issue, and when --------===//
//
// A calendar: a slot for each of the next cycles, with a bit for each warp that
// wakes then. Most warps wake within a few cycles, so setting and finding one
// takes a handful of the host's instructions, however many warps there are.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_WAKEQUEUE_H
#define KPERFIR_SIMT_EXEC_WAKEQUEUE_H

#include "Simt/Timing/Caches.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace kperfir::simt {

class WakeQueue {
public:
  static constexpr unsigned kCapacity = 16;
  /// A bit for each warp, by its position.
  using Mask = uint16_t;

  WakeQueue() { wake.fill(kNever); }

  uint64_t wakeOf(unsigned position) const { return wake[position]; }

  /// The warp may issue from `cycle` on; kNever: not by itself.
  KPERFIR_SIMT_INLINE void set(unsigned position, uint64_t cycle) {
    auto bit = static_cast<Mask>(1u << position);
    remove(position, bit);
    wake[position] = cycle;
    insert(bit, cycle);
  }

  /// The warps that may issue at `now`.
  KPERFIR_SIMT_INLINE Mask ready(uint64_t now) {
    if (now > time)
      advance(now);
    else if (now < time) [[unlikely]]
      return readyBefore(now);
    return awake;
  }

  /// The first cycle after `now`, which ready() has been asked for, at which
  /// another warp wakes.
  KPERFIR_SIMT_INLINE uint64_t nextAfter(uint64_t now) const {
    if (now < time) [[unlikely]]
      return firstAfter(now);
    if (!occupied)
      return nextFar;
    uint64_t first = time + 1;
    auto ahead = static_cast<unsigned>(std::countr_zero(
        std::rotr(occupied, static_cast<int>(first % kSlots))));
    return std::min(nextFar, first + ahead);
  }

private:
  static constexpr uint64_t kSlots = 64;

  KPERFIR_SIMT_INLINE void insert(Mask bit, uint64_t cycle) {
    if (cycle <= time) {
      awake |= bit;
    } else if (cycle - time < kSlots) {
      slots[cycle % kSlots] |= bit;
      occupied |= uint64_t(1) << cycle % kSlots;
    } else if (cycle != kNever) {
      far |= bit;
      nextFar = std::min(nextFar, cycle);
    }
  }

  KPERFIR_SIMT_INLINE void remove(unsigned position, Mask bit) {
    if (awake & bit) {
      awake ^= bit;
    } else if (far & bit) {
      far ^= bit;
      findNextFar();
    } else if (uint64_t cycle = wake[position]; cycle != kNever) {
      slots[cycle % kSlots] ^= bit;
      if (!slots[cycle % kSlots])
        occupied ^= uint64_t(1) << cycle % kSlots;
    }
  }

  KPERFIR_SIMT_INLINE void advance(uint64_t now) {
    uint64_t passed = occupied;
    if (now - time < kSlots)
      passed &= std::rotl((uint64_t(1) << (now - time)) - 1,
                          static_cast<int>((time + 1) % kSlots));
    time = now;
    if (passed) {
      occupied ^= passed;
      do {
        Mask &slot = slots[static_cast<unsigned>(std::countr_zero(passed))];
        awake |= slot;
        slot = 0;
        passed &= passed - 1;
      } while (passed);
    }
    if (nextFar < now + kSlots) [[unlikely]]
      bringNear();
  }

  // Somebody has asked about a later cycle already, and `now` is before it.

  Mask readyBefore(uint64_t now) const {
    Mask result = awake;
    for (unsigned rest = awake; rest; rest &= rest - 1)
      if (wake[static_cast<unsigned>(std::countr_zero(rest))] > now)
        result ^= static_cast<Mask>(rest & (~rest + 1));
    return result;
  }
  uint64_t firstAfter(uint64_t now) const {
    uint64_t first = kNever;
    for (uint64_t cycle : wake)
      if (cycle > now)
        first = std::min(first, cycle);
    return first;
  }

  void bringNear() {
    Mask candidates = far;
    far = 0;
    nextFar = kNever;
    for (unsigned rest = candidates; rest; rest &= rest - 1)
      insert(static_cast<Mask>(rest & (~rest + 1)),
             wake[static_cast<unsigned>(std::countr_zero(rest))]);
  }

  void findNextFar() {
    nextFar = kNever;
    for (unsigned rest = far; rest; rest &= rest - 1)
      nextFar = std::min(nextFar,
                         wake[static_cast<unsigned>(std::countr_zero(rest))]);
  }

  uint64_t time = 0;
  uint64_t occupied = 0;     // slots that are not empty
  uint64_t nextFar = kNever; // the first of those in `far`
  Mask awake = 0;            // wake <= time
  Mask far = 0;              // beyond the slots
  std::array<Mask, kSlots> slots{};
  std::array<uint64_t, kCapacity> wake;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_WAKEQUEUE_H
