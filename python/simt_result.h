//===- simt_result.h - Results of kperfir._native.simt --------------------===//

#ifndef KPERFIR_PYTHON_SIMT_RESULT_H
#define KPERFIR_PYTHON_SIMT_RESULT_H

#include "Simt/Device.h"

#include <nanobind/nanobind.h>

namespace kperfir::python {

/// What a launch did.
struct SimtResult {
  simt::LaunchResult launch;
  nanobind::object log = nanobind::none();
};

/// A NumPy array for each column.
nanobind::object eventLog(simt::EventLog &&log);
/// Defines simt.Result.
void bindSimtResult(nanobind::module_ &module);

/// The type of a property, for the stubs of the module.
inline auto getter(const char *signature) {
  return nanobind::for_getter(nanobind::sig(signature));
}

} // namespace kperfir::python

#endif // KPERFIR_PYTHON_SIMT_RESULT_H
