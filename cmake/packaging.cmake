# The Debian packages: `cpack` in the build folder, after the targets are built (scripts/package-test does both).
# Maintainer scripts, copyright and changelog are in deploy/debian.
set(CPACK_GENERATOR DEB)
set(RNICD_PACKAGE_MAINTAINER "The rnicd authors <rnicd@example.org>" CACHE STRING "Maintainer of the Debian packages")
set(CPACK_PACKAGE_CONTACT ${RNICD_PACKAGE_MAINTAINER})
set(CPACK_PACKAGE_VENDOR rnicd)
# Each package has its own description; CPack would prepend a common one.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_COMPONENTS_ALL rnicd librnicd0 librnicd librnicd-fi debug-symbols)
if(CMAKE_CROSSCOMPILING)
  include(cmake/cross_packaging.cmake)
else()
  list(APPEND CPACK_COMPONENTS_ALL fr-dkms)
endif()
if(TARGET rnicd-device-plugin)
  list(APPEND CPACK_COMPONENTS_ALL device-plugin)
endif()
if(TARGET rnicd_wheel AND NOT CMAKE_CROSSCOMPILING)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
# Only packaged targets must be built first, not the tests.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# Debian's own requirements: stripped programs, compressed pages, copyright, changelog.
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/finish_debian_tree.cmake)
set(CPACK_RNICD_DEBIAN_DIR ${PROJECT_SOURCE_DIR}/deploy/debian)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# librnicd.so, which librnicd-fi needs, is not installed here.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/client/c/shared)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

