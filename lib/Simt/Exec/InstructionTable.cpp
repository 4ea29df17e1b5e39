//===- InstructionTable.cpp - Look up a mnemonic --------------------------===//

#include "Simt/Exec/Forms.h"
#include "Simt/Exec/Semantics.h"

#include <array>
#include <unordered_map>
#include <vector>

namespace kperfir::simt {

#define KPERFIR_DECLARE_TABLES(ISA)                                            \
  namespace ISA {                                                              \
  struct Table {                                                               \
    const Semantics *rows;                                                     \
    unsigned count;                                                            \
  };                                                                           \
  extern const Table *const kFamilies[];                                       \
  extern const unsigned kFamilyCount;                                          \
  }
KPERFIR_DECLARE_TABLES(baseline)
KPERFIR_DECLARE_TABLES(avx2)
KPERFIR_DECLARE_TABLES(avx512)

namespace {

struct Index {
  std::vector<std::span<const Semantics>> families;
  std::unordered_map<std::string_view, const Semantics *> rows;

  template <class Table> Index(const Table *const *tables, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      families.emplace_back(tables[i]->rows, tables[i]->count);
      for (const Semantics &row : families.back())
        rows.emplace(row.mnemonic, &row);
    }
  }
};

const Index &indexOf(HostIsa isa) {
  switch (isa) {
  case HostIsa::Avx512: {
    static const Index index(avx512::kFamilies, avx512::kFamilyCount);
    return index;
  }
  case HostIsa::Avx2: {
    static const Index index(avx2::kFamilies, avx2::kFamilyCount);
    return index;
  }
  case HostIsa::Baseline:
    break;
  }
  static const Index index(baseline::kFamilies, baseline::kFamilyCount);
  return index;
}

} // namespace

const Semantics *findSemantics(HostIsa isa, std::string_view mnemonic) {
  const Index &index = indexOf(isa);
  auto found = index.rows.find(mnemonic);
  return found == index.rows.end() ? nullptr : found->second;
}

InstructionSet instructionSet(HostIsa isa) { return {indexOf(isa).families}; }

std::vector<std::string_view> tableMnemonics() {
  std::vector<std::string_view> mnemonics;
  for (auto family : indexOf(HostIsa::Baseline).families)
    for (const Semantics &row : family)
      mnemonics.emplace_back(row.mnemonic);
  return mnemonics;
}

} // namespace kperfir::simt
