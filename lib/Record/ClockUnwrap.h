//===- ClockUnwrap.h - 32-bit clock values to 64 bits ---------------------===//

#ifndef KPERFIR_LIB_RECORD_CLOCKUNWRAP_H
#define KPERFIR_LIB_RECORD_CLOCKUNWRAP_H

#include <cstdint>
#include <string>

namespace kperfir::record {

/// A stamp further than this outside its CTA's anchors is corrupt, provided
/// that the anchors are less than 2^31 cycles apart.
inline constexpr int64_t kSlackCycles = int64_t(1) << 30;

struct CtaAnchors {
  int64_t startClock, endClock;
};

/// Extends 32-bit clock values to 64 bits, in program order.
class ClockUnwrap {
public:
  ClockUnwrap(CtaAnchors anchors)
      : anchors(anchors),
        checked(anchors.endClock - anchors.startClock < int64_t(1) << 31) {}

  /// Start at the CTA's start anchor; the warp may be a little ahead of it.
  void begin(uint32_t first) { last = near(anchors.startClock, first); }

  /// Start so that the last stamp lies at the end anchor: \p elapsed cycles
  /// pass between the first and the last.
  void beginBefore(uint32_t final, int64_t elapsed) {
    last = near(anchors.endClock, final) - elapsed;
  }

  int64_t advance(uint32_t raw) {
    last += uint32_t(raw - static_cast<uint32_t>(last));
    return last;
  }

  /// Clock of the stamp that was given last; before that, of the first one.
  int64_t current() const { return last; }

  std::string describe() const {
    return std::to_string(anchors.startClock) + " to " +
           std::to_string(anchors.endClock);
  }

  bool plausible(int64_t clock) const {
    return !checked || (clock >= anchors.startClock - kSlackCycles &&
                        clock <= anchors.endClock + kSlackCycles);
  }

private:
  static int64_t near(int64_t anchor, uint32_t raw) {
    return anchor + int64_t(int32_t(raw - static_cast<uint32_t>(anchor)));
  }

  CtaAnchors anchors;
  bool checked;
  int64_t last = 0;
};

} // namespace kperfir::record

#endif // KPERFIR_LIB_RECORD_CLOCKUNWRAP_H
