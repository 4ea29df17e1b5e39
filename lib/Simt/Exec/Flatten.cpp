//===- Flatten.cpp - One statement list per kernel ------------------------===//

#include "Simt/Exec/Flatten.h"

#include "Simt/Error.h"

#include <algorithm>

namespace kperfir::simt {
namespace {

constexpr size_t kMaxStatements = 1u << 22;

class Flattener {
public:
  Flattener(const ptx::Module &module, const ptx::Function &kernel)
      : kernel(kernel) {
    result.module = &module;
  }

  FlatKernel run() {
    expand(kernel, {});
    static const ptx::Statement end = [] {
      ptx::Statement statement;
      statement.mnemonic = statement.text = "ret";
      return statement;
    }();
    result.statements.push_back({&end, 0});
    return std::move(result);
  }

private:
  [[noreturn]] void fail(const ptx::Statement &at,
                         const std::string &message) const {
    ErrorSite site;
    site.kernel = kernel.name;
    site.opcode = at.mnemonic;
    site.ptxLine = at.ptxLine;
    throw Error(ErrorKind::Unsupported, message, site);
  }

  void expand(const ptx::Function &function,
              std::unordered_map<uint32_t, uint32_t> bindings) {
    auto index = static_cast<uint32_t>(result.frames.size());
    Frame frame;
    frame.function = &function;
    frame.registerBase = static_cast<uint32_t>(result.registers.size());
    frame.labelBase = static_cast<uint32_t>(result.labels.size());
    frame.bindings = std::move(bindings);
    frame.endLabel =
        frame.labelBase + static_cast<uint32_t>(function.labels.size());
    result.registers.insert(result.registers.end(), function.registers.begin(),
                            function.registers.end());
    result.labels.resize(frame.endLabel + 1);
    result.frames.push_back(frame);
    callStack.push_back(&function);

    std::vector<uint32_t> position(function.body.size() + 1);
    for (size_t i = 0; i < function.body.size(); ++i) {
      position[i] = static_cast<uint32_t>(result.statements.size());
      statement(function.body[i], index);
    }
    position.back() = static_cast<uint32_t>(result.statements.size());
    for (size_t i = 0; i < function.labels.size(); ++i)
      result.labels[frame.labelBase + i] =
          position[function.labels[i].statement];
    result.labels[frame.endLabel] = position.back();
    callStack.pop_back();
  }

  void statement(const ptx::Statement &statement, uint32_t frame) {
    const ptx::Function *callee = nullptr;
    if (statement.mnemonic == "call" || statement.mnemonic == "call.uni")
      callee = result.module->find(statement.operands[1].text);
    if (!callee || !callee->isDefined) {
      if (result.statements.size() >= kMaxStatements)
        fail(statement,
             "the kernel has too many instructions once calls are inlined");
      result.statements.push_back({&statement, frame});
      return;
    }
    if (statement.guard != ptx::kNoRegister)
      fail(statement,
           "a guarded call of '" + callee->name + "' is not supported");
    if (std::find(callStack.begin(), callStack.end(), callee) !=
        callStack.end())
      fail(statement,
           "recursive call of '" + callee->name + "' is not supported");
    std::unordered_map<uint32_t, uint32_t> bindings;
    bind(statement, *callee, statement.operands[0], callee->returns, frame,
         bindings);
    bind(statement, *callee, statement.operands[2], callee->params, frame,
         bindings);
    expand(*callee, std::move(bindings));
  }

  void bind(const ptx::Statement &at, const ptx::Function &callee,
            const ptx::Operand &actual, const std::vector<uint32_t> &formals,
            uint32_t frame,
            std::unordered_map<uint32_t, uint32_t> &bindings) const {
    if (actual.elements.size() != formals.size())
      fail(at, "call of '" + callee.name + "' with " +
                   std::to_string(actual.elements.size()) +
                   " values where it takes " + std::to_string(formals.size()));
    for (size_t i = 0; i < formals.size(); ++i) {
      if (actual.elements[i].kind != ptx::OperandKind::Variable)
        fail(at, "argument " + std::to_string(i) + " of '" + callee.name +
                     "' is not a .param variable");
      uint32_t variable = actual.elements[i].id;
      const auto &outer = result.frames[frame].bindings;
      auto found = outer.find(variable);
      bindings[formals[i]] = found == outer.end() ? variable : found->second;
    }
  }

  const ptx::Function &kernel;
  FlatKernel result;
  std::vector<const ptx::Function *> callStack;
};

} // namespace

FlatKernel flatten(const ptx::Module &module, const ptx::Function &kernel) {
  return Flattener(module, kernel).run();
}

} // namespace kperfir::simt
