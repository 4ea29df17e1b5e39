# kperfir::warnings - the warnings that every target of this project compiles with.
add_library(kperfir_warnings INTERFACE)
add_library(kperfir::warnings ALIAS kperfir_warnings)
target_compile_options(kperfir_warnings INTERFACE
  -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers
  $<$<BOOL:${KPERFIR_WERROR}>:-Werror>)
