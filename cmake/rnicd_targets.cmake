# One target per folder. Its sources are the folder's *.cc, its tests the folder's *_test.cc and what only
# they use, *_fake.cc and *_fixture.cc: no lists kept by hand. A large folder has rooms, subfolders without a CMakeLists.txt
# of their own, whose files belong to its target: one library and one program of tests, however many rooms.

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
  list(FILTER ${variable} EXCLUDE REGEX "_(${others})(_test|_fake|_fixture)?\\.(cc|h)$")
  set(${variable} "${${variable}}" PARENT_SCOPE)
endfunction()

# rnicd_glob_rooms(variable ROOMS room... NAMES pattern...): the files with these names in the calling folder and its rooms.
# A room that does not exist is an error: a misspelt name would silently drop its tests.
function(rnicd_glob_rooms variable)
  cmake_parse_arguments(arg "" "" "ROOMS;NAMES" ${ARGN})
  set(patterns ${arg_NAMES})
  foreach(room IN LISTS arg_ROOMS)
    if(NOT IS_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/${room})
      message(FATAL_ERROR "ROOMS names ${room}, which is no folder of ${CMAKE_CURRENT_SOURCE_DIR}")
    endif()
    list(TRANSFORM arg_NAMES PREPEND ${room}/ OUTPUT_VARIABLE of_room)
    list(APPEND patterns ${of_room})
  endforeach()
  file(GLOB files CONFIGURE_DEPENDS ${patterns})
  set(${variable} "${files}" PARENT_SCOPE)
endfunction()

# rnicd_library(name [ROOMS subfolder...] DEPS target... [TEST_DEPS target...] [NOT_ON_WINDOWS test...]
#               [TESTS_WITH_GRPC file...])
# The static library of the calling folder and its rooms and, when they have *_test.cc, the test program <name>_test.
# DEPS is the include arrow: the folder may include these targets' folders and nothing else of ours.
# NOT_ON_WINDOWS has the files of tests that a build for Windows leaves out, each with its reason in a comment; a room's
# file is room/file_test.cc.
function(rnicd_library name)
  cmake_parse_arguments(arg "" "" "ROOMS;DEPS;TEST_DEPS;NOT_ON_WINDOWS;TESTS_WITH_GRPC" ${ARGN})
  rnicd_glob_rooms(sources ROOMS ${arg_ROOMS} NAMES *.cc *.h)
  list(FILTER sources EXCLUDE REGEX "(_test|_fake|_fixture|/main)\\.(cc|h)$")
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
  rnicd_unit_tests(${name}_test ROOMS ${arg_ROOMS} DEPS ${name} ${arg_TEST_DEPS} NOT_ON_WINDOWS ${arg_NOT_ON_WINDOWS}
                   TESTS_WITH_GRPC ${arg_TESTS_WITH_GRPC})
endfunction()

# rnicd_test_library(name [ROOMS subfolder...] DEPS target... [NOT_ON_WINDOWS file...]): like rnicd_library, for what only
# tests link. It has no tests of its own.
function(rnicd_test_library name)
  cmake_parse_arguments(arg "" "" "ROOMS;DEPS;NOT_ON_WINDOWS" ${ARGN})
  rnicd_glob_rooms(sources ROOMS ${arg_ROOMS} NAMES *.cc *.h)
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

# rnicd_test_program(name main [ROOMS subfolder...] DEPS target...): the *.cc and helpers of the calling folder and its rooms
# as one program of GoogleTest, whose main function is in the target `main`.
function(rnicd_test_program name main)
  cmake_parse_arguments(arg "" "" "ROOMS;DEPS" ${ARGN})
  rnicd_glob_rooms(sources ROOMS ${arg_ROOMS} NAMES *.cc *.h)
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gmock ${main} rnicd_options)
  rnicd_compile_as_test(${name})
endfunction()

# rnicd_test(NAME name COMMAND program argument... [NEEDS target...] [PROPERTIES property value...]
#            [ENVIRONMENT variable...])
# A CTest with the label that tests/tiers.cmake says, whose programs belong to the target of that tier. In a sanitizer build
# its name begins with that of the build, because scripts/test runs the tests of all builds together.
function(rnicd_test)
  cmake_parse_arguments(arg "" "NAME" "COMMAND;NEEDS;PROPERTIES;ENVIRONMENT" ${ARGN})
  rnicd_tier_of(${arg_NAME} tier)
  if(tier STREQUAL "-")
    return()
  endif()
  set(name ${arg_NAME})
  if(RNICD_SANITIZE)
    cmake_path(GET PROJECT_BINARY_DIR FILENAME build)
    set(name ${build}/${name})
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS ${tier} TIMEOUT 300 ENVIRONMENT "${arg_ENVIRONMENT}")
  if(arg_PROPERTIES)
    set_tests_properties(${name} PROPERTIES ${arg_PROPERTIES})
  endif()
  list(GET arg_COMMAND 0 program)
  foreach(target IN LISTS program arg_NEEDS)
    if(TARGET ${target} AND NOT target MATCHES "::")
      add_dependencies(tier_${tier} ${target})
    endif()
  endforeach()
