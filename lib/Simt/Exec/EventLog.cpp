//===- EventLog.cpp -------------------------------------------------------===//

#include "Simt/Exec/EventLog.h"

namespace kperfir::simt {

namespace {
template <typename T>
void extend(std::vector<T> &to, const std::vector<T> &from) {
  to.insert(to.end(), from.begin(), from.end());
}
} // namespace

void EventLog::append(const EventLog &other) {
  extend(sm, other.sm);
  extend(cta, other.cta);
  extend(warp, other.warp);
  extend(instruction, other.instruction);
  extend(opcode, other.opcode);
  extend(issue, other.issue);
  extend(complete, other.complete);
  extend(value, other.value);
  extend(units, other.units);
}

} // namespace kperfir::simt
