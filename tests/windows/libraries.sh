# shellcheck shell=bash
# Sourced by scripts/windows-test, after lib.sh: the libraries that the build for Windows links, made from Debian's source
# packages, in a folder that all clones of this user share. Changes no setting of this machine.

# cmake/windows.cmake looks there, too.
WINDOWS_DIR=${RNICD_WINDOWS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/rnicd/windows}
LIBRARIES=$WINDOWS_DIR/libraries
# unicode-data is what tables of re2 are generated from.
# shellcheck disable=SC2034  # for scripts/windows-test
WINDOWS_TOOLS=(g++-mingw-w64-x86-64-posix wine64 libz-mingw-w64-dev unicode-data dpkg-dev ccache)

# Each line: a library, and a package of this machine that is built from the same source package. The versions are the
# machine's: protoc's output only compiles with its own version of protobuf. A library stands behind those it needs.
# shellcheck disable=SC2034  # for scripts/windows-test
ALL_LIBRARIES=(
  'abseil libabsl-dev'
  'googletest libgtest-dev'
  'protobuf libprotobuf-dev'
  'nlohmann_json nlohmann-json3-dev'
  'nghttp2 libnghttp2-dev'
  'prometheus_core prometheus-cpp-dev'
  'libmicrohttpd libmicrohttpd-dev'
  # For clients: gRPC, which takes as long as everything else together, and what it needs besides.
  're2 libre2-dev'
  'cares libc-ares-dev'
  'grpc libgrpc++-dev'
)

# The commands of a function that makes a library are joined with &&: as it is called in a condition, no failure ends it.

# cmake_install FOLDER OPTION...: builds FOLDER/source for Windows, static and optimised, and installs it.
cmake_install() {
  local folder=$1
  shift
  cmake -S "$folder/source" -B "$folder/build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$REPO/cmake/windows.cmake" \
    -DRNICD_WINDOWS_DIR="$WINDOWS_DIR" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=20 -DBUILD_SHARED_LIBS=OFF \
    -DBUILD_TESTING=OFF -DCMAKE_INSTALL_PREFIX="$LIBRARIES" -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache "$@" &&
    cmake --build "$folder/build" --target install
}

make_abseil() { cmake_install "$1" -DABSL_PROPAGATE_CXX_STD=ON -DABSL_ENABLE_INSTALL=ON; }

make_googletest() { cmake_install "$1"; }

make_protobuf() {
  cmake_install "$1" -Dprotobuf_BUILD_PROTOC_BINARIES=OFF -Dprotobuf_BUILD_TESTS=OFF -Dprotobuf_WITH_ZLIB=OFF
}

make_nlohmann_json() { cmake_install "$1" -DJSON_BuildTests=OFF; }

# With both of mingw's clocks its source calls a function that it has left out.
make_nghttp2() {
  cmake_install "$1" -DENABLE_LIB_ONLY=ON -DENABLE_STATIC_LIB=ON -DENABLE_SHARED_LIB=OFF -DHAVE_CLOCK_GETTIME=OFF
}

make_prometheus_core() {
  cmake_install "$1" -DENABLE_PULL=OFF -DENABLE_PUSH=OFF -DENABLE_COMPRESSION=OFF -DENABLE_TESTING=OFF
}

# Debian has no rules of CMake for it.
make_libmicrohttpd() {
  (cd "$1/source" && ./configure --quiet --host=x86_64-w64-mingw32 CC="ccache x86_64-w64-mingw32-gcc-posix" \
    CFLAGS='-O2 -D_WIN32_WINNT=0x0A00' --prefix="$LIBRARIES" --libdir="$LIBRARIES/lib" --disable-shared \
    --enable-static --disable-https --disable-doc --disable-examples --disable-curl --disable-dependency-tracking) &&
    make -C "$1/source/src" -j"$(nproc)" install
}

make_re2() {
  make -C "$1/source" REBUILD_TABLES=1 re2/perl_groups.cc re2/unicode_casefold.cc re2/unicode_groups.cc &&
    cmake_install "$1" -DRE2_BUILD_TESTING=OFF
}

# A file of it takes the size of an IPv4 address from a header that Windows does not have.
make_cares() {
  CFLAGS=-DINADDRSZ=4 cmake_install "$1" -DCARES_STATIC=ON -DCARES_SHARED=OFF -DCARES_BUILD_TOOLS=OFF
}

