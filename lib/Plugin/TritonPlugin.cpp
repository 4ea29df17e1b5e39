//===- TritonPlugin.cpp - The entry point that Triton loads ---------------===//
//
// Tells Triton of the dialects and passes, if this libtriton was audited. The
// only includer of PluginUtils.h. Triton names the Python functions after the
// passes: `kperf-plan-buffer` is `passes.plugin.add_kperf_plan_buffer`.
//
//===----------------------------------------------------------------------===//

#include "Dialect/KPerf/KPerf.h"
#include "Dialect/KPerfGPU/KPerfGPU.h"
#include "Plugin/AbiGuard.h"
#include "passes/Passes.h"

#include "triton/Tools/PluginUtils.h"
#include "llvm/Support/raw_ostream.h"

#include <utility>

namespace plugin = mlir::triton::plugin;
using namespace mlir;

namespace {

constexpr const char *kVersion = KPERFIR_VERSION;

/// Triton's callbacks carry no state, so each pass needs a function of its own.
template <size_t Index>
void addPass(PassManager *manager, const std::vector<std::string> &options) {
  manager->addPass(kperf::listPasses()[Index].create(options));
}

template <size_t Index> void registerPass() {
  mlir::registerPass([] { return kperf::listPasses()[Index].create({}); });
}

template <typename Dialect> void registerDialect(DialectRegistry *registry) {
  registry->insert<Dialect>();
}

template <size_t... Indices>
std::vector<plugin::PassInfo> describePasses(std::index_sequence<Indices...>) {
  // Names live as long as the process: Triton keeps the pointers.
  static std::vector<std::string> names;
  for (const kperf::PassEntry &entry : kperf::listPasses()) {
    names.push_back(entry.flag.str());
    std::replace(names.back().begin(), names.back().end(), '-', '_');
  }
  return {{names[Indices].c_str(), kVersion, addPass<Indices>,
           registerPass<Indices>}...};
}

plugin::PluginInfo describe() {
  static std::vector<plugin::PassInfo> passes =
      describePasses(std::make_index_sequence<kperf::kPassCount>());
  static plugin::DialectInfo dialects[] = {
      {"kperf", kVersion, registerDialect<kperf::KPerfDialect>},
      {"kperf_gpu", kVersion, registerDialect<kperf_gpu::KPerfGPUDialect>}};
  return {TRITON_PLUGIN_API_VERSION,
          "kperfir",
          kVersion,
          passes.data(),
          passes.size(),
          dialects,
          std::size(dialects),
          nullptr,
          0,
          TRITON_VERSION};
}

/// Triton does not load a plugin of version 0.
plugin::PluginInfo refuse(const std::string &reason) {
  static std::string text = reason;
  llvm::errs() << text << '\n';
  return {0,       "kperfir", kVersion, nullptr, 0,
          nullptr, 0,         nullptr,  0,       text.c_str()};
}

} // namespace

TRITON_PLUGIN_API plugin::PluginInfo *tritonGetPluginInfo() {
  static plugin::PluginInfo info = [] {
    std::string reason = kperfir::abi::checkHost();
    return reason.empty() ? describe() : refuse(reason);
  }();
  return &info;
}
