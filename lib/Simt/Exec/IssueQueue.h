//===- IssueQueue.h - Which warp of a sub-core issues next, and when ------===//
//
// For each warp the cycle at which its operands are there, and the one at which
// its next instruction's pipe takes it, 16 bits each: a handful of vector
// instructions finds the first cycle at which a warp can issue, and the warp.
// The cycles count from a base that moves on; what does not fit is `far`.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_ISSUEQUEUE_H
#define KPERFIR_SIMT_EXEC_ISSUEQUEUE_H

#include "Simt/Exec/Program.h"
#include "Simt/Timing/Caches.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <smmintrin.h>

namespace kperfir::simt {

/// Pipes of the load/store unit, which all sub-cores of an SM share.
inline bool sharesLsu(Pipe pipe) {
  return pipe == Pipe::Lsu || pipe == Pipe::Async;
}

class IssueQueue {
public:
  static constexpr unsigned kCapacity = 16; // warps
  static constexpr uint32_t kNoWarp = kCapacity;

  IssueQueue() {
    wake.fill(kNever);
    relativeWake.fill(kFar);
    pipes.fill(static_cast<uint16_t>(Pipe::None));
  }

  uint64_t wakeOf(unsigned position) const { return wake[position]; }
  Pipe pipeOf(unsigned position) const {
    return static_cast<Pipe>(pipes[position]);
  }

  /// The warp may issue from `cycle` on, as far as it is concerned; kNever: not
  /// by itself.
  KPERFIR_SIMT_INLINE void setWake(unsigned position, uint64_t cycle) {
    wake[position] = cycle;
    setLane(relativeWake, position, relative(cycle));
  }
  /// The pipe of the warp's next instruction.
  KPERFIR_SIMT_INLINE void setPipe(unsigned position, Pipe pipe) {
    setLane(pipes, position, static_cast<uint16_t>(pipe));
    setLane(relativeReady, position, relative(readyOf(pipe)));
  }
  /// The pipe takes nothing before `cycle`.
  KPERFIR_SIMT_INLINE void takePipe(Pipe pipe, uint64_t cycle) {
    ready[static_cast<unsigned>(pipe)] = cycle;
    __m128i same = _mm_set1_epi16(static_cast<short>(pipe));
    __m128i value = _mm_set1_epi16(static_cast<short>(relative(cycle)));
    for (unsigned half = 0; half < 2; ++half) {
      __m128i lanes = _mm_cmpeq_epi16(halfOf(pipes, half), same);
      halfOf(relativeReady, half) =
          _mm_blendv_epi8(halfOf(relativeReady, half), value, lanes);
    }
  }
  /// When the pipe takes an instruction. `lsuReady`: when the load/store unit
  /// lets one in.
  uint64_t readyOf(Pipe pipe, uint64_t lsuReady) const {
    return sharesLsu(pipe) ? std::max(readyOf(pipe), lsuReady) : readyOf(pipe);
  }

  struct Choice {
    uint32_t position; // kNoWarp: none can issue by itself, or it is far
    uint64_t cycle;    // none can issue before
    /// Not before `cycle` does the load/store unit keep a warp waiting that
    /// could issue otherwise.
    bool isFirm;
    uint64_t lsuWake; // else: when such a warp is there
  };
  /// The first cycle from `cycle` on at which a warp can issue, and the warp:
  /// `last` if it can, else the one with the lowest position.
  KPERFIR_SIMT_INLINE Choice choose(uint64_t cycle, uint32_t last,
                                    uint64_t lsuReady) {
    if (cycle - base >= kFar) [[unlikely]]
      rebase(cycle);
    __m128i from = _mm_set1_epi16(static_cast<short>(cycle - base));
    __m128i awake[2], able[2], byLsu[2];
    for (unsigned half = 0; half < 2; ++half) {
      awake[half] = _mm_max_epu16(halfOf(relativeWake, half), from);
      able[half] = _mm_max_epu16(awake[half], halfOf(relativeReady, half));
      byLsu[half] = lanesOfLsu(half);
    }
    if (lsuReady > cycle) {
      __m128i least = _mm_set1_epi16(static_cast<short>(relative(lsuReady)));
      for (unsigned half = 0; half < 2; ++half)
        able[half] =
            _mm_max_epu16(able[half], _mm_and_si128(least, byLsu[half]));
    }
    uint16_t ahead = least(able[0], able[1]);
    if (ahead == kFar) [[unlikely]]
      return chooseFar(cycle, lsuReady);
    __m128i soonest = _mm_set1_epi16(static_cast<short>(ahead));
    unsigned candidates = bits(_mm_cmpeq_epi16(able[0], soonest),
                               _mm_cmpeq_epi16(able[1], soonest));
    // kNoWarp is a bit that is never set.
    auto oldest = static_cast<uint32_t>(std::countr_zero(candidates));
    uint16_t lsuAhead =
        least(orFar(awake[0], byLsu[0]), orFar(awake[1], byLsu[1]));
    return {candidates >> last & 1 ? last : oldest, base + ahead,
            lsuAhead >= ahead, base + lsuAhead};
  }
  /// The first cycle after `cycle`, at which none can issue, when that may be
  /// otherwise: a warp wakes, or the pipe of one that is awake is ready.
  KPERFIR_SIMT_INLINE uint64_t nextChange(uint64_t cycle, uint64_t lsuReady) {
    if (cycle - base >= kFar) [[unlikely]]
      rebase(cycle);
    __m128i from = _mm_set1_epi16(static_cast<short>(cycle - base));
    __m128i lsu = _mm_set1_epi16(static_cast<short>(relative(lsuReady)));
    __m128i change[2];
    for (unsigned half = 0; half < 2; ++half) {
      __m128i wakes = halfOf(relativeWake, half);
      __m128i isAwake = _mm_cmpeq_epi16(_mm_max_epu16(wakes, from), from);
      __m128i pipe = _mm_max_epu16(halfOf(relativeReady, half),
                                   _mm_and_si128(lsu, lanesOfLsu(half)));
      change[half] = _mm_blendv_epi8(wakes, pipe, isAwake);
    }
    uint16_t ahead = least(change[0], change[1]);
    return ahead == kFar ? nextChangeFar(cycle, lsuReady) : base + ahead;
  }

private:
  static constexpr uint16_t kFar = 0xFFFF;
  using Lanes = std::array<uint16_t, kCapacity>;

