# Installs only the debug symbols of ${program}, below lib/debug.
find_program(OBJCOPY objcopy REQUIRED)
find_program(READELF readelf REQUIRED)
execute_process(COMMAND ${READELF} --notes ${program} OUTPUT_VARIABLE notes COMMAND_ERROR_IS_FATAL ANY)
if(NOT notes MATCHES "Build ID: ([0-9a-f][0-9a-f])([0-9a-f]+)")
  message(FATAL_ERROR "${program} has no build id")
endif()
set(folder "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/debug/.build-id/${CMAKE_MATCH_1}")
set(symbols "${folder}/${CMAKE_MATCH_2}.debug")
file(MAKE_DIRECTORY "${folder}")
execute_process(COMMAND ${OBJCOPY} --only-keep-debug --compress-debug-sections ${program} ${symbols}
    COMMAND_ERROR_IS_FATAL ANY)
file(CHMOD "${symbols}" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
message(STATUS "Installing: ${symbols}")
