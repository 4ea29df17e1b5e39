//===- ConstantPool.cpp - Immediates and addresses as rows ----------------===//

#include "Simt/Exec/Lowering.h"

#include <algorithm>
#include <cstdlib>

namespace kperfir::simt {

RowIndex ConstantPool::intern(uint64_t bits, unsigned rows) {
  auto [entry, isNew] = index.try_emplace({rows, bits}, RowIndex(0));
  if (!isNew)
    return entry->second;
  if (widths.size() + rows >= kNoRow - kConstantBase)
    throw Error(ErrorKind::Limit, "the kernel has more than " +
                                      std::to_string(widths.size()) +
                                      " different constants");
  entry->second = static_cast<RowIndex>(kConstantBase + widths.size());
  for (unsigned i = 0; i < rows; ++i) {
    widths.push_back(static_cast<uint8_t>(rows));
    words.push_back(static_cast<uint32_t>(bits >> 32 * i));
  }
  return entry->second;
}

std::shared_ptr<void> ConstantPool::materialise(Program &program) const {
  size_t bytes =
      std::max<size_t>(widths.size(), 1) * kWarpSize * sizeof(uint32_t);
  auto *memory = static_cast<uint32_t *>(std::aligned_alloc(64, bytes));
  if (!memory)
    throw std::bad_alloc();
  std::shared_ptr<void> owner(memory, [](void *p) { std::free(p); });
  for (size_t row = 0; row < widths.size();) {
    unsigned rows = widths[row];
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      for (unsigned i = 0; i < rows; ++i)
        memory[row * kWarpSize + lane * rows + i] = words[row + i];
    row += rows;
  }
  program.constants = memory;
  program.numConstantRows = static_cast<uint32_t>(widths.size());
  return owner;
}

} // namespace kperfir::simt
