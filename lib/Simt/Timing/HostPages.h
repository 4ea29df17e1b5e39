//===- HostPages.h - Zeroed memory in huge pages, if the host has them ----===//

#ifndef KPERFIR_SIMT_TIMING_HOSTPAGES_H
#define KPERFIR_SIMT_TIMING_HOSTPAGES_H

#include <cstddef>
#include <cstdint>

namespace kperfir::simt {

/// Memory that a step of the machine visits all over: with ordinary pages the
/// host would spend its time on translating addresses.
class HostPages {
public:
  HostPages() = default;
  explicit HostPages(size_t bytes);
  ~HostPages();
  HostPages(HostPages &&other) noexcept;
  HostPages &operator=(HostPages &&other) noexcept;

  /// Aligned to 4096 bytes.
  uint8_t *data() const { return begin; }
  size_t size() const { return bytes; }

private:
  uint8_t *begin = nullptr;
  size_t bytes = 0;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_TIMING_HOSTPAGES_H
