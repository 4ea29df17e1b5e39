//===- Load.cpp - PTX text to a Program -----------------------------------===//
//
// The pipeline: parse, inline calls, find basic blocks, lay out memory, lower,
// allocate registers, and write down the Program.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Lowering.h"
#include "Simt/Exec/Types.h"
#include "Simt/Ptx/Parser.h"

#include <algorithm>
#include <cstdlib>
#include <set>

namespace kperfir::simt {
namespace {

constexpr uint64_t kMaxSpaceBytes = uint64_t(1) << 31;

uint64_t alignUp(uint64_t value, uint64_t align) {
  return (value + align - 1) / align * align;
}

class Loader {
public:
  Loader(const ptx::Module &module, HostIsa isa)
      : module(module), isa(isa), program(std::make_shared<Program>()) {}

  std::shared_ptr<const Program> run(const std::string &name) {
    const ptx::Function &entry = findEntry(name);
    describe(entry);
    FlatKernel kernel = flatten(module, entry);
    MemoryLayout layout = layOut(kernel);
    ControlFlow flow = buildControlFlow(kernel);
    Lowering lowering(kernel, flow, layout, *program, isa);
    lowering.run();
    joinHalves(lowering.ops, lowering.blocks, lowering.registers, isa);
    markProductHazards(lowering.ops, lowering.blocks,
                       lowering.registers.size());
    markProductFences(lowering.ops, lowering.blocks, program->wgmmas,
                      lowering.registers.size());
    Allocation allocation =
        allocateRegisters(lowering.ops, lowering.blocks, lowering.registers);
    program->numRows = std::max(allocation.numRows, 1u);
    program->numPredicates = std::max(allocation.numPredicates, 1u);
    program->numScoreboardSlots = program->numRows + program->numPredicates;
    program->registers = estimateRegisters(allocation.pressure);
    if (entry.maxRegisters)
      program->registers =
          lowering.movesRegisters
              ? entry.maxRegisters
              : std::min(program->registers, entry.maxRegisters);
    program->storage.push_back(lowering.constants.materialise(*program));
    writeBlocks(flow, lowering);
    for (size_t i = 0; i < lowering.ops.size(); ++i)
      writeOp(kernel, flow, lowering, lowering.ops[i]);
    for (uint32_t &target : program->branchTargets)
      target = lowering.blocks[target].begin;
    return program;
  }

private:
  const ptx::Function &findEntry(const std::string &name) const {
    for (const ptx::Function &function : module.functions)
      if (function.isEntry && function.isDefined &&
          (name.empty() || function.name == name))
        return function;
    throw Error(ErrorKind::Parse,
                name.empty() ? "the PTX text defines no .entry"
                             : "the PTX text defines no .entry '" + name + "'");
  }

  void describe(const ptx::Function &entry) {
    program->kernel = entry.name;
    program->target = module.target;
    program->isa = isa;
    program->files = module.files;
    program->reqntid = entry.reqntid;
    program->maxntid = entry.maxntid;
    program->minNctaPerSm = entry.minNctaPerSm;
    program->clusterDim = entry.clusterDim;
    uint32_t offset = 0;
    for (uint32_t id : entry.params) {
      const ptx::Variable &variable = module.variables[id];
      if (variable.bytes > 65536)
        limit("parameter '" + variable.name + "' is larger than 64 KiB");
      Parameter parameter;
      parameter.name = variable.name;
      parameter.type = typeName(variable.type);
      parameter.bytes = static_cast<uint32_t>(variable.bytes);
      uint32_t element = typeBits(variable.type) / 8;
      if (element && parameter.bytes != element)
        parameter.type += "[" + std::to_string(parameter.bytes / element) + "]";
      parameter.align = variable.align;
      offset = static_cast<uint32_t>(alignUp(offset, variable.align));
      parameter.offset = offset;
      offset += parameter.bytes;
      program->params.push_back(std::move(parameter));
    }
    program->paramBytes = offset;
  }

