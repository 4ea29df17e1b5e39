//===- simt.cpp - kperfir._native.simt ------------------------------------===//
//
// The seam between Python and lib/Simt: converts arguments, turns simt::Error
// into the Python exception. Results: simt_result.cpp. docs/contracts.md,
// section 6.
//
//===----------------------------------------------------------------------===//

#include "simt_result.h"

#include "Simt/Exec/Forms.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

namespace nb = nanobind;
using namespace nb::literals;

namespace kperfir::python {

namespace {
using simt::Device;
using simt::Program;

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

PyObject *errorType = nullptr;

/// Raises kperfir._native.simt.Error with the attributes of the contract.
void raiseError(const simt::Error &error) {
  nb::object instance = nb::borrow(errorType)(nb::str(error.what()));
  const simt::ErrorSite &site = error.site;
  auto known = [](int64_t value) {
    return value < 0 ? nb::none() : nb::object(nb::int_(value));
  };
  instance.attr("kind") = simt::errorKindName(error.kind);
  instance.attr("message") = error.message;
  instance.attr("kernel") = site.kernel;
  instance.attr("opcode") = site.opcode;
  instance.attr("ptx_line") = site.ptxLine;
  instance.attr("file") = site.file;
  instance.attr("line") = site.line;
  instance.attr("cta") = known(site.cta);
  instance.attr("warp") = known(site.warp);
  instance.attr("lane") = known(site.lane);
  instance.attr("address") =
      site.hasAddress ? nb::object(nb::int_(site.address)) : nb::none();
  instance.attr("is_global") = site.isGlobal;
  PyErr_SetObject(errorType, instance.ptr());
}

//===----------------------------------------------------------------------===//
// Module
//===----------------------------------------------------------------------===//

struct Module {
  std::shared_ptr<const Program> program;
  std::string source;

  Module(const std::string &ptx, std::string source, const std::string &isa)
      : source(std::move(source)) {
    simt::HostIsa chosen = hostIsa(isa);
    nb::gil_scoped_release release;
    program = simt::loadProgram(ptx, {}, chosen);
  }

  /// Empty: the best one.
  static simt::HostIsa hostIsa(const std::string &name) {
    simt::HostIsa best = simt::detectHostIsa();
    if (name.empty())
      return best;
    std::optional<simt::HostIsa> isa = simt::hostIsaFromName(name);
    if (!isa || *isa > best)
      throw std::invalid_argument(
          "isa: found `" + name +
          "`, expected baseline, avx2 or avx512, as far as this CPU has it "
          "(its best is " +
          simt::hostIsaName(best) + ")");
    return *isa;
  }

  nb::list params() const {
    nb::list list;
    for (const simt::Parameter &param : program->params)
      list.append(nb::make_tuple(param.type, param.bytes, param.align));
    return list;
  }

  nb::object reqntid() const {
    const auto &threads = program->reqntid;
    if (threads[0] == 0)
      return nb::none();
    return nb::make_tuple(threads[0], threads[1] ? threads[1] : 1,
                          threads[2] ? threads[2] : 1);
  }

