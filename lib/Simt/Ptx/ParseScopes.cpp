//===- ParseScopes.cpp - Registers and labels by name ---------------------===//
//
// Which register, variable or label a name means in the scopes that are open.
//
//===----------------------------------------------------------------------===//

#include "Simt/Ptx/ParserState.h"

namespace kperfir::simt::ptx {

std::optional<uint32_t> Parser::findVariable(std::string_view name) const {
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
    if (auto found = scope->variables.find(name);
        found != scope->variables.end())
      return found->second;
  return std::nullopt;
}

std::optional<uint32_t> Parser::findRegister(std::string_view name) const {
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
    --digits;
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    if (auto found = scope->registers.find(name);
        found != scope->registers.end())
      return found->second;
    // `%r<20>` declares %r0..%r19; `a1<20>` declares a10..a119: the digits
    // that belong to the prefix are not known, so try every split.
    for (size_t split = digits; split < name.size(); ++split) {
      auto range = scope->ranges.find(name.substr(0, split));
      if (range == scope->ranges.end() || name.size() - split > 9)
        continue;
      uint64_t number = 0;
      for (char c : name.substr(split))
        number = number * 10 + static_cast<unsigned>(c - '0');
      if (number < range->second.count &&
          (name[split] != '0' || name.size() - split == 1))
        return range->second.first + static_cast<uint32_t>(number);
    }
  }
  return std::nullopt;
}

uint32_t Parser::labelId(std::string_view name) {
  auto [entry, isNew] = scopes.back().labels.try_emplace(name, 0);
  if (isNew) {
    entry->second = static_cast<uint32_t>(current->labels.size());
    current->labels.push_back({std::string(name), kUndefined, {}, false});
    labelLines.push_back(peek().line);
  }
  return entry->second;
}

void Parser::defineLabel() {
  uint32_t id = labelId(peek().text);
  Label &label = current->labels[id];
  if (label.statement != kUndefined)
    fail("label '" + label.name + "' is defined twice in one scope");
  label.statement = static_cast<uint32_t>(current->body.size());
  take();
  expect(':', "after a label");
  lastLabel = id;
}

void Parser::branchTargets() {
  if (lastLabel == kUndefined)
    fail(".branchtargets needs a label");
  uint32_t table = lastLabel;
  current->labels[table].isTable = true;
  do {
    uint32_t id = labelId(expectWord("a label"));
    current->labels[table].branchTargets.push_back(id);
  } while (accept(','));
  expect(';', "after .branchtargets");
}

void Parser::closeScope() {
  Scope inner = std::move(scopes.back());
  scopes.pop_back();
  if (!current)
    return;
  bool isFunctionScope = scopes.size() == 1;
  for (auto [name, id] : inner.labels) {
    if (current->labels[id].statement != kUndefined || isFunctionScope)
      continue;
    auto [outer, isNew] = scopes.back().labels.try_emplace(name, id);
    if (!isNew)
      aliases.emplace_back(id, outer->second);
  }
  if (isFunctionScope)
    resolveAliases();
}

void Parser::resolveAliases() {
  // Innermost scopes close first, so a chain is resolved from its end.
  for (auto alias = aliases.rbegin(); alias != aliases.rend(); ++alias) {
    const Label &target = current->labels[alias->second];
    Label &label = current->labels[alias->first];
    label.statement = target.statement;
    label.isTable = target.isTable;
    label.branchTargets = target.branchTargets;
  }
  for (size_t i = 0; i < current->labels.size(); ++i)
    if (current->labels[i].statement == kUndefined)
      failAt(labelLines[labelLines.size() - current->labels.size() + i],
             "'" + current->labels[i].name + "' is not declared");
}

void Parser::checkLabels(Function &function) {
  for (Label &label : function.labels)
    label.statement =
        std::min(label.statement, static_cast<uint32_t>(function.body.size()));
}

} // namespace kperfir::simt::ptx
