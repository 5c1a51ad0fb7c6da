# gRPC's libraries for clients on Windows, made by `scripts/windows-test --setup` (tests/windows/libraries.sh), which have
# no configuration for CMake. Without TLS: the daemon is on the same machine.
file(GLOB rnicd_grpc_libraries ${RNICD_WINDOWS_DIR}/libraries/grpc/lib*.a)
if(NOT rnicd_grpc_libraries)
  message(FATAL_ERROR "no libraries of gRPC for Windows in ${RNICD_WINDOWS_DIR}: run scripts/windows-test --setup")
endif()
find_package(re2 CONFIG REQUIRED)
find_package(c-ares CONFIG REQUIRED)

add_library(rnicd_grpc INTERFACE)
# They refer to each other.
target_link_libraries(rnicd_grpc INTERFACE -Wl,--start-group ${rnicd_grpc_libraries} -Wl,--end-group
    re2::re2 c-ares::cares protobuf::libprotobuf absl::base absl::bind_front absl::cord absl::core_headers
    absl::flat_hash_map absl::flat_hash_set absl::inlined_vector absl::random_random absl::status absl::statusor
    absl::str_format absl::strings absl::synchronization absl::time absl::optional absl::memory
    /usr/x86_64-w64-mingw32/lib/libz.a ws2_32 crypt32 iphlpapi dbghelp bcrypt)
target_compile_definitions(rnicd_grpc INTERFACE CARES_STATICLIB)
add_library(gRPC::grpc++ ALIAS rnicd_grpc)