set(CPACK_DEBIAN_RNICD_PACKAGE_NAME rnicd)
set(CPACK_DEBIAN_RNICD_PACKAGE_SECTION net)
set(CPACK_COMPONENT_RNICD_DESCRIPTION "Owner of a node's RDMA cards
One privileged daemon owns the RDMA cards of a node and hands registered
memory to unprivileged processes and containers over gRPC on a Unix socket.

With rnicctl, the tool of the operator, a unit for systemd, rules for
Prometheus and a dashboard for Grafana.")
# The maintainer scripts create the user and the directories; the unit reloads with kill from procps.
set(CPACK_DEBIAN_RNICD_PACKAGE_DEPENDS
    "systemd | systemd-standalone-sysusers, systemd | systemd-standalone-tmpfiles, procps")
# libibverbs loads the card drivers at run time; without them only the soft provider works.
set(CPACK_DEBIAN_RNICD_PACKAGE_RECOMMENDS "ibverbs-providers, rdma-core")
set(CPACK_DEBIAN_RNICD_PACKAGE_CONTROL_EXTRA ${CPACK_RNICD_DEBIAN_DIR}/conffiles ${CPACK_RNICD_DEBIAN_DIR}/postinst
    ${CPACK_RNICD_DEBIAN_DIR}/prerm ${CPACK_RNICD_DEBIAN_DIR}/postrm)

set(CPACK_DEBIAN_LIBRNICD0_PACKAGE_NAME librnicd0)
set(CPACK_DEBIAN_LIBRNICD0_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBRNICD0_DESCRIPTION "Registered RDMA memory for unprivileged processes (library)
librnicd.so talks to the daemon rnicd: allocate memory, register it, give its
tokens to peers, transfer. It starts no thread and needs few libraries.")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/librnicd0/shlibs CONTENT "librnicd 0 librnicd0 (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_LIBRNICD0_PACKAGE_CONTROL_EXTRA
    ${PROJECT_BINARY_DIR}/librnicd0/shlibs ${CPACK_RNICD_DEBIAN_DIR}/librnicd0/triggers)

set(CPACK_DEBIAN_LIBRNICD_PACKAGE_NAME librnicd-dev)
set(CPACK_DEBIAN_LIBRNICD_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_LIBRNICD_DESCRIPTION "Registered RDMA memory for unprivileged processes (development)
For C: rnicd.h, its manual pages, and files of pkg-config (librnicd) and CMake
(rnicd::rnicd). For C++: headers and static libraries (librnicd-cpp).")
# Packages that its headers include and its pkg-config file requires.
set(CPACK_DEBIAN_LIBRNICD_PACKAGE_DEPENDS
    "librnicd0 (= ${PROJECT_VERSION}-1), libnghttp2-dev, libprotobuf-dev, libabsl-dev")
set(CPACK_DEBIAN_LIBRNICD_PACKAGE_SHLIBDEPS OFF)

get_target_property(libfabric rnicd_fi RNICD_LIBFABRIC_VERSION)
string(REGEX MATCH "[0-9]+$" minor ${libfabric})
math(EXPR minor "${minor} + 1")
string(REGEX REPLACE "[0-9]+$" ${minor} next_libfabric ${libfabric})
set(CPACK_DEBIAN_LIBRNICD-FI_PACKAGE_NAME librnicd-fi)
set(CPACK_DEBIAN_LIBRNICD-FI_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBRNICD-FI_DESCRIPTION "Registered RDMA memory for unprivileged processes (libfabric)
A provider for libfabric ${libfabric}: programs that use libfabric, Open MPI
among them, transfer through the daemon rnicd without a change.")
set(CPACK_DEBIAN_LIBRNICD-FI_PACKAGE_DEPENDS
    "librnicd0 (>= ${PROJECT_VERSION}), libfabric1 (>= ${libfabric}), libfabric1 (<< ${next_libfabric}~)")

set(CPACK_DEBIAN_DEVICE-PLUGIN_PACKAGE_NAME rnicd-device-plugin)
set(CPACK_DEBIAN_DEVICE-PLUGIN_PACKAGE_SECTION net)
set(CPACK_COMPONENT_DEVICE-PLUGIN_DESCRIPTION "Offers the memory of rnicd to pods of Kubernetes
A device plugin of the kubelet. Pods ask for units of registered RDMA memory
as a resource and get a grant of the daemon rnicd of their node.

It is made to run in a pod of a DaemonSet; the package has no unit.")
set(CPACK_DEBIAN_DEVICE-PLUGIN_PACKAGE_SUGGESTS rnicd)

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-rnicd)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "Registered RDMA memory for unprivileged processes (Python 3)
The package rnicd for Python: allocate memory with the daemon rnicd, use it
as a numpy array, register it, and transfer it, also with asyncio.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "python3 (>= 3.9), python3-grpcio (>= 1.51), python3-protobuf (>= 3.20.2)")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-numpy, rnicd")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
# They compile the modules, and remove what was compiled.
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
    ${CPACK_RNICD_DEBIAN_DIR}/python/postinst ${CPACK_RNICD_DEBIAN_DIR}/python/prerm)

set(CPACK_DEBIAN_FR-DKMS_PACKAGE_NAME rnicd-fr-dkms)
set(CPACK_DEBIAN_FR-DKMS_PACKAGE_SECTION kernel)
set(CPACK_DEBIAN_FR-DKMS_PACKAGE_ARCHITECTURE all)
set(CPACK_COMPONENT_FR-DKMS_DESCRIPTION "Fast registrations by the kernel for rnicd (DKMS)
Source of the kernel module rnicd_fr, built by DKMS for each kernel of the
machine. With it the daemon rnicd registers memory by work requests of the
kernel (IB_WR_REG_MR), which libibverbs does not have.

The daemon works without it.")
set(CPACK_DEBIAN_FR-DKMS_PACKAGE_DEPENDS dkms)
set(CPACK_DEBIAN_FR-DKMS_PACKAGE_ENHANCES rnicd)
# DKMS makes the key with it that it signs modules with.
set(CPACK_DEBIAN_FR-DKMS_PACKAGE_RECOMMENDS "openssl, linux-headers-amd64 | linux-headers")
set(CPACK_DEBIAN_FR-DKMS_PACKAGE_SHLIBDEPS OFF)
configure_file(deploy/debian/fr-dkms/postinst.in dkms/postinst @ONLY)
configure_file(deploy/debian/fr-dkms/prerm.in dkms/prerm @ONLY)
set(CPACK_DEBIAN_FR-DKMS_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/dkms/postinst ${PROJECT_BINARY_DIR}/dkms/prerm
    ${CPACK_RNICD_DEBIAN_DIR}/fr-dkms/postrm)

# One package for all programs. Not CPack's own debug packages: in version 3.25 their checksums name paths of the build.
set(CPACK_DEBIAN_DEBUG-SYMBOLS_PACKAGE_NAME rnicd-dbgsym)
set(CPACK_DEBIAN_DEBUG-SYMBOLS_PACKAGE_SECTION debug)
set(CPACK_COMPONENT_DEBUG-SYMBOLS_DESCRIPTION "Debug symbols of the programs of rnicd
Debuggers find them by the build id of the file: rnicd, rnicctl,
rnicd-device-plugin, librnicd.so and librnicd-fi.so.")
set(CPACK_DEBIAN_DEBUG-SYMBOLS_PACKAGE_SHLIBDEPS OFF)

include(CPack)

# Builds the contents of the packages, then the packages.
add_custom_target(packages COMMAND ${CMAKE_CPACK_COMMAND} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}
    USES_TERMINAL VERBATIM)
add_dependencies(packages rnicd rnicctl rnicd_client)
# Not in every build.
foreach(target rnicd-device-plugin rnicd_shared rnicd_fi rnicd_heap rnicd_manual)
  if(TARGET ${target})
    add_dependencies(packages ${target})
  endif()
endforeach()
if(TARGET rnicd_wheel)
  add_dependencies(packages rnicd_wheel)
endif()
