//===- Sampling.cpp -------------------------------------------------------===//

#include "Simt/Exec/Sampling.h"

#include <algorithm>

namespace kperfir::simt {

CtaRange chooseUntimed(uint64_t ctas, uint64_t places, unsigned waves) {
  if (waves == 0)
    return {};
  uint64_t whole = (ctas - 1) / places, detailed = std::max(waves, 3u);
  if (whole <= detailed)
    return {};
  return {places, (1 + whole - detailed) * places};
}

double WaveClock::cyclesPerWave() const {
  return (startSums.back() - startSums[1]) /
         static_cast<double>(places * (startSums.size() - 2));
}

} // namespace kperfir::simt
