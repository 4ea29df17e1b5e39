//===- Ast.h - A parsed PTX module ----------------------------------------===//
//
// What the parser hands to the lowering: names resolved to dense ids, scopes
// gone, mnemonics still text. Meaning of instructions is not decided here.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_PTX_AST_H
#define KPERFIR_SIMT_PTX_AST_H

#include "Simt/Exec/Program.h"

#include <string>
#include <string_view>
#include <vector>

namespace kperfir::simt::ptx {

enum class OperandKind : uint8_t {
  Register,  // id = index in Function::registers; negated for `!%p`
  Special,   // text = "%tid.x"
  Immediate, // bits, literal
  Variable,  // id = index in Module::variables; offset
  Label,     // id = index in Function::labels
  Function,  // text
  Sink,      // `_`
  Vector,    // {elements}
  Address,   // [base + offset]: elements[0] = base, more elements as written
  Pair,      // a|b
  List,      // (elements), call arguments
};

enum class Literal : uint8_t { Integer, Float32, Float64 };

struct Operand {
  OperandKind kind = OperandKind::Sink;
  bool negated = false;
  Literal literal = Literal::Integer;
  uint32_t id = 0;
  uint64_t bits = 0;
  int64_t offset = 0;
  std::string text;
  std::vector<Operand> elements;
};

inline constexpr uint32_t kNoRegister = 0xFFFFFFFFu;

struct SourceLocation {
  uint32_t file = 0; // `.file` number, 0 = unknown
  uint32_t line = 0;
  uint32_t column = 0;
};

struct Statement {
  std::string mnemonic; // "ld.global.v4.b32"
  std::string text;     // as written, on one line, without comments
  uint32_t guard = kNoRegister;
  bool guardNegated = false;
  uint32_t ptxLine = 0;
  SourceLocation location;
  std::vector<Operand> operands;
};

struct Register {
  std::string name;
  Type type = Type::None;
};

struct Label {
  std::string name;
  uint32_t statement = 0; // index in Function::body
  std::vector<uint32_t>
      branchTargets; // label ids, if this is a .branchtargets table
  bool isTable = false;
};

enum class VariableSpace : uint8_t { Global, Const, Shared, Local, Param };

struct Variable {
  std::string name;
  VariableSpace space = VariableSpace::Global;
  Type type = Type::B8;
  uint32_t align = 1;
  uint64_t bytes = 0;
  bool isExternal = false;
  bool isUnsized = false;           // `name[]`
  std::vector<uint8_t> initialiser; // little-endian, may be shorter than bytes
  struct Relocation {
    uint64_t at;
    uint32_t variable;
    int64_t addend;
    uint32_t bytes;
  };
  std::vector<Relocation> relocations;
};

struct Function {
  std::string name;
  bool isEntry = false;
  bool isDefined = false;
  bool isNoReturn = false;
  uint32_t ptxLine = 0;
  std::vector<uint32_t> params; // variable ids, VariableSpace::Param
  std::vector<uint32_t> returns;
  std::vector<uint32_t> variables; // .local and .shared ones declared inside
  std::vector<Register> registers;
  std::vector<Label> labels;
  std::vector<Statement> body;
  std::array<uint32_t, 3> reqntid = {0, 0, 0};
  std::array<uint32_t, 3> maxntid = {0, 0, 0};
  std::array<uint32_t, 3> clusterDim = {0, 0, 0};
  uint32_t minNctaPerSm = 0;
  uint32_t maxRegisters = 0; // per thread; 0: not given
};

struct Module {
  std::string version;
  std::string target;
  uint32_t addressSize = 64;
  std::vector<std::string> files = {""}; // by `.file` number
  std::vector<Variable> variables;
  std::vector<Function> functions;

  const Function *find(std::string_view name) const {
    const Function *declared = nullptr;
    for (const Function &function : functions)
      if (function.name == name) {
        if (function.isDefined)
          return &function;
        declared = &function;
      }
    return declared;
  }
};

} // namespace kperfir::simt::ptx

#endif // KPERFIR_SIMT_PTX_AST_H
