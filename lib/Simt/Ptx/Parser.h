//===- Parser.h - PTX text to a module ------------------------------------===//
//
// Owns the grammar of PTX: directives, declarations, scopes, operands.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_PTX_PARSER_H
#define KPERFIR_SIMT_PTX_PARSER_H

#include "Simt/Ptx/Ast.h"

namespace kperfir::simt::ptx {

/// Throws simt::Error (Parse) with the PTX line on anything that is not PTX.
/// Instructions are accepted by shape: whether one exists is the lowering's
/// decision. Debug sections are skipped.
Module parse(std::string_view source);

} // namespace kperfir::simt::ptx

#endif // KPERFIR_SIMT_PTX_PARSER_H
