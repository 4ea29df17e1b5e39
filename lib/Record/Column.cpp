//===- Column.cpp ---------------------------------------------------------===//

#include "Record/Column.h"

#include <cstdlib>
#include <sys/mman.h>

namespace kperfir::record {

constexpr size_t kHugePage = size_t(2) << 20;

void *allocateColumn(size_t bytes) {
  bool large = bytes >= 2 * kHugePage;
  size_t alignment = large ? kHugePage : alignof(std::max_align_t);
  size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void *memory = std::aligned_alloc(alignment, rounded ? rounded : alignment);
  if (!memory)
    throw std::bad_alloc();
  if (large)
    madvise(memory, rounded, MADV_HUGEPAGE); // A wish; it may be ignored.
  return memory;
}

void freeColumn(void *memory) noexcept { std::free(memory); }

} // namespace kperfir::record
