# Defaults of the thread sanitizer, linked into every program: a daemon that a test starts as another user may neither
# have the tests' environment nor be able to read their files.
if(NOT RNICD_SANITIZE MATCHES "thread")
  return()
endif()

set(list ${PROJECT_SOURCE_DIR}/cmake/tsan_suppressions.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
file(READ ${list} suppressions)
set(defaults ${PROJECT_BINARY_DIR}/thread_sanitizer_defaults.cc)
file(CONFIGURE OUTPUT ${defaults} @ONLY CONTENT [[
extern "C" const char* __tsan_default_options() { return "halt_on_error=1:second_deadlock_stack=1"; }
extern "C" const char* __tsan_default_suppressions() { return R"(@suppressions@)"; }
]])
add_library(rnicd_thread_sanitizer OBJECT ${defaults})
link_libraries($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:$<TARGET_OBJECTS:rnicd_thread_sanitizer>>)
