//===- Tables.cpp - All families of one host instruction set --------------===//

#include "Simt/Exec/Tables.h"

namespace kperfir::simt::KPERFIR_SIMT_ISA {

const Table *const kFamilies[] = {
    &kDataTable,    &kIntegerTable,    &kLogicTable, &kFloatTable,
    &kDoubleTable,  &kApproxTable,     &kHalfTable,  &kCompareTable,
    &kConvertTable, &kCollectiveTable,
};
const unsigned kFamilyCount = sizeof kFamilies / sizeof *kFamilies;

} // namespace kperfir::simt::KPERFIR_SIMT_ISA
