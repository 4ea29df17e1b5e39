//===- probe.cpp - Measure libtriton's classes from inside its process ----===//
//
// A Triton plugin with one pass that prints a JSON object: how many bytes the
// library's constructors write, and what the interface tables of registered
// operations hold. test_abi.py compares both with the headers.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/AsmState.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "triton/Tools/PluginUtils.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <malloc.h>

using namespace mlir;
namespace json = llvm::json;

namespace {

/// Constructs a T in a buffer with a known fill and finds the last byte that
/// changed. Two fills, so that a byte written with the fill's value is seen.
template <typename T, typename... Args>
json::Object measureConstructor(const char *name, Args... args) {
  constexpr std::size_t size = 4096;
  alignas(16) static unsigned char memory[size];
  std::size_t end = 0;
  for (unsigned char fill : {0xa5, 0x5a}) {
    std::memset(memory, fill, size);
    new (memory) T(args...); // Never destroyed: the process ends soon.
    for (std::size_t i = size; i > end; --i)
      if (memory[i - 1] != fill) {
        end = i;
        break;
      }
  }
  return json::Object{
      {"name", name}, {"header_bytes", sizeof(T)}, {"written_bytes", end}};
}

/// Offset of a function in libtriton.so; 0 if it is none of its functions.
std::int64_t offsetInLibrary(const void *address) {
  Dl_info info;
  if (!dladdr(address, &info) || !std::strstr(info.dli_fname, "libtriton.so"))
    return 0;
  return static_cast<const char *>(address) -
         static_cast<const char *>(info.dli_fbase);
}

/// The function table of interface I that the library made for \p op.
template <typename I>
void describeInterface(json::Array &out, const char *name, Operation *op) {
  auto info = op->getName().getRegisteredInfo();
  auto *concept_ = info ? info->getInterface<I>() : nullptr;
  json::Object row{{"interface", name},
                   {"operation", op->getName().getStringRef()},
                   {"found", concept_ != nullptr}};
  if (concept_) {
    row["header_bytes"] = sizeof(typename I::Concept);
    row["usable_bytes"] = malloc_usable_size((void *)concept_);
    json::Array slots;
    for (std::size_t i = 0; i < sizeof(typename I::Concept) / 8; ++i)
      slots.push_back(
          offsetInLibrary(reinterpret_cast<void *const *>(concept_)[i]));
    row["slots"] = std::move(slots);
  }
  out.push_back(std::move(row));
}

json::Array describeInterfaces(ModuleOp module) {
  llvm::StringMap<Operation *> first;
  module->walk([&](Operation *op) {
    first.try_emplace(op->getName().getStringRef(), op);
  });
  json::Array out;
#define DESCRIBE(interface, operation)                                         \
  describeInterface<interface>(out, #interface, first.at(operation))
  DESCRIBE(SymbolOpInterface, "builtin.module");
  DESCRIBE(RegionKindInterface, "builtin.module");
  DESCRIBE(OpAsmOpInterface, "builtin.module");
  DESCRIBE(FunctionOpInterface, "tt.func");
  DESCRIBE(CallableOpInterface, "tt.func");
  DESCRIBE(CallOpInterface, "tt.call");
  DESCRIBE(MemoryEffectOpInterface, "tt.load");
  DESCRIBE(InferTypeOpInterface, "tt.load");
  DESCRIBE(ConditionallySpeculatable, "arith.addi");
  DESCRIBE(MemoryEffectOpInterface, "arith.addi");
  DESCRIBE(LoopLikeOpInterface, "scf.for");
  DESCRIBE(RegionBranchOpInterface, "scf.for");
  DESCRIBE(RegionBranchTerminatorOpInterface, "scf.yield");
#undef DESCRIBE
  return out;
}

struct ProbePass : PassWrapper<ProbePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ProbePass)

  StringRef getArgument() const override { return "kperfir-probe"; }

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    Operation *module = getOperation();
    json::Array constructors;
    constructors.push_back(measureConstructor<OperationState>(
        "OperationState", UnknownLoc::get(context), StringRef("x.y")));
    constructors.push_back(
        measureConstructor<PassManager>("PassManager", context));
    constructors.push_back(
        measureConstructor<OpPrintingFlags>("OpPrintingFlags"));
    constructors.push_back(measureConstructor<AsmState>("AsmState", module));
    constructors.push_back(
        measureConstructor<DialectRegistry>("DialectRegistry"));
    constructors.push_back(
        measureConstructor<SymbolTable>("SymbolTable", module));
    json::Object report{{"constructors", std::move(constructors)},
                        {"interfaces", describeInterfaces(getOperation())}};
    std::string text;
    llvm::raw_string_ostream(text) << json::Value(std::move(report));
    std::puts(text.c_str());
    std::fflush(stdout);
  }
};

void addProbe(PassManager *manager, const std::vector<std::string> &) {
  manager->addPass(std::make_unique<ProbePass>());
}

} // namespace

namespace plugin = mlir::triton::plugin;

TRITON_PLUGIN_API plugin::PluginInfo *tritonGetPluginInfo() {
  static plugin::PassInfo passes[] = {{"kperfir_probe", "1", addProbe, [] {}}};
  static plugin::PluginInfo info = {TRITON_PLUGIN_API_VERSION,
                                    "kperfir-probe",
                                    "1",
                                    passes,
                                    1,
                                    nullptr,
                                    0,
                                    nullptr,
                                    0,
                                    TRITON_VERSION};
  return &info;
}
