//===- Tables.h - The instruction families of one host instruction set ----===//

#ifndef KPERFIR_SIMT_EXEC_TABLES_H
#define KPERFIR_SIMT_EXEC_TABLES_H

#include "Simt/Exec/Lanes.h"

namespace kperfir::simt::KPERFIR_SIMT_ISA {

/// A family's rows.
struct Table {
  const Semantics *rows;
  unsigned count;
  template <unsigned N>
  constexpr explicit Table(const Semantics (&rows)[N]) : rows(rows), count(N) {}
};

extern const Table kIntegerTable;
extern const Table kLogicTable;
extern const Table kFloatTable;
extern const Table kDoubleTable;
extern const Table kApproxTable;
extern const Table kHalfTable;
extern const Table kCompareTable;
extern const Table kConvertTable;
extern const Table kDataTable;
extern const Table kCollectiveTable;

/// All of them, for InstructionTable.cpp.
extern const Table *const kFamilies[];
extern const unsigned kFamilyCount;

} // namespace kperfir::simt::KPERFIR_SIMT_ISA

#endif // KPERFIR_SIMT_EXEC_TABLES_H
