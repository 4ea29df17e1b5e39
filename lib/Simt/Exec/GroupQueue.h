//===- GroupQueue.h - Groups of asynchronous work that a warp waits for ---===//
//
// The last one is open; committing it opens another. Warps come by thousands,
// and most never commit: one group takes no memory of its own.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_GROUPQUEUE_H
#define KPERFIR_SIMT_EXEC_GROUPQUEUE_H

#include <cstddef>
#include <utility>
#include <vector>

namespace kperfir::simt {

template <typename Group> class GroupQueue {
public:
  /// Forgets all groups, and opens one.
  void reset() {
    closed.clear();
    first = 0;
    open = Group();
  }

  /// The open one counts.
  size_t size() const { return closed.size() - first + 1; }
  Group &operator[](size_t index) {
    return first + index < closed.size() ? closed[first + index] : open;
  }
  const Group &operator[](size_t index) const {
    return first + index < closed.size() ? closed[first + index] : open;
  }
  Group &front() { return (*this)[0]; }
  Group &back() { return open; }
  const Group &back() const { return open; }

  /// Closes the open group, and opens another.
  void commit() {
    if (first > closed.size() / 2) {
      closed.erase(closed.begin(),
                   closed.begin() + static_cast<std::ptrdiff_t>(first));
      first = 0;
    }
    closed.push_back(std::exchange(open, Group()));
  }
  /// Forgets the oldest group, which must be closed.
  void popFront() { closed[first++] = Group(); }

private:
  Group open{};
  std::vector<Group> closed; // from `first` on
  size_t first = 0;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_GROUPQUEUE_H
