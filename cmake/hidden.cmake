# What librnicd.so has inside: folders of the project once more, protobuf's lite runtime and abseil,
# position-independent and with every name hidden. Debian's archives of the two cannot be linked into a shared object;
# scripts/setup unpacks the sources that they are built from (docs/adr/0046).
set(rnicd_sources ${PROJECT_SOURCE_DIR}/.cache/tools/usr/src)
foreach(source protobuf abseil)
  if(NOT EXISTS ${rnicd_sources}/${source})
    message(FATAL_ERROR "librnicd.so needs the sources of ${source}: scripts/setup --build unpacks them")
  endif()
endforeach()

# rnicd_hide(target): its objects can become part of librnicd.so, and the linker leaves out functions that are not used.
function(rnicd_hide target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
      VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
  # No sampling of strings for abseil's profiler, the one thing that needs libm.
  target_compile_definitions(${target} PRIVATE ABSL_CONSUME_DLL)
  target_include_directories(${target} SYSTEM PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/inside ${rnicd_sources}/protobuf/src
      ${rnicd_sources}/abseil)
endfunction()

# rnicd_hidden_libraries(target): an archive of that name with abseil, protobuf's lite runtime, and the code that
# protoc generates for it.
function(rnicd_hidden_libraries target)
  file(STRINGS ${rnicd_sources}/protobuf/cmake/libprotobuf-lite.cmake protobuf REGEX "SOURCE_DIR}/.*\\.cc$")
  list(TRANSFORM protobuf REPLACE "^.*SOURCE_DIR}" "${rnicd_sources}/protobuf")
  file(GLOB_RECURSE abseil ${rnicd_sources}/abseil/absl/*.cc)
  set(rooms base|crc|debugging|numeric|status|strings|synchronization|time)
  list(FILTER abseil INCLUDE REGEX "/absl/(${rooms})/")
  list(FILTER abseil EXCLUDE REGEX "_test|/test_|benchmark|_testing|_mock|_matchers|/str_format/|failure_signal|periodic_sampler")
  file(GLOB protos CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/proto/rnicd/v1/*.proto)
  list(FILTER protos EXCLUDE REGEX "/(admin_service|handover|policy|pipe_channel)\\.proto$")
  set(inside ${CMAKE_CURRENT_BINARY_DIR}/inside)
  set(names google/protobuf/any.proto)
  foreach(proto IN LISTS protos)
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/proto ${proto})
    list(APPEND names ${name})
  endforeach()
  list(TRANSFORM names REPLACE "(.*)\\.proto$" "${inside}/\\1.pb.cc" OUTPUT_VARIABLE generated)
  list(TRANSFORM names REPLACE "(.*)\\.proto$" "${inside}/\\1.pb.h" OUTPUT_VARIABLE headers)
  # Otherwise each file that includes it has a global constructor that makes the standard streams, with their locale.
  file(WRITE ${inside}/iostream "#include <istream>\n#include <ostream>\n")
  add_custom_command(OUTPUT ${generated} ${headers}
      COMMAND protobuf::protoc --cpp_out=lite:${inside} -I ${PROJECT_SOURCE_DIR}/proto
              -I ${rnicd_sources}/protobuf/src ${names}
      DEPENDS ${protos} VERBATIM)
  add_library(${target} STATIC ${protobuf} ${abseil} ${generated})
  # Small rather than fast: most of a call's time is the kernel's, and all of this is resident in the program.
  target_compile_options(${target} PRIVATE -w -Os)
  rnicd_hide(${target})
endfunction()

# rnicd_hidden_twin(target [WITHOUT pattern]): the sources of a library of the project as an archive ${target}_hidden,
# without those that librnicd does not use.
function(rnicd_hidden_twin target)
  cmake_parse_arguments(arg "" "WITHOUT" "" ${ARGN})
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "/together/|\\.h$")
  if(arg_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "${arg_WITHOUT}")
  endif()
  add_library(${target}_hidden STATIC ${sources})
  target_link_libraries(${target}_hidden PRIVATE rnicd_options)
  target_include_directories(${target}_hidden PRIVATE ${PROJECT_SOURCE_DIR})
  get_target_property(definitions ${target} COMPILE_DEFINITIONS)
  if(definitions)
    target_compile_definitions(${target}_hidden PRIVATE ${definitions})
  endif()
  rnicd_hide(${target}_hidden)
  rnicd_compile_together(${target}_hidden)
endfunction()
