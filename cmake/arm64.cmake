# Toolchain for Linux on arm64, with g++-aarch64-linux-gnu and the sysroot that `scripts/arm64-test --setup` makes from
# Debian's packages. The same folder has the emulator that runs what was built. docs/adr/0038 has the reasons.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

include("${CMAKE_CURRENT_LIST_DIR}/cross_folder.cmake")
rnicd_cross_folder(arm64 "Sysroot and emulator for arm64")
if(NOT EXISTS "${RNICD_ARM64_DIR}/sysroot/made-from")
  message(FATAL_ERROR "no sysroot for arm64 in ${RNICD_ARM64_DIR}: run scripts/arm64-test --setup")
endif()
set(CMAKE_SYSROOT "${RNICD_ARM64_DIR}/sysroot")
set(CMAKE_CROSSCOMPILING_EMULATOR "${RNICD_ARM64_DIR}/qemu-aarch64-static" -L "${CMAKE_SYSROOT}")

# Programs of this machine, such as protoc, which must have the version of the sysroot's headers; everything else of the
# sysroot.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CMAKE_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR}
    "${CMAKE_SYSROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig")
