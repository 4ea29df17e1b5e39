//===- TestChip.h - The chip that engine tests use ------------------------===//

#ifndef KPERFIR_TEST_UNIT_SIMT_TESTCHIP_H
#define KPERFIR_TEST_UNIT_SIMT_TESTCHIP_H

#include "Simt/Timing/Chip.h"

#include <fstream>
#include <sstream>

namespace kperfir::simt::test {

inline std::string chipText(const std::string &name = "a100") {
  std::ifstream file(std::string(KPERFIR_CHIPS) + "/" + name + ".json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline Chip chip() { return Chip::parse(chipText()); }

} // namespace kperfir::simt::test

#endif // KPERFIR_TEST_UNIT_SIMT_TESTCHIP_H