  nb::list instructions() const {
    nb::list list;
    for (const simt::Instruction &instruction : program->instructions)
      list.append(nb::make_tuple(instruction.text,
                                 program->files[instruction.file],
                                 instruction.line));
    return list;
  }
};

//===----------------------------------------------------------------------===//
// Device
//===----------------------------------------------------------------------===//

void setResolver(Device &device, nb::object resolver) {
  if (resolver.is_none()) {
    device.memory().setResolver(nullptr);
    return;
  }
  // Shared, so that copies of the function need no GIL.
  auto callable = std::shared_ptr<nb::object>(
      new nb::object(std::move(resolver)), [](nb::object *object) {
        nb::gil_scoped_acquire acquire;
        delete object;
      });
  device.memory().setResolver(
      [callable](uint64_t address) -> std::optional<simt::GlobalRange> {
        nb::gil_scoped_acquire acquire;
        nb::object answer = (*callable)(address);
        if (answer.is_none())
          return std::nullopt;
        simt::GlobalRange range;
        range.begin = nb::cast<uint64_t>(answer[0]);
        range.end = range.begin + nb::cast<uint64_t>(answer[1]);
        range.name = nb::cast<std::string>(answer[2]);
        return range;
      });
}

SimtResult launch(Device &device, const Module &module,
                  std::array<uint32_t, 3> grid, nb::object blockThreads,
                  uint32_t sharedBytes, const std::vector<nb::bytes> &params,
                  uint32_t registers, std::array<uint32_t, 3> cluster, bool log,
                  std::optional<nb::bytes> free,
                  std::optional<uint32_t> residentRegisters,
                  std::optional<uint32_t> residentSharedBytes,
                  const nb::object &service, uint64_t serviceCycles) {
  simt::LaunchRequest request;
  request.grid = grid;
  if (nb::isinstance<nb::int_>(blockThreads))
    request.block = {nb::cast<uint32_t>(blockThreads), 1, 1};
  else
    request.block = nb::cast<std::array<uint32_t, 3>>(blockThreads);
  request.cluster = cluster;
  request.dynamicSharedBytes = sharedBytes;
  for (const nb::bytes &param : params)
    request.params.emplace_back(param.c_str(), param.size());
  request.registers = registers;
  request.log = log;
  if (free)
    request.freeInstructions.assign(free->c_str(),
                                    free->c_str() + free->size());
  request.residentRegisters = residentRegisters;
  request.residentSharedBytes = residentSharedBytes;
  request.interrupt = [] {
    nb::gil_scoped_acquire acquire;
    return PyErr_CheckSignals() != 0;
  };
  if (!service.is_none())
    request.service = {[&service] {
                         nb::gil_scoped_acquire acquire;
                         service();
                       },
                       serviceCycles};
  SimtResult result;
  try {
    nb::gil_scoped_release release;
    result.launch = device.launch(module.program, request);
  } catch (const simt::Interrupted &) {
    throw nb::python_error(); // The signal handler has set it.
  }
  if (log)
    result.log = eventLog(std::move(result.launch.log));
  return result;
}

/// Those that this CPU has, each a superset of the one before.
std::vector<std::string_view> hostInstructionSets() {
  std::vector<std::string_view> names;
  for (simt::HostIsa isa :
       {simt::HostIsa::Baseline, simt::HostIsa::Avx2, simt::HostIsa::Avx512})
    if (isa <= simt::detectHostIsa())
      names.emplace_back(simt::hostIsaName(isa));
  return names;
}

std::pair<std::vector<std::string_view>, std::vector<std::string_view>>
instructionForms() {
  return {simt::tableMnemonics(), simt::loweredPrefixes()};
}
} // namespace

void bindSimt(nb::module_ &module) {
  // Triton keeps kernels, and with them a Module, until the process ends.
  nb::set_leak_warnings(false);
  errorType = PyErr_NewExceptionWithDoc(
      "kperfir._native.simt.Error",
      "What a program did wrong on the SIMT device.\n\n"
      "Attributes: kind, message, kernel, opcode, ptx_line, file, line, cta, "
      "warp, lane, address, is_global.",
      PyExc_RuntimeError, nullptr);
  module.attr("Error") = nb::borrow(errorType);
  nb::register_exception_translator(
      [](const std::exception_ptr &pointer, void *) {
        try {
          std::rethrow_exception(pointer);
        } catch (const simt::Error &error) {
          raiseError(error);
        }
      });

  module.def("host_instruction_sets", &hostInstructionSets,
             "Names of the instruction sets of this CPU that kernels can be "
             "bound to, the best one last");
  module.def("instruction_forms", &instructionForms,
             "(mnemonics of the instruction table, leading words of all other "
             "instructions)");

  nb::class_<Module>(module, "Module", "A kernel, parsed and lowered from PTX.")
      .def(nb::init<const std::string &, std::string, const std::string &>(),
           "ptx"_a, "source"_a = "", "isa"_a = "")
      .def_prop_ro("isa",
                   [](const Module &self) {
                     return simt::hostIsaName(self.program->isa);
                   })
      .def_prop_ro("entry",
                   [](const Module &self) { return self.program->kernel; })
      .def_prop_ro("target",
                   [](const Module &self) { return self.program->target; })
      .def_prop_ro("source", [](const Module &self) { return self.source; })
      .def_prop_ro("params", &Module::params,
                   getter("def params(self, /) -> list[tuple[str, int, int]]"),
                   "(type, bytes, alignment) of each parameter")
      .def_prop_ro(
          "reqntid", &Module::reqntid,
          getter("def reqntid(self, /) -> tuple[int, int, int] | None"))
      .def_prop_ro("registers",
                   [](const Module &self) { return self.program->registers; })
      .def_prop_ro("shared_static",
                   [](const Module &self) { return self.program->sharedBytes; })
      .def_prop_ro("local_bytes",
                   [](const Module &self) { return self.program->localBytes; })
      .def_prop_ro(
          "instructions", &Module::instructions,
          getter("def instructions(self, /) -> list[tuple[str, str, int]]"),
          "(PTX text, file, line) of each")
      .def_prop_ro(
          "ptx_lines",
          [](const Module &self) {
            std::vector<uint32_t> lines;
            for (const simt::Instruction &one : self.program->instructions)
              lines.push_back(one.ptxLine);
            return lines;
          },
          "Line in the PTX text of each instruction, from 1");

  bindSimtResult(module);
  nb::class_<Device>(module, "Device", "A simulated GPU; one launch at a time.")
      .def(
          "__init__",
          [](Device *self, const std::string &chip, unsigned threads,
             uint64_t seed, bool timing, unsigned waves,
             uint64_t instructionLimit) {
            new (self) Device(simt::DeviceOptions{chip, threads, seed, timing,
                                                  waves, instructionLimit});
          },
          "chip"_a, "threads"_a = 1, "seed"_a = 0, "timing"_a = true,
          "waves"_a = 0,
          "instruction_limit"_a = simt::DeviceOptions().instructionLimit)
      .def(
          "map",
          [](Device &self, uint64_t address, uint64_t bytes, std::string name,
             bool writable) {
            self.memory().map(address, bytes, std::move(name), writable);
          },
          "addr"_a, "bytes"_a, "name"_a, "writable"_a = true)
      .def(
          "unmap",
          [](Device &self, uint64_t address) { self.memory().unmap(address); },
          "addr"_a)
      .def("set_resolver", &setResolver, "resolver"_a.none())
      .def("launch", &launch, "module"_a, "grid"_a, "block_threads"_a,
           "shared_bytes"_a, "params"_a, "registers"_a = 0,
           "cluster"_a = std::array<uint32_t, 3>{1, 1, 1}, "log"_a = false,
           "free"_a = nb::none(), "resident_registers"_a = nb::none(),
           "resident_shared_bytes"_a = nb::none(), "service"_a = nb::none(),
           "service_cycles"_a = 0)
      .def_prop_ro("cycle", [](const Device &self) { return self.cycle(); })
      .def_prop_ro("chip_name",
                   [](const Device &self) { return self.chip().name; })
      .def_prop_rw(
          "seed", [](Device &self) { return self.options().seed; },
          [](Device &self, uint64_t seed) { self.options().seed = seed; })
      .def_prop_rw(
          "instruction_limit",
          [](Device &self) { return self.options().instructionLimit; },
          [](Device &self, uint64_t limit) {
            self.options().instructionLimit = limit;
          });
}

} // namespace kperfir::python
