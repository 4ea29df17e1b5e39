//===- AbiGuard.h - Is the loaded libtriton one that was audited? ---------===//
//
// The plugin shares C++ classes with libtriton.so without a stable ABI between
// them. test/abi compares the two for each published build; this guard makes
// sure that the plugin runs in one of those and in nothing else.
//
// The list of audited builds is kperfir/compile/audited_libtriton.json, which
// the build turns into AuditedLibtriton.inc. kperfir/compile/abi.py reads the
// same file and asks the same question before the plugin is loaded at all.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_LIB_PLUGIN_ABIGUARD_H
#define KPERFIR_LIB_PLUGIN_ABIGUARD_H

#include <optional>
#include <string>
#include <string_view>

namespace kperfir::abi {

/// GNU build-id, in lower-case hex, of the loaded library whose file name is
/// \p fileName. Empty if no such library is loaded or it carries no build-id.
std::optional<std::string> findBuildId(std::string_view fileName);

/// True if \p buildId is in the list of audited libtriton builds.
bool isAudited(std::string_view buildId);

/// Empty if this process runs an audited libtriton. Otherwise one line that
/// says what was found, what was expected and what to do.
///
/// A plugin refuses by returning a PluginInfo without passes and dialects whose
/// `tritonVersion` is this line: libtriton compares that with its own version
/// and raises a Python exception that quotes it.
std::string checkHost();

} // namespace kperfir::abi

#endif // KPERFIR_LIB_PLUGIN_ABIGUARD_H
