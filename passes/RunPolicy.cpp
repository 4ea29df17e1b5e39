//===- RunPolicy.cpp - Policies of other libraries ------------------------===//
//
// Owns how a library is loaded and what is refused. What a policy may do is in
// kperfir/include/kperfir/Policy.h. A library stays loaded: kernels go on being
// compiled, and unloading code that may have left pointers behind is not safe.
//
//===----------------------------------------------------------------------===//

#include "kperfir/include/kperfir/Policy.h"

#include "Dialect/KPerf/KPerf.h"
#include "passes/Options.h"
#include "passes/ScopeTags.h"

#include <dlfcn.h>

namespace mlir::kperf {
#define GEN_PASS_DEF_RUNPOLICY
#include "Passes.h.inc"

namespace {

struct RunPolicy : impl::RunPolicyBase<RunPolicy> {
  RunPolicy(std::string library, std::string policy)
      : library(std::move(library)), policy(std::move(policy)) {}

  void runOnOperation() override {
    const kperfir::Policy *found = load();
    if (!found)
      return signalPassFailure(); // load has emitted the diagnostic.
    if (!found->run(getOperation())) {
      getOperation().emitError()
          << "policy " << policy << " of " << library << " failed";
      signalPassFailure();
    }
  }

  const kperfir::Policy *load() {
    ModuleOp module = getOperation();
    void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      module.emitError() << "the library of policy " << policy
                         << " cannot be loaded: " << dlerror();
      return nullptr;
    }
    auto *found = static_cast<const kperfir::Policy *>(
        dlsym(handle, ("kperfirPolicy_" + policy).c_str()));
    if (!found) {
      module.emitError() << library << " has no policy " << policy
                         << " (KPERFIR_POLICY makes one)";
      return nullptr;
    }
    if (found->version != kperfir::kPolicyVersion ||
        found->llvmMajor != LLVM_VERSION_MAJOR ||
        found->llvmMinor != LLVM_VERSION_MINOR) {
      module.emitError() << "policy " << policy << " of " << library
                         << " was built with version " << found->version
                         << " of kperfir/Policy.h and LLVM " << found->llvmMajor
                         << '.' << found->llvmMinor << ", expected "
                         << kperfir::kPolicyVersion << " and LLVM "
                         << LLVM_VERSION_MAJOR << '.' << LLVM_VERSION_MINOR;
      return nullptr;
    }
    return found;
  }

  std::string library;
  std::string policy;
};

} // namespace

std::unique_ptr<Pass> createRunPolicy(OptionTexts texts) {
  OptionReader reader("kperf-run-policy", texts);
  std::string library, policy;
  reader.readText("library", library);
  reader.readText("policy", policy);
  if (std::unique_ptr<Pass> rejected = reader.reject())
    return rejected;
  return std::make_unique<RunPolicy>(unescape(library), std::move(policy));
}

} // namespace mlir::kperf
