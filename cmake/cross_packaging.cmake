# Packages of the sysroot's architecture, without those of architecture "all", which the release build makes.
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
set(CPACK_RNICD_STRIP ${CMAKE_STRIP})

# CPack looks for dpkg-shlibdeps in PATH. This one looks at the libraries and the packages of the sysroot.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/cross_tools/dpkg-shlibdeps CONTENT [[#!/bin/sh
export DEB_HOST_ARCH=arm64
exec /usr/bin/dpkg-shlibdeps --admindir=@CMAKE_SYSROOT@/var/lib/dpkg -l@CMAKE_SYSROOT@/lib/@CMAKE_LIBRARY_ARCHITECTURE@ \
  -l@CMAKE_SYSROOT@/usr/lib/@CMAKE_LIBRARY_ARCHITECTURE@ "$@"
]] @ONLY)
file(CHMOD ${PROJECT_BINARY_DIR}/cross_tools/dpkg-shlibdeps PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
set(CMAKE_CPACK_COMMAND ${CMAKE_COMMAND} -E env "PATH=${PROJECT_BINARY_DIR}/cross_tools:$ENV{PATH}"
    ${CMAKE_CPACK_COMMAND})
