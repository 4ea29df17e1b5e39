//===- Hex.h - Numbers in messages ----------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_HEX_H
#define KPERFIR_SIMT_EXEC_HEX_H

#include <cstdint>
#include <cstdio>
#include <string>

namespace kperfir::simt {

/// An address or offset, as messages show it: 0x1f.
inline std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx",
                static_cast<unsigned long long>(value));
  return text;
}

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_HEX_H