  [[noreturn]] void limit(const std::string &message) const {
    ErrorSite site;
    site.kernel = program->kernel;
    throw Error(ErrorKind::Limit, message, site);
  }

  // --- memory ----------------------------------------------------------------

  MemoryLayout layOut(const FlatKernel &kernel) {
    MemoryLayout layout;
    const ptx::Function &entry = *kernel.frames[0].function;
    for (size_t i = 0; i < entry.params.size(); ++i)
      layout.params[entry.params[i]] = program->params[i].offset;
    std::vector<uint32_t> ids = moduleVariables();
    std::set<const ptx::Function *> seen;
    for (const Frame &frame : kernel.frames)
      if (seen.insert(frame.function).second)
        ids.insert(ids.end(), frame.function->variables.begin(),
                   frame.function->variables.end());
    placeShared(ids, layout);
    placeLocal(ids, layout);
    placeGlobals(ids, layout);
    return layout;
  }

  /// Variables at module scope.
  std::vector<uint32_t> moduleVariables() const {
    std::set<uint32_t> owned;
    for (const ptx::Function &function : module.functions)
      owned.insert(function.variables.begin(), function.variables.end());
    std::vector<uint32_t> ids;
    for (uint32_t id = 0; id < module.variables.size(); ++id)
      if (module.variables[id].space != ptx::VariableSpace::Param &&
          !owned.count(id))
        ids.push_back(id);
    return ids;
  }

  void placeShared(const std::vector<uint32_t> &ids, MemoryLayout &layout) {
    uint64_t offset = 0, dynamicAlign = 16;
    for (uint32_t id : ids) {
      const ptx::Variable &variable = module.variables[id];
      if (variable.space != ptx::VariableSpace::Shared)
        continue;
      if (variable.isUnsized) {
        dynamicAlign = std::max<uint64_t>(dynamicAlign, variable.align);
        continue;
      }
      offset = alignUp(offset, variable.align);
      layout.addresses[id] = offset;
      program->shared.push_back({variable.name, static_cast<uint32_t>(offset),
                                 static_cast<uint32_t>(variable.bytes)});
      offset += variable.bytes;
      if (offset > kMaxSpaceBytes)
        limit("static shared memory exceeds 2 GiB");
    }
    program->sharedBytes = static_cast<uint32_t>(offset);
    program->dynamicSharedBegin =
        static_cast<uint32_t>(offset ? alignUp(offset, dynamicAlign) : 0);
    for (uint32_t id : ids) {
      const ptx::Variable &variable = module.variables[id];
      if (variable.space != ptx::VariableSpace::Shared || !variable.isUnsized)
        continue;
      layout.addresses[id] = program->dynamicSharedBegin;
      program->shared.push_back(
          {variable.name, program->dynamicSharedBegin, 0});
    }
  }

  void placeLocal(const std::vector<uint32_t> &ids, MemoryLayout &layout) {
    uint64_t offset = 0;
    for (uint32_t id : ids) {
      const ptx::Variable &variable = module.variables[id];
      if (variable.space != ptx::VariableSpace::Local)
        continue;
      offset = alignUp(offset, variable.align);
      layout.addresses[id] = offset;
      offset += variable.bytes;
      if (offset > kMaxSpaceBytes)
        limit("local memory exceeds 2 GiB per thread");
    }
    program->localBytes = static_cast<uint32_t>(alignUp(offset, 16));
  }

