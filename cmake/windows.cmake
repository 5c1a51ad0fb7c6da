# Toolchain for Windows on x86-64: Debian's mingw-w64, and the libraries that `scripts/windows-test --setup` makes from
# Debian's source packages. Programs run under wine. docs/adr/0039 has the reasons.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)

include("${CMAKE_CURRENT_LIST_DIR}/cross_folder.cmake")
rnicd_cross_folder(windows "Libraries for Windows")
if(NOT EXISTS "${RNICD_WINDOWS_DIR}/libraries")
  message(FATAL_ERROR "no libraries for Windows in ${RNICD_WINDOWS_DIR}: run scripts/windows-test --setup")
endif()

# wine with a prefix of its own, which the script makes, too. Debian's /usr/bin/wine would print a notice about 32-bit
# programs.
set(CMAKE_CROSSCOMPILING_EMULATOR env "WINEPREFIX=${RNICD_WINDOWS_DIR}/wine" WINEDEBUG=-all /usr/lib/wine/wine64)

# Windows 10, the oldest with all calls that are used. Its headers define short macros, such as min, unless told not to.
set(CMAKE_C_FLAGS_INIT "-D_WIN32_WINNT=0x0A00 -DNOMINMAX -DWIN32_LEAN_AND_MEAN")
# Templates have more sections than an object file has room for by default.
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT} -Wa,-mbig-obj")
# Programs that need no library of the compiler at run time.
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)

# Programs of this machine, such as protoc, which must have the version of the libraries' headers; everything else of
# the libraries for Windows.
set(CMAKE_FIND_ROOT_PATH "${RNICD_WINDOWS_DIR}/libraries" /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
