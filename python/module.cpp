//===- module.cpp - The Python module kperfir._native ---------------------===//
//
// Names the submodules; what is in them belongs to record.cpp, simt.cpp and
// trace.cpp.
//
//===----------------------------------------------------------------------===//

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace kperfir::python {
void bindRecord(nb::module_ &module);
void bindSimt(nb::module_ &module);
void bindTrace(nb::module_ &module);
} // namespace kperfir::python

NB_MODULE(_native, module) {
  module.doc() = "Native half of kperfir: record decoder, SIMT device, "
                 "messages of traces.";
  nb::module_ record =
      module.def_submodule("record", "Decoder of profile buffers.");
  kperfir::python::bindRecord(record);
  nb::module_ simt =
      module.def_submodule("simt", "Executor of PTX on the CPU.");
  kperfir::python::bindSimt(simt);
  nb::module_ trace =
      module.def_submodule("trace", "Protobuf messages from columns.");
  kperfir::python::bindTrace(trace);
}
