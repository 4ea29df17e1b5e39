//===- Access.cpp - Modifiers of instructions that touch memory -----------===//

#include "Simt/Exec/Access.h"

#include "Simt/Exec/Types.h"

#include <algorithm>

namespace kperfir::simt {
namespace {

std::optional<MemSem> semFromName(std::string_view word) {
  static constexpr std::pair<std::string_view, MemSem> kNames[] = {
      {"weak", MemSem::Weak},         {"relaxed", MemSem::Relaxed},
      {"acquire", MemSem::Acquire},   {"release", MemSem::Release},
      {"acq_rel", MemSem::AcqRel},    {"sc", MemSem::SeqCst},
      {"volatile", MemSem::Volatile}, {"mmio", MemSem::Relaxed},
  };
  for (auto [name, sem] : kNames)
    if (word == name)
      return sem;
  return std::nullopt;
}

std::optional<MemScope> scopeFromName(std::string_view word) {
  static constexpr std::pair<std::string_view, MemScope> kNames[] = {
      {"cta", MemScope::Cta}, {"cluster", MemScope::Cluster},
      {"gpu", MemScope::Gpu}, {"gl", MemScope::Gpu},
      {"sys", MemScope::Sys},
  };
  for (auto [name, scope] : kNames)
    if (word == name)
      return scope;
  return std::nullopt;
}

} // namespace

std::optional<Space> spaceFromName(std::string_view word) {
  if (word == "global" || word == "const")
    return Space::Global;
  if (word == "shared" || word == "shared::cta")
    return Space::Shared;
  if (word == "shared::cluster")
    return Space::SharedCluster;
  if (word == "local")
    return Space::Local;
  return std::nullopt;
}

std::optional<AtomicOp> atomicFromName(std::string_view word) {
  static constexpr std::pair<std::string_view, AtomicOp> kNames[] = {
      {"add", AtomicOp::Add}, {"exch", AtomicOp::Exch}, {"cas", AtomicOp::Cas},
      {"min", AtomicOp::Min}, {"max", AtomicOp::Max},   {"inc", AtomicOp::Inc},
      {"dec", AtomicOp::Dec}, {"and", AtomicOp::And},   {"or", AtomicOp::Or},
      {"xor", AtomicOp::Xor},
  };
  for (auto [name, op] : kNames)
    if (word == name)
      return op;
  return std::nullopt;
}

bool isCacheHint(std::string_view word) {
  static constexpr std::string_view kNames[] = {"ca", "cg", "cs", "lu",   "cv",
                                                "wb", "wt", "nc", "noftz"};
  return std::find(std::begin(kNames), std::end(kNames), word) !=
             std::end(kNames) ||
         word.starts_with("L1::") || word.starts_with("L2::") ||
         word.starts_with("level::");
}

bool Access::take(std::string_view word) {
  if (auto found = spaceFromName(word))
    space = *found;
  else if (auto found = semFromName(word))
    sem = *found;
  else if (auto found = scopeFromName(word))
    scope = *found;
  else if (word == "v2" || word == "v4" || word == "v8")
    width = static_cast<unsigned>(word[1] - '0');
  else if (auto found = typeFromName(word))
    type = *found;
  else if (word == "L2::cache_hint")
    hasPolicy = true;
  else if (!isCacheHint(word))
    return false;
  return true;
}

void Access::store(MicroOp &op) const {
  op.space = space;
  op.type = type;
  op.width = static_cast<uint8_t>(width);
  op.order = static_cast<uint8_t>(static_cast<unsigned>(sem) |
                                  static_cast<unsigned>(scope) << 4);
  if (sem == MemSem::Volatile)
    op.flags |= kVolatile;
}

} // namespace kperfir::simt
