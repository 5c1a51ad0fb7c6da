# One target per folder. Its sources are the folder's *.cc, its tests the folder's *_test.cc; no list is maintained by
# hand.

# rnicd_library(name DEPS target... [TEST_DEPS target...])
# The static library of the calling folder and, when the folder has *_test.cc, the test program <name>_test.
# DEPS defines the allowed includes: the folder may include these targets' folders and no others of the project.
function(rnicd_library name)
  cmake_parse_arguments(arg "" "" "DEPS;TEST_DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc *.h)
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.(cc|h)$")
  if(sources MATCHES "\\.cc(;|$)")
    add_library(${name} STATIC ${sources})
    set(visibility PUBLIC)
    target_link_libraries(${name} PRIVATE rnicd_options)
    rnicd_use_precompiled(${name})
  else()
    add_library(${name} INTERFACE)
    set(visibility INTERFACE)
  endif()
  target_include_directories(${name} ${visibility} ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} ${visibility} ${arg_DEPS} Threads::Threads)
  rnicd_unit_tests(${name}_test DEPS ${name} ${arg_TEST_DEPS})
endfunction()

# rnicd_unit_tests(name DEPS target...): the calling folder's *_test.cc as one program, each case as a separate CTest.
function(rnicd_unit_tests name)
  cmake_parse_arguments(arg "" "" "DEPS" ${ARGN})
  file(GLOB tests CONFIGURE_DEPENDS *_test.cc)
  if(RNICD_TESTS AND tests)
    add_executable(${name} ${tests})
    target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gmock GTest::gtest_main rnicd_options)
    rnicd_use_precompiled(${name} TESTS)
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60)
  endif()
endfunction()

# rnicd_process_tests(name DEPS target...): the calling folder's *_test.cc and helpers as one program and one CTest;
# its cases share a running daemon, and it runs alone because it counts fds, pages and milliseconds.
function(rnicd_process_tests name)
  cmake_parse_arguments(arg "" "" "DEPS" ${ARGN})
  file(GLOB tests CONFIGURE_DEPENDS *.cc *.h)
  add_executable(${name} ${tests})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gmock GTest::gtest_main rnicd_options)
  rnicd_use_precompiled(${name} TESTS)
  add_test(NAME ${name} COMMAND ${name} --gtest_output=json:${CMAKE_BINARY_DIR}/results/${name}.json)
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 RUN_SERIAL ON)
endfunction()
