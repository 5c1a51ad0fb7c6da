# gRPC's libraries for clients on Windows, made by `scripts/windows-test --setup` (tests/windows/libraries.sh), which have
# no configuration for CMake. Without TLS: the daemon is on the same machine.
set(rnicd_grpc_folder ${RNICD_WINDOWS_DIR}/libraries/grpc)
if(NOT EXISTS ${rnicd_grpc_folder}/libgrpc++_unsecure.a)
  message(FATAL_ERROR "no libraries of gRPC for Windows in ${rnicd_grpc_folder}: run scripts/windows-test --setup")
endif()
find_package(re2 CONFIG REQUIRED)
find_package(c-ares CONFIG REQUIRED)

# Each as a target, so that CMake puts what it needs behind it on the linker's command line.
set(before "")
foreach(library address_sorting upb gpr grpc_unsecure grpc++_unsecure)
  add_library(rnicd_${library} STATIC IMPORTED)
  set_target_properties(rnicd_${library} PROPERTIES IMPORTED_LOCATION ${rnicd_grpc_folder}/lib${library}.a)
  target_link_libraries(rnicd_${library} INTERFACE ${before})
  list(PREPEND before rnicd_${library})
endforeach()
target_link_libraries(rnicd_gpr INTERFACE absl::base absl::core_headers absl::memory absl::random_random absl::status
    absl::cord absl::str_format absl::strings absl::synchronization absl::time absl::optional ws2_32 dbghelp)
target_link_libraries(rnicd_grpc_unsecure INTERFACE re2::re2 c-ares::cares absl::bind_front absl::flat_hash_map
    absl::flat_hash_set absl::inlined_vector absl::statusor /usr/x86_64-w64-mingw32/lib/libz.a ws2_32 crypt32 iphlpapi
    bcrypt)
target_link_libraries(rnicd_grpc++_unsecure INTERFACE protobuf::libprotobuf)
target_compile_definitions(rnicd_grpc++_unsecure INTERFACE CARES_STATICLIB)
add_library(gRPC::grpc++ ALIAS rnicd_grpc++_unsecure)