  void placeGlobals(const std::vector<uint32_t> &ids, MemoryLayout &layout) {
    uint64_t total = 0;
    std::vector<std::pair<uint32_t, uint64_t>> placed;
    for (uint32_t id : ids) {
      const ptx::Variable &variable = module.variables[id];
      bool isGlobal = variable.space == ptx::VariableSpace::Global ||
                      variable.space == ptx::VariableSpace::Const;
      if (!isGlobal || variable.isExternal)
        continue;
      total = alignUp(total, std::max(variable.align, 16u));
      placed.emplace_back(id, total);
      total += variable.bytes;
      if (total > kMaxSpaceBytes)
        limit("the module's global variables exceed 2 GiB");
    }
    if (placed.empty())
      return;
    auto *memory = static_cast<uint8_t *>(
        std::aligned_alloc(4096, alignUp(std::max<uint64_t>(total, 1), 4096)));
    if (!memory)
      throw std::bad_alloc();
    program->storage.emplace_back(memory, [](void *p) { std::free(p); });
    std::fill_n(memory, total, uint8_t(0));
    for (auto [id, offset] : placed) {
      const ptx::Variable &variable = module.variables[id];
      std::copy(variable.initialiser.begin(), variable.initialiser.end(),
                memory + offset);
      layout.addresses[id] = reinterpret_cast<uint64_t>(memory + offset);
      program->globals.push_back({variable.name, memory + offset,
                                  variable.bytes,
                                  variable.space != ptx::VariableSpace::Const});
    }
    bindExternals(ids, layout);
    for (auto [id, offset] : placed)
      relocate(module.variables[id], memory + offset, layout);
  }

  /// An `.extern` declaration stands for the definition of the same name.
  void bindExternals(const std::vector<uint32_t> &ids,
                     MemoryLayout &layout) const {
    for (uint32_t id : ids)
      for (uint32_t other : ids)
        if (module.variables[id].isExternal &&
            !module.variables[other].isExternal &&
            module.variables[id].name == module.variables[other].name &&
            layout.addresses.count(other))
          layout.addresses[id] = layout.addresses[other];
  }

  void relocate(const ptx::Variable &variable, uint8_t *data,
                const MemoryLayout &layout) const {
    for (const ptx::Variable::Relocation &relocation : variable.relocations) {
      auto found = layout.addresses.find(relocation.variable);
      if (found == layout.addresses.end())
        limit("'" + variable.name +
              "' holds the address of a variable that is not defined");
      uint64_t value = found->second + static_cast<uint64_t>(relocation.addend);
      for (uint32_t i = 0; i < relocation.bytes && i < 8; ++i)
        data[relocation.at + i] = static_cast<uint8_t>(value >> 8 * i);
    }
  }

  // --- program ---------------------------------------------------------------

  /// Hardware hands out registers in eights; a few serve addressing and
  /// barriers.
  static uint32_t estimateRegisters(uint32_t pressure) {
    return static_cast<uint32_t>(
               std::clamp<uint64_t>(alignUp(pressure + 6, 8), 16, 256)) -
           (pressure + 6 > 248 ? 1 : 0);
  }

  uint32_t reconvergence(const FlowBlock &block,
                         const Lowering &lowering) const {
    return block.postDominator == kNoBlock
               ? kNoPc
               : lowering.blocks[block.postDominator].begin;
  }

  void writeBlocks(const ControlFlow &flow, const Lowering &lowering) {
    std::vector<uint32_t> number(flow.blocks.size(), kNoBlock);
    uint32_t count = 0;
    for (size_t b = 0; b < flow.blocks.size(); ++b)
      if (lowering.blocks[b].begin != lowering.blocks[b].end)
        number[b] = count++;
    // A block without ops is the one that follows it.
    for (size_t b = flow.blocks.size(); b-- > 1;)
      if (number[b - 1] == kNoBlock)
        number[b - 1] = number[b];
    for (size_t b = 0; b < flow.blocks.size(); ++b) {
      const VirtualBlock &source = lowering.blocks[b];
      if (source.begin == source.end)
        continue;
      BasicBlock block;
      block.begin = source.begin;
      block.end = source.end;
      block.reconvergence = reconvergence(flow.blocks[b], lowering);
      for (uint32_t s : source.successors)
        block.successors.push_back(number[s]);
      program->blocks.push_back(std::move(block));
      for (uint32_t i = source.begin; i < source.end; ++i)
        joins.push_back(program->blocks.back().reconvergence);
    }
  }

