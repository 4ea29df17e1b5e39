//===- Unverified.h - Passes whose result is verified later ---------------===//

#ifndef KPERFIR_PASSES_UNVERIFIED_H
#define KPERFIR_PASSES_UNVERIFIED_H

#include "mlir/Pass/AnalysisManager.h"

namespace mlir::kperf {

/// Base of the passes that every kernel goes through. Behind a pass that does
/// not preserve all analyses MLIR verifies the module, which takes several
/// times as long as such a pass; Triton's next pass, at the latest, is followed
/// by the verifier, too. `kperfir opt` verifies behind each pass itself.
template <typename Base> class Unverified : public Base {
protected:
  using Base::Base;

  /// Ends a pass that changed the module: drops what is known about it.
  void leaveToNextVerifier() {
    this->getAnalysisManager().clear();
    this->markAllAnalysesPreserved();
  }
};

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_UNVERIFIED_H
