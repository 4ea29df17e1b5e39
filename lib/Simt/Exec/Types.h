//===- Types.h - Names of the types of PTX --------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_TYPES_H
#define KPERFIR_SIMT_EXEC_TYPES_H

#include "Simt/Exec/Program.h"

#include <optional>
#include <string_view>

namespace kperfir::simt {

/// "bf16x2" to Type::BF16x2; nothing if it is not a type.
std::optional<Type> typeFromName(std::string_view name);

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_TYPES_H