  void writeOp(const FlatKernel &kernel, const ControlFlow &flow,
               const Lowering &lowering, const VirtualOp &source) {
    MicroOp op = source.op;
    auto pc = static_cast<uint32_t>(program->ops.size());
    if (op.opcode == Opcode::Bra) {
      op.imm = static_cast<int32_t>(
          lowering.blocks[static_cast<uint32_t>(op.imm)].begin);
      op.ext = joins[pc];
    } else if (op.opcode == Opcode::BrxIdx) {
      op.ext = joins[pc];
    } else if (!source.pool.empty()) {
      op.ext = static_cast<uint32_t>(program->pool.size());
      program->pool.insert(program->pool.end(), source.pool.begin(),
                           source.pool.end());
    }
    writeScoreboard(op, source, lowering);
    program->ops.push_back(op);
    program->instructionOf.push_back(instruction(kernel, source.statement));
    (void)flow;
  }

  void writeScoreboard(MicroOp &op, const VirtualOp &source,
                       const Lowering &lowering) {
    op.slotBegin = static_cast<uint32_t>(program->scoreboard.size());
    std::vector<uint16_t> reads, writes;
    for (const Reference &reference : source.references) {
      if (reference.isImplicit)
        continue;
      unsigned rows = lowering.registers[reference.reg].rows;
      uint32_t first = rowOf(op, source, reference);
      uint32_t slot = rows == 0 ? program->numRows + first : first;
      if (!reference.isDefinition) {
        reads.push_back(static_cast<uint16_t>(slot));
        continue;
      }
      for (unsigned i = 0; i < std::max(rows, 1u); ++i)
        writes.push_back(static_cast<uint16_t>(slot + i));
    }
    for (std::vector<uint16_t> *list : {&reads, &writes}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
      program->scoreboard.insert(program->scoreboard.end(), list->begin(),
                                 list->end());
    }
    op.numReads = static_cast<uint8_t>(reads.size());
    op.numWrites = static_cast<uint8_t>(writes.size());
  }

  static uint32_t rowOf(const MicroOp &op, const VirtualOp &source,
                        const Reference &reference) {
    switch (reference.slot) {
    case Slot::Dst0:
      return op.dst[0];
    case Slot::Dst1:
      return op.dst[1];
    case Slot::Guard:
      return op.guard;
    case Slot::Pool:
      return source.pool[reference.poolIndex];
    default:
      return op.src[static_cast<unsigned>(reference.slot) -
                    static_cast<unsigned>(Slot::Src0)];
    }
  }

  /// Index of the statement's Instruction; consecutive ops share it.
  uint32_t instruction(const FlatKernel &kernel, uint32_t statement) {
    if (statement != lastStatement) {
      lastStatement = statement;
      const ptx::Statement &source = *kernel.statements[statement].statement;
      Instruction instruction;
      instruction.text = source.text;
      instruction.mnemonic = source.mnemonic;
      instruction.ptxLine = source.ptxLine;
      if (source.location.file < program->files.size() &&
          source.location.line) {
        instruction.file = source.location.file;
        instruction.line = source.location.line;
        instruction.column = source.location.column;
      }
      program->instructions.push_back(std::move(instruction));
    }
    return static_cast<uint32_t>(program->instructions.size() - 1);
  }

  const ptx::Module &module;
  HostIsa isa;
  std::shared_ptr<Program> program;
  std::vector<uint32_t> joins; // by pc
  uint32_t lastStatement = 0xFFFFFFFFu;
};

} // namespace

std::shared_ptr<const Program>
loadProgram(const std::string &ptx, const std::string &kernel, HostIsa isa) {
  ptx::Module module = ptx::parse(ptx);
  return Loader(module, isa).run(kernel);
}

} // namespace kperfir::simt
