# One target per folder. Its sources are the folder's *.cc, its tests the folder's *_test.cc: no lists kept by hand.

# Test files are compiled often and run once, so the compiler's time counts and theirs does not.
set(RNICD_TEST_OPTIONS -O0)

# rnicd_library(name DEPS target... [TEST_DEPS target...])
# The static library of the calling folder and, when the folder has *_test.cc, the test program <name>_test.
# DEPS is the include arrow: the folder may include these targets' folders and nothing else of ours.
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

# rnicd_test_library(name DEPS target...): like rnicd_library, for what only tests link. It has no tests of its own.
function(rnicd_test_library name)
  cmake_parse_arguments(arg "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc *.h)
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${arg_DEPS} GTest::gmock Threads::Threads PRIVATE rnicd_options)
  rnicd_compile_as_test(${name})
endfunction()

# rnicd_compile_as_test(target): by the options of tests.
function(rnicd_compile_as_test target)
  target_compile_options(${target} PRIVATE ${RNICD_TEST_OPTIONS})
  rnicd_use_precompiled(${target} TESTS)
endfunction()

# rnicd_test_program(name main DEPS target...): the calling folder's *.cc and helpers as one program of GoogleTest, whose
# main function is in the target `main`.
function(rnicd_test_program name main)
  cmake_parse_arguments(arg "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc *.h)
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gmock ${main} rnicd_options)
  rnicd_compile_as_test(${name})
endfunction()

# rnicd_unit_tests(name DEPS target...): the calling folder's *_test.cc as one program, each case a CTest of its own.
function(rnicd_unit_tests name)
  cmake_parse_arguments(arg "" "" "DEPS" ${ARGN})
  file(GLOB tests CONFIGURE_DEPENDS *_test.cc)
  if(RNICD_SANITIZE MATCHES "thread")
    # They replace operator new, which mold does not allow beside this sanitizer's own.
    list(FILTER tests EXCLUDE REGEX "_allocation_test\\.cc$")
  endif()
  if(RNICD_TESTS AND RNICD_UNIT_TESTS AND tests)
    add_executable(${name} ${tests})
    target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gmock GTest::gtest_main rnicd_options)
    rnicd_compile_as_test(${name})
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60)
  endif()
endfunction()

# rnicd_process_tests(name DEPS target...): the calling folder's *_test.cc and helpers as one program and one CTest;
# its cases share a running daemon, and it runs alone because it counts fds, pages and milliseconds.
# Without RNICD_CLIENTS the program is that of another build and starts this build's daemon. Its limits on time are
# relaxed, so that it does not run alone.
function(rnicd_process_tests name)
  set(filter *)
  if(RNICD_SANITIZE)
    # It measures, and a sanitizer's times say nothing.
    set(filter -*Storm.DelaysNoCallAndKeepsNobodyOut*)
  endif()
  if(RNICD_CLIENTS)
    rnicd_test_program(${name} GTest::gtest_main ${ARGN})
  endif()
  rnicd_add_process_test(${name} ${name} ${filter})
endfunction()

# rnicd_process_tests_through_rings(name filter): tests of that program once more, as one CTest, with requests and
# completions in shared memory. Not with AddressSanitizer, which has the unit tests and the fuzzer of the same memory.
function(rnicd_process_tests_through_rings name filter)
  if(NOT RNICD_SANITIZE MATCHES "address")
    rnicd_add_process_test(${name}_rings ${name} ${filter} RNICD_TEST_DATA_PATH=rings)
  endif()
endfunction()

# rnicd_add_process_test(case name filter variable...): a CTest of this program, with these variables in its
# environment.
function(rnicd_add_process_test case name filter)
  set(arguments --gtest_output=json:${CMAKE_BINARY_DIR}/results/${case}.json --gtest_filter=${filter})
  if(RNICD_CLIENTS)
    add_test(NAME ${case} COMMAND ${name} ${arguments})
    set_tests_properties(${case} PROPERTIES TIMEOUT 600 RUN_SERIAL ON ENVIRONMENT "${ARGN}")
  else()
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    add_test(NAME ${case} COMMAND ${RNICD_CLIENTS_BUILD}/${folder}/${name} ${arguments})
    # The cost is an estimate in seconds; CTest starts the longest tests first.
    set_tests_properties(${case} PROPERTIES TIMEOUT 900 COST 100
        ENVIRONMENT "RNICD_TEST_DAEMON=$<TARGET_FILE:rnicd>;RNICD_TEST_SLOWNESS=5;${ARGN}")
  endif()
endfunction()
