# Makes TREE a folder of links to everything in SOURCE; see KPerfDevTree.cmake.
file(MAKE_DIRECTORY "${TREE}")
file(GLOB entries RELATIVE "${SOURCE}" "${SOURCE}/*")
foreach(entry IN LISTS entries)
  file(CREATE_LINK "${SOURCE}/${entry}" "${TREE}/${entry}" SYMBOLIC)
endforeach()