endfunction()

# rnicd_gtest(name PROGRAM program [FILTER filter] [argument of rnicd_test...]): a program of GoogleTest, or those of its
# cases, as one CTest that leaves its results in a file.
function(rnicd_gtest name)
  cmake_parse_arguments(arg "" "PROGRAM;FILTER" "NEEDS;PROPERTIES;ENVIRONMENT" ${ARGN})
  set(filter "")
  if(arg_FILTER)
    set(filter --gtest_filter=${arg_FILTER})
  endif()
  rnicd_test(NAME ${name}
      COMMAND ${arg_PROGRAM} --gtest_output=json:${PROJECT_BINARY_DIR}/results/${name}.json ${filter}
      NEEDS ${arg_NEEDS} PROPERTIES TIMEOUT 900 ${arg_PROPERTIES} ENVIRONMENT ${arg_ENVIRONMENT})
endfunction()

# rnicd_unit_tests(name [ROOMS subfolder...] DEPS target... [NOT_ON_WINDOWS test...] [TESTS_WITH_GRPC file...]): the files
# of tests of the calling folder and its rooms as one program, and one CTest, because three thousand starts of such programs
# take longer than their cases. Those with gRPC are left out on Windows and without RNICD_CLIENTS. In a build for another machine each case is a CTest of its own: some cannot be run there.
function(rnicd_unit_tests name)
  cmake_parse_arguments(arg "" "" "ROOMS;DEPS;NOT_ON_WINDOWS;TESTS_WITH_GRPC" ${ARGN})
  if(NOT RNICD_TESTS)
    return()
  endif()
  rnicd_glob_rooms(tests ROOMS ${arg_ROOMS} NAMES *_test.cc *_fake.cc *_fixture.cc)
  rnicd_keep_this_system(tests)
  foreach(test IN LISTS arg_NOT_ON_WINDOWS)
    if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${test})
      message(FATAL_ERROR "NOT_ON_WINDOWS names ${test}, which does not exist")
    elseif(WIN32)
      list(REMOVE_ITEM tests ${CMAKE_CURRENT_SOURCE_DIR}/${test})
    endif()
  endforeach()
  if(WIN32 OR NOT RNICD_CLIENTS)
    list(TRANSFORM arg_TESTS_WITH_GRPC PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    list(REMOVE_ITEM tests ${arg_TESTS_WITH_GRPC})
  endif()
  if(RNICD_SANITIZE MATCHES "thread")
    # They replace operator new, which mold does not allow beside this sanitizer's own.
    list(FILTER tests EXCLUDE REGEX "_allocation_test\\.cc$")
  endif()
  if(tests)
    add_executable(${name} ${tests})
    target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gmock GTest::gtest_main rnicd_options)
    rnicd_compile_as_test(${name})
    if(CMAKE_CROSSCOMPILING)
      gtest_discover_tests(${name} ${RNICD_DISCOVERY})
    else()
      rnicd_gtest(${name} PROGRAM ${name})
    endif()
  endif()
endfunction()

# rnicd_process_program(name [ROOMS subfolder...] DEPS target...): the *_test.cc and helpers of the calling folder and its
# rooms as one program, whose cases share a running daemon. Without RNICD_CLIENTS the program is that of another build.
function(rnicd_process_program name)
  cmake_parse_arguments(arg "" "" "ROOMS;DEPS" ${ARGN})
  if(RNICD_CLIENTS)
    rnicd_test_program(${name} GTest::gtest_main ROOMS ${arg_ROOMS} DEPS ${arg_DEPS})
  endif()
endfunction()

# rnicd_process_tests(case PROGRAM program [FILTER filter] [NEEDS target...] [ENVIRONMENT variable...]): cases of such a
# program as one CTest, beside none of its kind: their clients are the same users, who would use up each other's limits.
# Not in a build for another architecture: scripts/arm64-test runs them there, with all that an emulated daemon needs.
function(rnicd_process_tests case)
  cmake_parse_arguments(arg "" "PROGRAM;FILTER" "NEEDS;ENVIRONMENT" ${ARGN})
  if(CMAKE_CROSSCOMPILING)
    return()
  endif()
  set(program ${arg_PROGRAM})
  set(environment ${arg_ENVIRONMENT})
  if(NOT RNICD_CLIENTS)
    # The suites of another build, with this build's daemon.
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    set(program ${RNICD_CLIENTS_BUILD}/${folder}/${arg_PROGRAM})
    list(APPEND environment RNICD_TEST_DAEMON=$<TARGET_FILE:rnicd> RNICD_TEST_SLOWNESS=5)
  endif()
  # The cost is an estimate in seconds; CTest starts the longest tests first.
  rnicd_gtest(${case} PROGRAM ${program} FILTER "${arg_FILTER}" NEEDS rnicd ${arg_NEEDS}
      PROPERTIES RESOURCE_LOCK clients COST 100 ENVIRONMENT ${environment})
endfunction()
