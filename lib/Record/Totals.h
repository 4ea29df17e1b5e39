//===- Totals.h - Spans of a warp, added up by region ---------------------===//
//
// Adds the spans of a warp up, for readers that need no single one: a report of
// ten million records. Owns no replay rule; the spans come from Replay.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_LIB_RECORD_TOTALS_H
#define KPERFIR_LIB_RECORD_TOTALS_H

#include "Record/Decoder.h"

namespace kperfir::record {

class Totals {
public:
  Totals(const DecoderLayout &plan, TotalColumns &columns);

  /// Append a row for each region that rows \p begin and later of \p spans are
  /// of; those are the spans of warp \p track.
  void add(const SpanColumns &spans, size_t begin, int64_t track);

private:
  size_t addRow(const SpanColumns &spans, size_t span, int64_t track);

  const DecoderLayout &plan;
  TotalColumns &columns;
  std::vector<size_t> rowOf; // Per region, if it is 1 or more: row + 1.
};

} // namespace kperfir::record

#endif // KPERFIR_LIB_RECORD_TOTALS_H
