# One target per folder. Its sources are the folder's *.cc, its tests the folder's *_test.cc: no lists kept by hand.

# Test files are compiled often and run once, so the compiler's time counts and theirs does not.
set(RNICD_TEST_OPTIONS -O0)

# An emulator runs the tests of a build for another architecture, but for those that it cannot run.
set(RNICD_DISCOVERY DISCOVERY_TIMEOUT 60)
if(CMAKE_CROSSCOMPILING AND NOT WIN32)
  set(list_of_tests ${PROJECT_SOURCE_DIR}/tests/arm64/not_on_qemu.txt)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list_of_tests})
  file(STRINGS ${list_of_tests} names REGEX "^[^#]")
  list(TRANSFORM names REPLACE " \\| .*" "")
  list(JOIN names ":" names)
  list(APPEND RNICD_DISCOVERY TEST_FILTER -${names})
endif()

# rnicd_keep_this_system(variable): of this list of files, drops *_linux.cc and *_linux_test.cc where the build is for
# Windows, and the other way round.
function(rnicd_keep_this_system variable)
  set(others linux windows)
  string(TOLOWER "${CMAKE_SYSTEM_NAME}" this)
  list(REMOVE_ITEM others "${this}")
  list(JOIN others "|" others)
  list(FILTER ${variable} EXCLUDE REGEX "_(${others})(_test)?\\.(cc|h)$")
  set(${variable} "${${variable}}" PARENT_SCOPE)
endfunction()

# rnicd_library(name DEPS target... [TEST_DEPS target...] [NOT_ON_WINDOWS test...])
# The static library of the calling folder and, when the folder has *_test.cc, the test program <name>_test.
# DEPS is the include arrow: the folder may include these targets' folders and nothing else of ours.
# NOT_ON_WINDOWS has the *_test.cc that a build for Windows leaves out, each with its reason in a comment.
function(rnicd_library name)
  cmake_parse_arguments(arg "" "" "DEPS;TEST_DEPS;NOT_ON_WINDOWS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc *.h)
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.(cc|h)$")
  rnicd_keep_this_system(sources)
  if(sources MATCHES "\\.cc(;|$)")
    add_library(${name} STATIC ${sources})
    set(visibility PUBLIC)
    target_link_libraries(${name} PRIVATE rnicd_options)
    rnicd_compile_quickly(${name})
  else()
    add_library(${name} INTERFACE)
    set(visibility INTERFACE)
  endif()
  target_include_directories(${name} ${visibility} ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} ${visibility} ${arg_DEPS} Threads::Threads)
  rnicd_unit_tests(${name}_test DEPS ${name} ${arg_TEST_DEPS} NOT_ON_WINDOWS ${arg_NOT_ON_WINDOWS})
endfunction()

# rnicd_test_library(name DEPS target... [NOT_ON_WINDOWS file...]): like rnicd_library, for what only tests link. It has no
# tests of its own.
function(rnicd_test_library name)
  cmake_parse_arguments(arg "" "" "DEPS;NOT_ON_WINDOWS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc *.h)
  rnicd_keep_this_system(sources)
  if(WIN32)
    list(TRANSFORM arg_NOT_ON_WINDOWS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    list(REMOVE_ITEM sources ${arg_NOT_ON_WINDOWS})
  endif()
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${arg_DEPS} GTest::gmock Threads::Threads PRIVATE rnicd_options)
  rnicd_compile_as_test(${name})
endfunction()

# rnicd_compile_quickly(target [TESTS] [KIND kind]): with precompiled headers, and several files as one. After all sources
# have been added.
function(rnicd_compile_quickly target)
  rnicd_use_precompiled(${target} ${ARGN})
  rnicd_compile_together(${target})
endfunction()

# rnicd_compile_as_test(target): by the options of tests.
function(rnicd_compile_as_test target)
  target_compile_options(${target} PRIVATE ${RNICD_TEST_OPTIONS})
  rnicd_compile_quickly(${target} TESTS)
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

# rnicd_unit_tests(name DEPS target... [NOT_ON_WINDOWS test...]): the calling folder's *_test.cc as one program. With a
# sanitizer it is one CTest, because three thousand starts of such programs take longer than their cases; otherwise each
# case is a CTest of its own.
function(rnicd_unit_tests name)
  cmake_parse_arguments(arg "" "" "DEPS;NOT_ON_WINDOWS" ${ARGN})
  if(NOT (RNICD_TESTS AND RNICD_UNIT_TESTS))
    return()
  endif()
  file(GLOB tests CONFIGURE_DEPENDS *_test.cc)
  rnicd_keep_this_system(tests)
  foreach(test IN LISTS arg_NOT_ON_WINDOWS)
    if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${test})
      message(FATAL_ERROR "NOT_ON_WINDOWS names ${test}, which does not exist")
    elseif(WIN32)
      list(REMOVE_ITEM tests ${CMAKE_CURRENT_SOURCE_DIR}/${test})
    endif()
  endforeach()
  if(RNICD_SANITIZE MATCHES "thread")
    # They replace operator new, which mold does not allow beside this sanitizer's own.
    list(FILTER tests EXCLUDE REGEX "_allocation_test\\.cc$")
  endif()
  if(tests)
    add_executable(${name} ${tests})
    target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gmock GTest::gtest_main rnicd_options)
    rnicd_compile_as_test(${name})
    if(RNICD_SANITIZE)
      add_test(NAME ${name} COMMAND ${name} --gtest_output=json:${CMAKE_BINARY_DIR}/results/${name}.json)
      set_tests_properties(${name} PROPERTIES TIMEOUT 600)
    else()
      gtest_discover_tests(${name} ${RNICD_DISCOVERY})
    endif()
  endif()
