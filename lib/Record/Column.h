//===- Column.h - Memory of the decoder's tables --------------------------===//

#ifndef KPERFIR_LIB_RECORD_COLUMN_H
#define KPERFIR_LIB_RECORD_COLUMN_H

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace kperfir::record {

/// Memory for a column of \p bytes: in huge pages if it is large, because with
/// ordinary ones the host would spend half of the time on handing out pages.
void *allocateColumn(size_t bytes);
void freeColumn(void *memory) noexcept;

/// Leaves new elements uninitialised: every row is written after a resize, and
/// zeroing tables of gigabytes first would take longer than decoding.
template <typename T> struct ColumnAllocator : std::allocator<T> {
  template <typename U> struct rebind {
    using other = ColumnAllocator<U>;
  };
  T *allocate(size_t count) {
    return static_cast<T *>(allocateColumn(count * sizeof(T)));
  }
  void deallocate(T *memory, size_t) noexcept { freeColumn(memory); }
  template <typename U> void construct(U *) noexcept {}
  template <typename U, typename... Args> void construct(U *p, Args &&...args) {
    ::new (static_cast<void *>(p)) U(std::forward<Args>(args)...);
  }
};

template <typename T> using Column = std::vector<T, ColumnAllocator<T>>;

} // namespace kperfir::record

#endif // KPERFIR_LIB_RECORD_COLUMN_H
