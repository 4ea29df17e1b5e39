//===- Error.h - What a SIMT device reports when a program is wrong -------===//
//
// Owns the one exception type of the SIMT library. Every failure that a PTX
// program can cause, at load or while it runs, is an Error; nothing aborts.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_ERROR_H
#define KPERFIR_SIMT_ERROR_H

#include <cstdint>
#include <stdexcept>
#include <string>

namespace kperfir::simt {

enum class ErrorKind : uint8_t {
  Parse,
  Unsupported,
  OutOfBounds,
  Misaligned,
  Uninitialised,
  Race, // two accesses that nothing orders
  Deadlock,
  Trap,
  Assert,
  Limit,
};

/// The spelling that Python sees ("out-of-bounds", ...).
constexpr const char *errorKindName(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::Parse:
    return "parse";
  case ErrorKind::Unsupported:
    return "unsupported";
  case ErrorKind::OutOfBounds:
    return "out-of-bounds";
  case ErrorKind::Misaligned:
    return "misaligned";
  case ErrorKind::Uninitialised:
    return "uninitialised";
  case ErrorKind::Race:
    return "race";
  case ErrorKind::Deadlock:
    return "deadlock";
  case ErrorKind::Trap:
    return "trap";
  case ErrorKind::Assert:
    return "assert";
  case ErrorKind::Limit:
    return "limit";
  }
  return "unknown";
}

/// Where an error happened. Fields that are not known keep their defaults.
struct ErrorSite {
  std::string kernel;
  std::string opcode;   // full mnemonic, e.g. "wgmma.fence.sync.aligned"
  uint32_t ptxLine = 0; // 1-based line of the PTX text
  std::string file;     // source file of the nearest .loc
  uint32_t line = 0;    // source line of the nearest .loc
  int64_t cta = -1;     // linear CTA index
  int32_t warp = -1;    // warp within the CTA
  int32_t lane = -1;    // lane within the warp
  uint64_t address = 0; // meaningful if hasAddress
  bool hasAddress = false;
  bool isGlobal = false; // the address is one of the process, not of a window
};

/// `what()` is the whole sentence, place included.
class Error : public std::runtime_error {
public:
  Error(ErrorKind kind, const std::string &message, ErrorSite site = {})
      : std::runtime_error(render(message, site)), kind(kind), message(message),
        site(std::move(site)) {}

  const ErrorKind kind;
  const std::string message;
  const ErrorSite site;

private:
  static std::string render(const std::string &message, const ErrorSite &site) {
    std::string text = message;
    if (!site.kernel.empty())
      text += ", in kernel " + site.kernel;
    if (site.ptxLine)
      text += ", PTX line " + std::to_string(site.ptxLine);
    if (!site.file.empty())
      text += " (" + site.file + ":" + std::to_string(site.line) + ")";
    if (site.cta >= 0)
      text += ", CTA " + std::to_string(site.cta);
    if (site.warp >= 0)
      text += ", warp " + std::to_string(site.warp);
    if (site.lane >= 0)
      text += ", lane " + std::to_string(site.lane);
    return text;
  }
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_ERROR_H
