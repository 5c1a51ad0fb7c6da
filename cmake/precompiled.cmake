# Headers that nearly every file includes, parsed once per build instead of once per file: they take more than half of a
# file's compile time. They are third-party headers and protoc's messages. The project's own headers are not among them,
# so that changing one rebuilds only the files that include it; nor are headers that few files include, because each
# costs every file: half a second with g++ for nlohmann/json.hpp, and as much for the generated stubs. Every file still
# includes what it uses; a build with -DRNICD_PRECOMPILE=OFF finds missing includes.
option(RNICD_PRECOMPILE "Parse the headers of the standard library, abseil, gRPC and googletest once" ON)

set(rnicd_plain_headers <algorithm> <array> <atomic> <chrono> <condition_variable> <deque> <fstream> <functional> <map>
    <memory> <mutex> <optional> <ostream> <random> <set> <span> <sstream> <string> <string_view> <thread> <tuple>
    <unordered_map> <utility> <variant> <vector> <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h>
    <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h>)
# Headers that the generated code includes.
set(rnicd_proto_headers <algorithm> <functional> <map> <memory> <string> <utility> <vector> <google/protobuf/message.h>
    <google/protobuf/generated_message_reflection.h> <google/protobuf/generated_message_tctable_impl.h>
    <google/protobuf/wire_format.h> <google/protobuf/map.h>)
# For the daemon, which knows messages but not gRPC, and for clients and tests, which know both.
set(rnicd_message_headers ${rnicd_plain_headers} <absl/strings/str_format.h> <google/protobuf/message.h>
    <google/protobuf/repeated_field.h> <google/protobuf/map.h>)
set(rnicd_wire_headers ${rnicd_message_headers} <grpcpp/grpcpp.h> <grpcpp/impl/service_type.h>)
set(rnicd_test_headers <gtest/gtest.h> <gmock/gmock.h>)

# rnicd_precompiled_headers(kind HEADERS header... DEPS target... [OPTIONS option...])
function(rnicd_precompiled_headers kind)
  cmake_parse_arguments(arg "" "" "DEPS;HEADERS;OPTIONS" ${ARGN})
  set(file ${PROJECT_BINARY_DIR}/precompiled/${kind}.cc)
  file(CONFIGURE OUTPUT ${file} CONTENT "// Exists only for its precompiled headers.\n")
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
  file(GLOB messages RELATIVE ${PROJECT_SOURCE_DIR}/proto CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/proto/rnicd/v1/*.proto)
  list(TRANSFORM messages REPLACE "(.+)\\.proto" "<\\1.pb.h>")
  rnicd_precompiled_headers(proto HEADERS ${rnicd_proto_headers} DEPS protobuf::libprotobuf)
  rnicd_precompiled_headers(message HEADERS ${rnicd_message_headers} ${messages} DEPS rnicd_proto)
  if(RNICD_TESTS)
    rnicd_precompiled_headers(message_tests HEADERS ${rnicd_message_headers} ${messages} ${rnicd_test_headers}
                              DEPS rnicd_proto GTest::gmock OPTIONS ${RNICD_TEST_OPTIONS})
  endif()
  if(RNICD_CLIENTS)
    rnicd_precompiled_headers(wire HEADERS ${rnicd_wire_headers} ${messages} DEPS rnicd_proto gRPC::grpc++)
    if(RNICD_TESTS)
      rnicd_precompiled_headers(wire_tests HEADERS ${rnicd_wire_headers} ${messages} ${rnicd_test_headers}
                                DEPS rnicd_proto gRPC::grpc++ GTest::gmock OPTIONS ${RNICD_TEST_OPTIONS})
    endif()
  endif()
endif()

# rnicd_use_precompiled(target [TESTS] [KIND kind]): includes the headers of messages and of gRPC only where the calling
# folder may depend on them. TESTS is for test files.
function(rnicd_use_precompiled target)
  cmake_parse_arguments(arg "TESTS" "KIND" "" ${ARGN})
  if(NOT RNICD_PRECOMPILE)
    return()
  endif()
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  if(arg_KIND)
    set(kind ${arg_KIND})
  elseif(folder MATCHES "^(base|provider|ring|wire/http2|client/(c|libfabric)$|daemon/(audit|core|door|health|metrics|rings|rpc|sandbox|status_page|transport)|tests/(simulation|provider_contract|networkdirect_model|dmabuf|jitter$|vm(/fr)?$))")
    set(kind plain)
  elseif(folder MATCHES "^(daemon|log|wire|client/(cpp|admin|ctl)|tests/windows_daemon)")
    set(kind message)
  else()
    set(kind wire)
  endif()
  if(arg_TESTS)
    string(APPEND kind _tests)
  endif()
  target_precompile_headers(${target} REUSE_FROM rnicd_precompiled_${kind})
endfunction()
