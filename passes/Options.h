//===- Options.h - The one parser of pass options -------------------------===//
//
// PassOptions and cl::opt are not part of the audited ABI, so options travel as
// texts. A text is `name=value`.
//
//   OptionReader reader("kperf-plan-buffer", texts);
//   reader.readCount("buffer-bytes", options.bufferBytes);
//   if (auto rejected = reader.reject())
//     return rejected;
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_OPTIONS_H
#define KPERFIR_PASSES_OPTIONS_H

#include "passes/Passes.h"

namespace mlir::kperf {

class OptionReader {
public:
  OptionReader(StringRef flag, OptionTexts texts);

  /// Each reader leaves `value` alone if the option is absent, and keeps an
  /// error if its text is not acceptable.
  void readCount(StringRef name, uint32_t &value, uint32_t minimum = 0);
  void readChoice(StringRef name, std::string &value,
                  ArrayRef<StringRef> choices);
  void readText(StringRef name, std::string &value);
  /// Comma-separated words.
  void readList(StringRef name, SmallVectorImpl<std::string> &values);

  /// After all reads: null if every text was understood, else a pass that
  /// fails with a diagnostic. The plugin interface has no other way to refuse.
  std::unique_ptr<Pass> reject();

private:
  std::optional<StringRef> take(StringRef name);

  std::string flag;
  SmallVector<std::pair<StringRef, StringRef>> texts;
  SmallVector<StringRef> known;
  std::string error;
};

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_OPTIONS_H