# A client of gRPC has a socket for IPv6, whatever the address. The daemon must find its process in the system's table of
# connections (daemon/pipes), and wine knows none for those of IPv6: so an address of IPv4 gets a socket of IPv4.
patch_grpc() {
  local iomgr=$1/src/core/lib/iomgr
  sed -i -e 's/if (grpc_sockaddr_to_v4mapped(addr, &addr6_v4mapped))/if (false)/' \
    -e 's/WSASocket(AF_INET6,/WSASocket(((const grpc_sockaddr*)addr->addr)->sa_family,/' \
    -e 's/^ *grpc_sockaddr_make_wildcard6(0, &local_address)/((const grpc_sockaddr*)addr->addr)->sa_family == AF_INET ? grpc_sockaddr_make_wildcard4(0, \&local_address) :&/' \
    "$iomgr/tcp_client_windows.cc" &&
    sed -i 's/^ *err = set_dualstack(sock)/(void)set_dualstack(sock)/' "$iomgr/tcp_windows.cc" &&
    (($(grep -c 'sa_family' "$iomgr/tcp_client_windows.cc") == 2)) && grep -qF '(void)set_dualstack' "$iomgr/tcp_windows.cc"
}

# gRPC's own rules to install want programs that are not built, so the files are copied. protoc's library is only asked
# for by the rules of a plug-in that is not built.
make_grpc() {
  patch_grpc "$1/source" || return
  cmake -S "$1/source" -B "$1/build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$REPO/cmake/windows.cmake" \
    -DRNICD_WINDOWS_DIR="$WINDOWS_DIR" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=20 -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
    -DgRPC_INSTALL=OFF -DgRPC_BUILD_TESTS=OFF -DgRPC_BUILD_CODEGEN=OFF -DgRPC_BUILD_GRPC_CPP_PLUGIN=OFF \
    -DgRPC_SSL_PROVIDER=none -DgRPC_{ABSL,PROTOBUF,CARES,RE2,ZLIB}_PROVIDER=package \
    -DProtobuf_PROTOC_EXECUTABLE=/usr/bin/protoc -DProtobuf_PROTOC_LIBRARY="$LIBRARIES/lib/libprotobuf.a" \
    -DZLIB_LIBRARY=/usr/x86_64-w64-mingw32/lib/libz.a &&
    cmake --build "$1/build" --target grpc++_unsecure &&
    cp -r "$1/source/include/." "$LIBRARIES/include" &&
    install -D -m 0644 -t "$LIBRARIES/grpc" "$1"/build/lib*.a
}

# recipe_of NAME PACKAGE: what decides the content of a library; if it is not that of the existing one, another is made.
recipe_of() {
  dpkg-query --show --showformat='${source:Package} ${source:Version}\n' "$2"
  dpkg-query --show g++-mingw-w64-x86-64-posix
  cat cmake/windows.cmake
  declare -f cmake_install "make_$1"
  # Few have one.
  declare -f "patch_$1" || true
}

# recipes LINE...: the digest of each library's recipe, which includes those of the libraries before it, as it is built
# on them. Prints "NAME PACKAGE DIGEST".
recipes() {
  local line digest=''
  for line in "$@"; do
    # shellcheck disable=SC2086  # two words
    digest=$({ say "$digest" && recipe_of $line; } | sha256sum | cut -d' ' -f1)
    say "$line $digest"
  done
}

is_made() { [[ $2 == "$(cat "$WINDOWS_DIR/made-from/$1" 2>/dev/null)" ]]; }

# prepare_library NAME PACKAGE DIGEST
prepare_library() {
  local name=$1 source folder began=$SECONDS
  if is_made "$name" "$3"; then return 0; fi
  source=$(dpkg-query --show --showformat='${source:Package} ${source:Version}' "$2")
  say "making $name from $source"
  rm -f "$WINDOWS_DIR/made-from/$name"
  folder=$(mktemp -d "$WINDOWS_DIR/new.XXXXXX")
  # shellcheck disable=SC2086  # two words
  if ! { unpack_source "$WINDOWS_DIR/apt" "$folder" $source && "make_$name" "$folder"; } >"$WINDOWS_DIR/$name.log" 2>&1; then
    tail -n 30 "$WINDOWS_DIR/$name.log"
    fail "could not make $name; the log is $WINDOWS_DIR/$name.log"
  fi
  say "$3" >"$WINDOWS_DIR/made-from/$name"
  rm -rf "$folder"
  say "   $((SECONDS - began)) s"
}

# prepare_libraries LINE...: one clone at a time.
prepare_libraries() {
  local line
  mkdir -p "$WINDOWS_DIR/made-from" "$LIBRARIES"
  (
    flock 9
    # What an interrupted run left.
    rm -rf "$WINDOWS_DIR"/new.* "$WINDOWS_DIR/apt"
    while IFS= read -r line; do
      # shellcheck disable=SC2086  # three words
      prepare_library $line </dev/null
    done < <(recipes "$@")
  ) 9>"$WINDOWS_DIR/lock"
}

# Libraries and wine's prefix are current, and so is the compiler's cache.
is_warm() {
  local name digest
  while read -r name _ digest; do
    is_made "$name" "$digest" || return
  done < <(recipes "${ALL_LIBRARIES[@]}" 2>/dev/null)
  [[ -f $WINDOWS_DIR/wine/system.reg ]] && was_built_lately "$WINDOWS_DIR"
}
