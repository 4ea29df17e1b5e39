//===- Lowering.h - From statements to virtual ops (internal) -------------===//
//
// Lowering.cpp chooses a rule per statement and emits ops; the other files that
// begin with Lower hold the rules, and LowerOperands.cpp what they share.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_LOWERING_H
#define KPERFIR_SIMT_EXEC_LOWERING_H

#include "Simt/Error.h"
#include "Simt/Exec/Compare.h"
#include "Simt/Exec/ControlFlow.h"
#include "Simt/Exec/Semantics.h"
#include "Simt/Exec/VirtualOp.h"

#include <initializer_list>
#include <map>
#include <optional>
#include <string>

namespace kperfir::simt {

struct Access;

/// Where module variables lie, decided before the statements are lowered.
struct MemoryLayout {
  std::unordered_map<uint32_t, uint64_t>
      addresses; // variable id -> address in its space
  std::unordered_map<uint32_t, uint32_t>
      params; // variable id -> offset in the block
};

/// Immediates and addresses as rows.
class ConstantPool {
public:
  /// Row that holds `bits` in every lane, `rows` words wide.
  RowIndex intern(uint64_t bits, unsigned rows);
  std::shared_ptr<void> materialise(Program &program) const;

private:
  std::map<std::pair<unsigned, uint64_t>, RowIndex> index;
  std::vector<uint32_t>
      words; // one per row of a 1-row constant, two words of a 2-row one
  std::vector<uint8_t> widths;
};

/// An operand that an op reads: a virtual register or a constant.
struct Value {
  bool isConstant = false;
  uint32_t reg = 0;
  RowIndex row = kNoRow;
  uint8_t rows = 1; // 0: predicate
};

/// Nothing if `operand` is no constant, or a large one.
std::optional<uint32_t> smallConstant(const ptx::Operand &operand);

class Lowering {
public:
  Lowering(const FlatKernel &kernel, const ControlFlow &flow,
           const MemoryLayout &layout, Program &program, HostIsa isa);

  /// Lowers every reachable block.
  void run();

  std::vector<VirtualOp> ops;
  std::vector<VirtualBlock> blocks;
  std::vector<VirtualRegister> registers;
  ConstantPool constants;
  /// There is a setmaxnreg: warps start with all the registers of .maxnreg.
  bool movesRegisters = false;

private:
  // --- LowerTable.cpp: what the instruction table knows, moves, control flow
  // ------
  void statement(uint32_t index);
  void tableInstruction();
  void bind(const Semantics &row);
  void move();
  void unpackVector();
  void packVector();
  void setp();
  void set();
  void compare(const std::string &mnemonic, Combine combine,
               std::optional<uint32_t> result,
               std::optional<uint32_t> complement);
  // --- LowerControl.cpp ---
  void branch();
  void branchTable();
  void ret();
  void paramLoad();
  void paramStore();

  // --- What the engine executes ---
  // LowerMemory.cpp
  void load();
  void store();
  void atomic();
  void accessAsync();
  void fence();
  void prefetch();
  void asyncCopy();
  void asyncGroup();
  void asyncArrive();
  // LowerMbarrier.cpp
  void mbarrier();
  void mbarrierPendingCount();
  void mbarrierAccess(Opcode opcode, const Access &access, uint8_t sub,
                      bool isParity);
  // LowerMatrix.cpp
  void loadMatrix();
  void storeMatrix();
  void moveMatrix();
  void multiply();
  // LowerWgmma.cpp
  void wgmma();
  void wgmmaScales(WgmmaShape &shape);
  void wgmmaGroup();
  // LowerBulk.cpp
  void bulkCopy();
  void bulkGroup();
  void tensormapReplace();
  void tensormapCopy();
  // LowerEngine.cpp
  void barrier();
  void clusterBarrier();
  void setMaxRegisters();
  void systemCall();
  void sleep();
  void trap();
  void nothing();

  using Method = void (Lowering::*)();
  struct Rule {
    std::string_view prefix; // whole dotted words of the mnemonic
    Method method;
  };
  static const Rule kRules[];
  static const Rule kEngineRules[];
  static const unsigned kEngineRuleCount;
  const Rule *findRule() const;
  friend std::vector<std::string_view> loweredPrefixes();

