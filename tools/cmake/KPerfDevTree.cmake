# kperfir_place_in_package() - where a native library of the package goes: beside the
# Python modules in the wheel, and outside of a wheel build into <build>/site/kperfir,
# which links to the sources, so that PYTHONPATH=<build>/site imports what was just built.
if(NOT SKBUILD)
  set(dev_tree "${PROJECT_BINARY_DIR}/site")
  add_custom_target(kperfir_dev_tree ALL
    COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${PROJECT_SOURCE_DIR}/kperfir"
            "-DTREE=${dev_tree}/kperfir" -P "${CMAKE_CURRENT_LIST_DIR}/LinkTree.cmake"
    COMMENT "Linking the Python sources into ${dev_tree}" VERBATIM)
endif()

function(kperfir_place_in_package target)
  if(NOT SKBUILD)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${dev_tree}/kperfir")
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION kperfir COMPONENT kperfir)
endfunction()
