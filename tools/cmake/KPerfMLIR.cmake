# kperfir::mlir - headers of MLIR 23.1 and of the triton wheel, the flags that make
# objects agree with libtriton.so, and that library to link against.
# kperfir_tablegen() - run mlir-tblgen.
#
# `find_package(MLIR)` is not used: the unpacked Debian packages have no libraries,
# and the only MLIR to link against is the one inside libtriton.so.

foreach(file include/mlir/IR/Operation.h include/llvm/Config/abi-breaking.h bin/mlir-tblgen)
  if(NOT EXISTS "${KPERFIR_LLVM_DIR}/${file}")
    message(FATAL_ERROR
      "LLVM 23.1 with MLIR: ${KPERFIR_LLVM_DIR}/${file} does not exist.\n"
      "Run `make deps`, or set KPERFIR_LLVM_DIR to an installation of LLVM 23.1.")
  endif()
endforeach()

find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
if(NOT KPERFIR_TRITON_DIR)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
      "from importlib.util import find_spec as f; print(f('triton').submodule_search_locations[0])"
    OUTPUT_VARIABLE triton_found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(KPERFIR_TRITON_DIR "${triton_found}" CACHE PATH "" FORCE)
endif()
if(NOT EXISTS "${KPERFIR_TRITON_DIR}/include/triton/Version.h")
  message(FATAL_ERROR
    "triton: no triton/include/triton/Version.h for ${Python_EXECUTABLE}.\n"
    "Run `make deps`, or set KPERFIR_TRITON_DIR to an installed triton package.")
endif()

# The audited version is a fact of kperfir/compile/audited_libtriton.json; nothing else builds.
file(READ "${PROJECT_SOURCE_DIR}/kperfir/compile/audited_libtriton.json" KPERFIR_AUDITED)
string(JSON audited_version GET "${KPERFIR_AUDITED}" triton_version)
file(STRINGS "${KPERFIR_TRITON_DIR}/include/triton/Version.h" triton_version
     REGEX "define TRITON_VERSION ")
if(NOT triton_version MATCHES "\"${audited_version}\"")
  message(FATAL_ERROR
    "triton in ${KPERFIR_TRITON_DIR}: found ${triton_version}, expected ${audited_version}.\n"
    "Install triton==${audited_version}, or set KPERFIR_TRITON_DIR.")
endif()

# libtriton.so was built with assertions, which changes the layout of LLVM's classes.
file(READ "${KPERFIR_LLVM_DIR}/include/llvm/Config/abi-breaking.h" abi_breaking)
string(REGEX REPLACE "(#define LLVM_ENABLE_ABI_BREAKING_CHECKS) 0" "\\1 1"
       abi_breaking "${abi_breaking}")
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/abi/llvm/Config/abi-breaking.h"
     CONTENT "${abi_breaking}" @ONLY)

add_library(kperfir_mlir INTERFACE)
add_library(kperfir::mlir ALIAS kperfir_mlir)
target_include_directories(kperfir_mlir BEFORE INTERFACE "${PROJECT_BINARY_DIR}/abi")
target_include_directories(kperfir_mlir INTERFACE
  "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/lib"
  "${PROJECT_BINARY_DIR}" "${PROJECT_BINARY_DIR}/lib")
target_include_directories(kperfir_mlir SYSTEM INTERFACE
  "${KPERFIR_LLVM_DIR}/include" "${KPERFIR_TRITON_DIR}/include" "${KPERFIR_TRITON_DIR}")
# NDEBUG stays undefined: the audit holds for headers in their assertion-checking form.
target_compile_options(kperfir_mlir INTERFACE -fno-rtti -fno-exceptions -UNDEBUG)
target_link_options(kperfir_mlir INTERFACE -Wl,-z,defs -Wl,--as-needed)
target_link_libraries(kperfir_mlir INTERFACE "${KPERFIR_TRITON_DIR}/_C/libtriton.so")

# kperfir_tablegen(<out> <td> <generator>...): <out> becomes a build rule, relative to
# the current binary folder; list it among the sources of the target that includes it.
function(kperfir_tablegen out td)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${out}")
  set(source "${CMAKE_CURRENT_SOURCE_DIR}/${td}")
  add_custom_command(
    OUTPUT "${output}" DEPFILE "${output}.d" DEPENDS "${source}"
    COMMAND "${KPERFIR_LLVM_DIR}/bin/mlir-tblgen" ${ARGN} "${source}" -o "${output}"
            -d "${output}.d" -I "${KPERFIR_LLVM_DIR}/include" -I "${PROJECT_SOURCE_DIR}"
            -I "${PROJECT_SOURCE_DIR}/lib"
    COMMENT "mlir-tblgen ${out}" VERBATIM)
endfunction()
