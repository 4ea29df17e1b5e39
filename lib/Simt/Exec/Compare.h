//===- Compare.h - Boolean operand of setp --------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_COMPARE_H
#define KPERFIR_SIMT_EXEC_COMPARE_H

#include <cstdint>

namespace kperfir::simt {

/// MicroOp::sub of Setp: how the comparison joins the predicate in src[2]
/// (negated if kPredSrcNegated).
enum class Combine : uint8_t { None, And, Or, Xor };

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_COMPARE_H