endfunction()

# rnicd_slow_tests(name...): `scripts/test --fast` leaves these out.
function(rnicd_slow_tests)
  set_tests_properties(${ARGN} PROPERTIES LABELS slow)
endfunction()

# rnicd_process_tests(name [SLOW pattern...] DEPS target...): the calling folder's *_test.cc and helpers as one program
# and one CTest; its cases share a running daemon, and it runs alone because it counts fds, pages and milliseconds; with a
# sanitizer, where limits on time are relaxed, beside tests without a daemon. Those of SLOW are a CTest of their own,
# <name>_slow.
# Without RNICD_CLIENTS the program is that of another build and starts this build's daemon. Its limits on time are
# relaxed, so that it does not run alone.
function(rnicd_process_tests name)
  cmake_parse_arguments(arg "" "" "SLOW;DEPS" ${ARGN})
  if(RNICD_CLIENTS)
    rnicd_test_program(${name} GTest::gtest_main DEPS ${arg_DEPS})
  endif()
  set(never "")
  if(RNICD_SANITIZE)
    # The first measures, and a sanitizer's times say nothing. For the others a sanitizer takes descriptors and threads
    # of its own.
    set(never *Storm.DelaysNoCallAndKeepsNobodyOut*:HostileStart.WithTooFew*)
  endif()
  list(JOIN arg_SLOW : slow)
  rnicd_add_process_test(${name} ${name} *-${slow}:${never})
  if(slow AND NOT CMAKE_CROSSCOMPILING)
    rnicd_add_process_test(${name}_slow ${name} ${slow}-${never})
    rnicd_slow_tests(${name}_slow)
  endif()
endfunction()

# rnicd_process_tests_through_rings(name filter): tests of that program once more, as one CTest, with requests and
# completions in shared memory. Not with AddressSanitizer, which has the unit tests and the fuzzer of the same memory.
function(rnicd_process_tests_through_rings name filter)
  if(NOT RNICD_SANITIZE MATCHES "address")
    rnicd_add_process_test(${name}_rings ${name} ${filter} RNICD_TEST_DATA_PATH=rings)
  endif()
endfunction()

# rnicd_add_process_test(case name filter variable...): a CTest of this program, with these variables in its
# environment. Not in a build for another architecture: scripts/arm64-test runs them there, with all that an emulated
# daemon needs.
function(rnicd_add_process_test case name filter)
  if(CMAKE_CROSSCOMPILING)
    return()
  endif()
  set(arguments --gtest_output=json:${CMAKE_BINARY_DIR}/results/${case}.json --gtest_filter=${filter})
  if(RNICD_CLIENTS)
    add_test(NAME ${case} COMMAND ${name} ${arguments})
    set_tests_properties(${case} PROPERTIES TIMEOUT 900 ENVIRONMENT "${ARGN}")
    if(RNICD_SANITIZE)
      # Its times say nothing, so it runs beside tests that have no daemon; and first, because it is the longest.
      set_tests_properties(${case} PROPERTIES RESOURCE_LOCK clients COST 1000)
    else()
      set_tests_properties(${case} PROPERTIES RUN_SERIAL ON)
    endif()
  else()
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    add_test(NAME ${case} COMMAND ${RNICD_CLIENTS_BUILD}/${folder}/${name} ${arguments})
    # The cost is an estimate in seconds; CTest starts the longest tests first.
    set_tests_properties(${case} PROPERTIES TIMEOUT 900 COST 100
        ENVIRONMENT "RNICD_TEST_DAEMON=$<TARGET_FILE:rnicd>;RNICD_TEST_SLOWNESS=5;${ARGN}")
  endif()
endfunction()
