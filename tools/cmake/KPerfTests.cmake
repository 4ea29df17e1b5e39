# kperfir_add_test() - a GoogleTest executable whose cases ctest knows one by one.
if(NOT EXISTS "${KPERFIR_GOOGLETEST_DIR}/CMakeLists.txt")
  message(FATAL_ERROR
    "GoogleTest: ${KPERFIR_GOOGLETEST_DIR}/CMakeLists.txt does not exist.\n"
    "Run `make deps-test`, or set KPERFIR_GOOGLETEST_DIR to its sources.")
endif()
set(INSTALL_GTEST OFF)
add_subdirectory("${KPERFIR_GOOGLETEST_DIR}" googletest EXCLUDE_FROM_ALL SYSTEM)
include(GoogleTest)

# kperfir_add_test(<name> SOURCES <file>... LIBRARIES <target>...)
function(kperfir_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} kperfir::warnings GTest::gmock_main)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST)
endfunction()
