# shellcheck shell=bash
# Sourced by scripts/arm64-test, after lib.sh: Debian's libraries for arm64, and the emulator, in a folder that all
# clones of this user share. Installs no package of arm64 and changes no setting of this machine.

# cmake/arm64.cmake looks there, too.
ARM64_DIR=${RNICD_ARM64_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/rnicd/arm64}
SYSROOT=$ARM64_DIR/sysroot
QEMU=$ARM64_DIR/qemu-aarch64-static
# shellcheck disable=SC2034  # for scripts/arm64-test
ARM64_TOOLS=(g++-aarch64-linux-gnu mmdebstrap debian-archive-keyring dpkg-dev file)

# The compiler's own libraries, and the plug-in of protoc: the host's is used, but gRPC's CMake files look for it here.
sysroot_packages() {
  {
    printf '%s\n' libc6-dev libstdc++-12-dev libgcc-12-dev protobuf-compiler-grpc
    scripts/setup --libraries
  } | sort
}

# What decides the content; if it is not that of the existing sysroot, another is made.
sysroot_recipe() {
  say "$SYSROOT"
  sysroot_packages
  cat tests/arm64/list_packages.sh
}

# An absolute link leads to a file of this machine when a compiler follows it.
make_links_relative() {
  local link
  while IFS= read -r link; do
    ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$1$(readlink "$link")")" "$link"
  done < <(find "$1" -type l -lname '/*')
}

# Unpacks the packages and configures none, so that nothing of arm64 runs. The hook of mmdebstrap gives /lib and /bin the
# layout of an installed Debian.
make_sysroot() {
  local new
  new=$(mktemp -d "$ARM64_DIR/new.XXXXXX")
  say "making the sysroot for arm64 (half a minute, 100 MB to download)"
  as_root mmdebstrap --quiet --variant=extract --architectures=arm64 \
    --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --extract-hook="bash $REPO/tests/arm64/list_packages.sh \"\$1\"" \
    --include="$(sysroot_packages | paste -sd,)" bookworm - |
    tar --extract --no-same-owner --exclude='./dev/*' --directory "$new"
  make_links_relative "$new"
  # dpkg-shlibdeps asks for the package of a library by the place where it found it.
  sed -i "p; s#^/#$SYSROOT/#" "$new"/var/lib/dpkg/info/*.list
  sysroot_recipe >"$new/made-from"
  rm -rf "$SYSROOT"
  chmod 0755 "$new"
  mv "$new" "$SYSROOT"
}

# Not installed, because the package registers the emulator with the kernel for the whole machine.
unpack_qemu() {
  local folder
  folder=$(mktemp -d)
  say "unpacking qemu-user-static"
  chmod 0755 "$folder"
  if ! (cd "$folder" && apt-get -qq -o APT::Sandbox::User=root download qemu-user-static); then
    as_root apt-get -qq -o DPkg::Lock::Timeout=300 update
    (cd "$folder" && apt-get -qq -o APT::Sandbox::User=root download qemu-user-static)
  fi
  dpkg -x "$folder"/qemu-user-static_*.deb "$folder/unpacked"
  install "$folder/unpacked/usr/bin/qemu-aarch64-static" "$QEMU"
  rm -rf "$folder"
}

is_warm() {
  [[ -x $QEMU && $(sysroot_recipe) == "$(cat "$SYSROOT/made-from" 2>/dev/null)" ]] && was_built_lately "$ARM64_DIR"
}

# One clone at a time.
prepare_arm64() {
  mkdir -p "$ARM64_DIR"
  (
    flock 9
    if [[ ! -x $QEMU ]]; then unpack_qemu; fi
    if [[ $(sysroot_recipe) != "$(cat "$SYSROOT/made-from" 2>/dev/null)" ]]; then make_sysroot; fi
  ) 9>"$ARM64_DIR/lock"
}
