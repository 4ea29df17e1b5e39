//===- HostPages.cpp ------------------------------------------------------===//

#include "Simt/Timing/HostPages.h"

#include <new>
#include <sys/mman.h>
#include <utility>

namespace kperfir::simt {

namespace {
constexpr size_t kHugePage = size_t(2) << 20;
} // namespace

HostPages::HostPages(size_t wanted) : bytes(wanted ? wanted : 1) {
  if (bytes >= kHugePage / 2)
    bytes = (bytes + 2 * kHugePage - 1) / kHugePage * kHugePage;
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw std::bad_alloc();
  begin = static_cast<uint8_t *>(memory);
  if (bytes >= kHugePage)
    madvise(begin, bytes, MADV_HUGEPAGE); // A wish; it may be ignored.
}

HostPages::~HostPages() {
  if (begin)
    munmap(begin, bytes);
}

HostPages::HostPages(HostPages &&other) noexcept
    : begin(std::exchange(other.begin, nullptr)),
      bytes(std::exchange(other.bytes, 0)) {}

HostPages &HostPages::operator=(HostPages &&other) noexcept {
  std::swap(begin, other.begin);
  std::swap(bytes, other.bytes);
  return *this;
}

} // namespace kperfir::simt
