# Headers that nearly every file reads, parsed once a build instead of once a file: more than half of a file's time is
# spent in them. They are those of other projects and those that protoc generates. Our own are not among them, so that a
# change of one rebuilds its readers only. A file includes what it uses all the same; -DRNICD_PRECOMPILE=OFF builds
# without, and shows which file does not.
option(RNICD_PRECOMPILE "Parse the headers of the standard library, abseil, gRPC and googletest once" ON)

set(rnicd_plain_headers <algorithm> <array> <atomic> <chrono> <condition_variable> <deque> <fstream> <functional> <map>
    <memory> <mutex> <optional> <ostream> <random> <set> <span> <sstream> <string> <string_view> <thread> <tuple>
    <unordered_map> <utility> <variant> <vector> <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h>
    <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h>)
# What the generated code itself reads.
set(rnicd_proto_headers <algorithm> <functional> <map> <memory> <string> <utility> <vector> <google/protobuf/message.h>
    <google/protobuf/generated_message_reflection.h> <google/protobuf/generated_message_tctable_impl.h>
    <google/protobuf/wire_format.h> <google/protobuf/map.h> <grpcpp/grpcpp.h> <grpcpp/impl/service_type.h>)
set(rnicd_wire_headers ${rnicd_plain_headers} <absl/strings/str_format.h> <google/protobuf/message.h>
    <google/protobuf/repeated_field.h> <google/protobuf/map.h> <grpcpp/grpcpp.h> <grpcpp/impl/service_type.h>
    <nlohmann/json.hpp>)
set(rnicd_test_headers <gtest/gtest.h> <gmock/gmock.h>)

# rnicd_precompiled_headers(kind HEADERS header... DEPS target... [OPTIONS option...])
function(rnicd_precompiled_headers kind)
  cmake_parse_arguments(arg "" "" "DEPS;HEADERS;OPTIONS" ${ARGN})
  set(file ${PROJECT_BINARY_DIR}/precompiled/${kind}.cc)
  file(CONFIGURE OUTPUT ${file} CONTENT "// Only its precompiled headers are of use.\n")
  add_library(rnicd_precompiled_${kind} OBJECT ${file})
  target_link_libraries(rnicd_precompiled_${kind} PRIVATE ${arg_DEPS} rnicd_options)
  target_compile_options(rnicd_precompiled_${kind} PRIVATE ${arg_OPTIONS})
  target_precompile_headers(rnicd_precompiled_${kind} PRIVATE ${arg_HEADERS})
endfunction()

if(RNICD_PRECOMPILE)
  rnicd_precompiled_headers(plain HEADERS ${rnicd_plain_headers} DEPS absl::statusor absl::flat_hash_map)
  if(RNICD_TESTS)
    rnicd_precompiled_headers(plain_tests HEADERS ${rnicd_plain_headers} ${rnicd_test_headers}
                              DEPS absl::statusor absl::flat_hash_map GTest::gmock OPTIONS ${RNICD_TEST_OPTIONS})
  endif()
  if(RNICD_DAEMON)
    file(GLOB messages RELATIVE ${PROJECT_SOURCE_DIR}/proto CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/proto/rnicd/v1/*.proto)
    set(services ${messages})
    list(FILTER services INCLUDE REGEX "_service\\.proto$")
    list(TRANSFORM services REPLACE "(.+)\\.proto" "<\\1.grpc.pb.h>")
    list(TRANSFORM messages REPLACE "(.+)\\.proto" "<\\1.pb.h>")
    set(rnicd_generated_headers ${messages} ${services} <grpc/health/v1/health.grpc.pb.h>)
    rnicd_precompiled_headers(proto HEADERS ${rnicd_proto_headers} DEPS gRPC::grpc++)
    rnicd_precompiled_headers(wire HEADERS ${rnicd_wire_headers} ${rnicd_generated_headers}
                              DEPS rnicd_proto nlohmann_json::nlohmann_json)
    if(RNICD_TESTS)
      rnicd_precompiled_headers(wire_tests HEADERS ${rnicd_wire_headers} ${rnicd_generated_headers}
                                        ${rnicd_test_headers}
                                DEPS rnicd_proto nlohmann_json::nlohmann_json GTest::gmock
                                OPTIONS ${RNICD_TEST_OPTIONS})
    endif()
  endif()
endif()

# rnicd_use_precompiled(target [TESTS]): with gRPC's headers where the calling folder may know gRPC at all.
function(rnicd_use_precompiled target)
  if(NOT RNICD_PRECOMPILE)
    return()
  endif()
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  if(folder MATCHES "^(base|provider|daemon/core|daemon/health|tests/simulation|tests/provider_contract)")
    set(kind plain)
  elseif(folder STREQUAL "proto")
    set(kind proto)
  else()
    set(kind wire)
  endif()
  if("TESTS" IN_LIST ARGN)
    string(APPEND kind _tests)
  endif()
  target_precompile_headers(${target} REUSE_FROM rnicd_precompiled_${kind})
endfunction()
