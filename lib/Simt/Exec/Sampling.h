//===- Sampling.h - Which CTAs of a large grid are simulated in detail ----===//
//
// A regular grid repeats itself: after a few waves of CTAs every further one
// takes as long as the one before. So of a grid with more waves than asked for,
// the first one and the last ones run in detail. The whole waves between them
// run without time, while that of the chip stands still, but leave in L2 what
// they touch; each then counts for as long as those behind them take.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_SAMPLING_H
#define KPERFIR_SIMT_EXEC_SAMPLING_H

#include <cstdint>
#include <vector>

namespace kperfir::simt {

/// From `begin` up to but without `end`.
struct CtaRange {
  uint64_t begin = 0, end = 0;
  uint64_t count() const { return end - begin; }
};

/// Those that run without time, by the order in which CTAs are placed.
/// `places`: CTAs of a whole wave. `waves`, at least 3: whole waves that run in
/// detail, and with them the last one, which may be smaller. 0: all.
CtaRange chooseUntimed(uint64_t ctas, uint64_t places, unsigned waves);

/// Measures how long a wave takes.
class WaveClock {
public:
  WaveClock(uint64_t places, unsigned waves)
      : places(places), startSums(waves, 0.0) {}

  /// The next of those in detail, number `index`, begins at `cycle`.
  void start(uint64_t index, uint64_t cycle) {
    if (uint64_t wave = index / places; wave < startSums.size())
      startSums[wave] += static_cast<double>(cycle);
  }
  /// Cycles from a wave to the next one. The first does not count: it finds
  /// empty caches.
  double cyclesPerWave() const;

private:
  uint64_t places;
  std::vector<double> startSums; // by wave
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_SAMPLING_H
