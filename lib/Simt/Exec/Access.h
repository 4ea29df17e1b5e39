//===- Access.h - Modifiers of instructions that touch memory -------------===//

#ifndef KPERFIR_SIMT_EXEC_ACCESS_H
#define KPERFIR_SIMT_EXEC_ACCESS_H

#include "Simt/Exec/Program.h"

#include <optional>
#include <string_view>
#include <vector>

namespace kperfir::simt {

/// A mnemonic cut at its dots.
using Words = std::vector<std::string_view>;

std::optional<Space> spaceFromName(std::string_view word);
std::optional<AtomicOp> atomicFromName(std::string_view word);
/// Eviction priorities and prefetch sizes; no effect on results here.
bool isCacheHint(std::string_view word);

/// What the modifiers of a memory access say.
struct Access {
  Space space = Space::Generic;
  MemSem sem = MemSem::Weak;
  MemScope scope = MemScope::Gpu;
  unsigned width = 1;
  Type type = Type::None;
  std::optional<AtomicOp> atomic;
  bool hasPolicy = false;

  /// False if `word` is none of them.
  bool take(std::string_view word);
  void store(MicroOp &op) const;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_ACCESS_H