  static __m128i &halfOf(Lanes &lanes, unsigned half) {
    return reinterpret_cast<__m128i *>(lanes.data())[half];
  }
  KPERFIR_SIMT_INLINE __m128i lanesOfLsu(unsigned half) {
    auto is = [&](Pipe pipe) {
      return _mm_cmpeq_epi16(halfOf(pipes, half),
                             _mm_set1_epi16(static_cast<short>(pipe)));
    };
    return _mm_or_si128(is(Pipe::Lsu), is(Pipe::Async));
  }
  KPERFIR_SIMT_INLINE static uint16_t least(__m128i first, __m128i second) {
    return static_cast<uint16_t>(
        _mm_extract_epi16(_mm_minpos_epu16(_mm_min_epu16(first, second)), 0));
  }
  KPERFIR_SIMT_INLINE static unsigned bits(__m128i first, __m128i second) {
    return static_cast<unsigned>(
        _mm_movemask_epi8(_mm_packs_epi16(first, second)));
  }
  /// kFar in all lanes that are not among `lanes`.
  KPERFIR_SIMT_INLINE static __m128i orFar(__m128i cycles, __m128i lanes) {
    return _mm_or_si128(cycles, _mm_xor_si128(lanes, _mm_set1_epi16(-1)));
  }
  /// Writes the whole vector: a load right after a store of one lane would wait
  /// for it to leave the host's store buffer.
  KPERFIR_SIMT_INLINE static void setLane(Lanes &lanes, unsigned position,
                                          uint16_t value) {
    static constexpr uint16_t kOne[2 * kCapacity] = {
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFFFF};
    __m128i &half = halfOf(lanes, position / 8);
    auto mask = reinterpret_cast<const __m128i *>(kOne + 15 - position % 8);
    half = _mm_blendv_epi8(half, _mm_set1_epi16(static_cast<short>(value)),
                           _mm_loadu_si128(mask));
  }

  KPERFIR_SIMT_INLINE uint16_t relative(uint64_t cycle) const {
    uint64_t ahead = cycle > base ? cycle - base : 0;
    return static_cast<uint16_t>(std::min<uint64_t>(ahead, kFar));
  }
  uint64_t readyOf(Pipe pipe) const {
    return ready[static_cast<unsigned>(pipe)];
  }

  void rebase(uint64_t cycle) {
    base = cycle;
    for (unsigned i = 0; i < kCapacity; ++i) {
      relativeWake[i] = relative(wake[i]);
      relativeReady[i] = relative(readyOf(pipeOf(i)));
    }
  }
  Choice chooseFar(uint64_t cycle, uint64_t lsuReady) {
    uint64_t soonest = kNever, lsuWake = kNever;
    for (unsigned i = 0; i < kCapacity; ++i) {
      soonest =
          std::min(soonest, std::max(wake[i], readyOf(pipeOf(i), lsuReady)));
      if (sharesLsu(pipeOf(i)))
        lsuWake = std::min(lsuWake, std::max(wake[i], cycle));
    }
    rebase(cycle);
    return {kNoWarp, soonest, lsuWake >= soonest, lsuWake};
  }
  uint64_t nextChangeFar(uint64_t cycle, uint64_t lsuReady) {
    uint64_t soonest = kNever;
    for (unsigned i = 0; i < kCapacity; ++i)
      soonest = std::min(
          soonest, wake[i] > cycle ? wake[i] : readyOf(pipeOf(i), lsuReady));
    rebase(cycle);
    return soonest;
  }

  alignas(16) Lanes relativeWake{};
  alignas(16) Lanes relativeReady{}; // of the warp's pipe
  alignas(16) Lanes pipes{};
  uint64_t base = 0;
  std::array<uint64_t, kNumPipes> ready{};
  std::array<uint64_t, kCapacity> wake{};
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_ISSUEQUEUE_H
