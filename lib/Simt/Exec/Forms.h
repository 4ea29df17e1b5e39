//===- Forms.h - Which instructions there are -----------------------------===//
//
// For documentation, and for the test that every instruction has a test.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_FORMS_H
#define KPERFIR_SIMT_EXEC_FORMS_H

#include <string_view>
#include <vector>

namespace kperfir::simt {

/// Mnemonics of the instruction table, normalised as it spells them.
std::vector<std::string_view> tableMnemonics();
/// Leading words of the instructions whose form the lowering chooses or the
/// engine executes, such as `setp`, `ld`, `mma.sync`.
std::vector<std::string_view> loweredPrefixes();

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_FORMS_H
