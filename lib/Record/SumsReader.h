//===- SumsReader.h - Sums of the executions of a warp --------------------===//
//
// Reads and checks the segment of a warp that summed its executions up instead
// of recording them (strategy aggregate). FORMAT.md states the rules;
// kperfir/capture/reference_sums.py has them again, independently.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_LIB_RECORD_SUMSREADER_H
#define KPERFIR_LIB_RECORD_SUMSREADER_H

#include "Record/Decoder.h"
#include "Record/FrameWalk.h"

namespace kperfir::record {

class SumsReader {
public:
  SumsReader(const DecoderLayout &plan, SumsColumns &columns)
      : plan(plan), columns(columns) {}

  /// Appends a row for each region that the warp executed. \p cycles: how long
  /// its CTA ran.
  std::optional<DecodeError> run(const Segment &segment, int64_t cycles);

  /// Executions of all regions of that warp.
  int64_t executions() const { return executed; }

private:
  std::optional<DecodeError> readHeader(const Segment &segment);
  std::optional<DecodeError> readRegion(const Segment &segment,
                                        uint32_t region);

  const DecoderLayout &plan;
  SumsColumns &columns;
  int64_t executed = 0;
  int64_t ctaCycles = 0;
};

} // namespace kperfir::record

#endif // KPERFIR_LIB_RECORD_SUMSREADER_H
