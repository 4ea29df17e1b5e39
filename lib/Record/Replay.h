//===- Replay.h - Events of a warp to spans -------------------------------===//
//
// Owns what an event does to the open spans of a warp. FORMAT.md states the
// rules; kperfir/capture/reference.py has them again, independently.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_LIB_RECORD_REPLAY_H
#define KPERFIR_LIB_RECORD_REPLAY_H

#include "Record/Decoder.h"

namespace kperfir::record {

/// Replays the events of warps, one warp after the other. The open spans follow
/// the region tree: a region starts directly inside its parent.
class Replay {
public:
  explicit Replay(const DecoderLayout &plan);

  /// Begin a warp; its spans go behind those in \p columns. \p prefixLost: a
  /// ring has overwritten the warp's first events.
  void begin(SpanColumns &columns, bool prefixLost);

  /// Open the regions around \p event, the first one of a warp without prefix:
  /// their starts are lost but must have happened.
  void reopenAncestors(Event event, int64_t clock);

  /// Give room for the spans that \p starts more events start.
  void reserve(uint64_t starts);

  /// False if the event contradicts the region tree; then \p openRegion says
  /// what was open instead.
  bool apply(Event event, int64_t clock);

  /// Close what is still open at the warp's last stamp.
  void finish(int64_t clock);

  /// Row of the span that was started last.
  int64_t lastRow() const { return next - 1; }

  std::string openRegion() const;

  /// Ends whose start was overwritten.
  int64_t orphanEnds() const { return orphans; }

private:
  struct Open {
    int64_t row;
    int32_t region;
    int64_t iterations; // Of a loop: begun so far; -1: unknown.
  };

  /// What replaying needs of a region, in one place.
  struct Rule {
    int32_t parent;
    bool isIteration;
    bool inherits; // Its iteration is that of the region around it.
  };

  /// The columns, as long as nothing is resized.
  struct Rows {
    int32_t *region;
    int16_t *depth;
    int64_t *parent, *iteration, *start, *end;
    uint8_t *complete;
  };

  const Rule &rule(int32_t region) const {
    return rules[static_cast<size_t>(region)];
  }
  Open &top() { return stack[depth - 1]; }
  const Open &top() const { return stack[depth - 1]; }
  bool iterationOf(int32_t loop) const {
    if (depth == 0)
      return false;
    const Rule &open = rule(top().region);
    return open.isIteration && open.parent == loop;
  }
  bool start(int32_t region, int64_t clock);
  bool end(int32_t region, int64_t clock);
  void push(int32_t region, int64_t clock, int64_t iteration, bool complete);
  void close(int64_t clock) { rows.end[stack[--depth].row] = clock; }

  std::vector<Rule> rules;
  bool prefixLost = false, first = true;
  bool inGap = false; // The innermost open region ends with the next event.
  SpanColumns *out = nullptr;
  Rows rows{};
  int64_t next = 0; // Row of the next span; rows behind it have room.
  int64_t orphans = 0;
  std::vector<Open> stack; // The first `depth` are open.
  size_t depth = 0;
  std::vector<int32_t> chain;
};

} // namespace kperfir::record

#endif // KPERFIR_LIB_RECORD_REPLAY_H