  // --- emission --------------------------------------------------------------
  /// A new op for the current statement, under its guard.
  VirtualOp &emit(Opcode opcode, OpKind kind, Timing timing);
  VirtualOp &emit(const Semantics &row);
  /// A helper op that computes an operand: unguarded, takes no time.
  VirtualOp &emitHelper(const char *mnemonic);
  /// A further op of the statement that takes no time.
  VirtualOp &emitTail(const std::string &mnemonic);
  const Semantics &row(const std::string &mnemonic) const;
  void read(VirtualOp &op, Slot slot, const Value &value);
  void write(VirtualOp &op, Slot slot, std::optional<uint32_t> reg);
  void readPool(VirtualOp &op, const Value &value);
  void writePool(VirtualOp &op, std::optional<uint32_t> reg);
  uint32_t temporary(uint8_t rows);

  // --- operands --------------------------------------------------------------
  const ptx::Operand &operand(size_t i) const { return current->operands[i]; }
  size_t operandCount() const { return current->operands.size(); }
  void expectOperands(size_t least, size_t most) const;
  /// What is read of an operand where the instruction takes `letter`
  /// (Semantics.h). May emit helpers, so it comes before the op that reads it.
  Value source(const ptx::Operand &operand, char letter);
  std::vector<Value> sources(const ptx::Operand &operand, char letter);
  Value immediate(const ptx::Operand &operand, char letter);
  Value special(const std::string &name, char letter);
  Value constant(uint64_t bits, char letter);
  Value address(const ptx::Operand &operand, char letter);
  Value variableAddress(uint32_t id, int64_t offset, char letter);
  /// Register that is written; nothing for the sink.
  std::optional<uint32_t> target(const ptx::Operand &operand, char letter);
  /// The same where the register may be wider than the value: the caller writes
  /// the result and then calls widen().
  struct WideTarget {
    std::optional<uint32_t> written; // what the op writes
    std::optional<uint32_t> final;   // the PTX register, if it is another one
    unsigned finalBits = 0;
  };
  WideTarget wideTarget(const ptx::Operand &operand, unsigned bits);
  void widen(const WideTarget &target, Type type);
  uint32_t virtualRegister(uint32_t id) const {
    return frame->registerBase + id;
  }
  Type registerType(uint32_t id) const {
    return kernel.registers[virtualRegister(id)].type;
  }
  uint32_t resolveVariable(uint32_t id) const;
  const ptx::Variable &variable(uint32_t id) const {
    return kernel.module->variables[id];
  }
  /// Address operand: base into src[slot], offset returned.
  int64_t readAddress(VirtualOp &op, Slot slot, const Value &base,
                      const ptx::Operand &operand);
  void setAddress(VirtualOp &op, const Value &base,
                  const ptx::Operand &operand);
  Value addressBase(const ptx::Operand &operand);

  std::vector<std::string_view> words() const;
  [[noreturn]] void unsupported(const std::string &detail = {}) const;
  [[noreturn]] void malformed(const std::string &message) const;
  ErrorSite site() const;

  const FlatKernel &kernel;
  const ControlFlow &flow;
  const MemoryLayout &layout;
  Program &program;
  HostIsa isa;
  const ptx::Statement *current = nullptr;
  const Frame *frame = nullptr;
  uint32_t currentIndex = 0;
  std::optional<uint32_t> carry; // the condition code register
  /// Values in `.param` variables of calls, by variable and byte offset.
  struct ParamValue {
    uint32_t reg = 0;
    unsigned bits = 0;
  };
  std::map<std::pair<uint32_t, int64_t>, ParamValue> paramValues;
};

/// Rows that a register of the type takes; 0 for a predicate.
uint8_t rowsOf(Type type);
/// Bits of an operand of a signature letter; 0 for a predicate.
unsigned letterBits(char letter);
/// Letter of a type.
char typeLetter(Type type);

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_LOWERING_H
