//===- Options.cpp - The one parser of pass options -----------------------===//

#include "passes/Options.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::kperf;

namespace {
/// Stands in for a pass whose options were not understood.
struct RejectOptions
    : public PassWrapper<RejectOptions, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RejectOptions)

  RejectOptions(std::string flag, std::string error)
      : flag(std::move(flag)), error(std::move(error)) {}

  StringRef getArgument() const override { return flag; }
  StringRef getName() const override { return "RejectOptions"; }

  void runOnOperation() override {
    getOperation().emitError() << flag << ": " << error;
    signalPassFailure();
  }

  std::string flag;
  std::string error;
};
} // namespace

OptionReader::OptionReader(StringRef flag, OptionTexts texts)
    : flag(flag.str()) {
  for (const std::string &text : texts)
    this->texts.push_back(StringRef(text).split('='));
}

std::optional<StringRef> OptionReader::take(StringRef name) {
  known.push_back(name);
  std::optional<StringRef> found;
  llvm::erase_if(texts, [&](std::pair<StringRef, StringRef> text) {
    if (text.first != name)
      return false;
    found = text.second;
    return true;
  });
  return found;
}

void OptionReader::readCount(StringRef name, uint32_t &value,
                             uint32_t minimum) {
  std::optional<StringRef> text = take(name);
  if (!text)
    return;
  uint32_t number;
  if (text->getAsInteger(10, number) || number < minimum)
    error = (name + " is '" + *text +
             "', expected a whole number of at least " + Twine(minimum))
                .str();
  else
    value = number;
}

void OptionReader::readChoice(StringRef name, std::string &value,
                              ArrayRef<StringRef> choices) {
  std::optional<StringRef> text = take(name);
  if (!text)
    return;
  if (llvm::is_contained(choices, *text))
    value = text->str();
  else
    error = (name + " is '" + *text + "', expected one of " +
             llvm::join(choices, ", "))
                .str();
}

void OptionReader::readText(StringRef name, std::string &value) {
  if (std::optional<StringRef> text = take(name))
    value = text->str();
}

void OptionReader::readList(StringRef name,
                            SmallVectorImpl<std::string> &values) {
  std::optional<StringRef> text = take(name);
  if (!text)
    return;
  values.clear();
  for (StringRef word : llvm::split(*text, ','))
    if (!word.empty())
      values.push_back(word.str());
}

std::unique_ptr<Pass> OptionReader::reject() {
  if (error.empty() && !texts.empty())
    error = ("unknown option '" + texts.front().first + "', expected " +
             (known.empty() ? std::string("none")
                            : "one of " + llvm::join(known, ", ")))
                .str();
  if (error.empty())
    return nullptr;
  return std::make_unique<RejectOptions>(flag, error);
}
