# shellcheck shell=bash
# Sourced by scripts/arm64-test, after emulator.sh: the Debian packages for arm64. Those of architecture "all" are the
# release build's (scripts/package-test).

DEB_FOLDER=build/arm64/packages
# A folder for temporary files, of emulator.sh.
runtime=${runtime:-}

is_for_arm64() { [[ $(file --brief --dereference "$1") == ELF\ 64-bit\ LSB*ARM\ aarch64* ]]; }

# has_field PACKAGE_FILE FIELD PATTERN
# shellcheck disable=SC2053  # a pattern
has_field() { [[ $(dpkg-deb --field "$1" "$2") == $3 ]]; }

# Each program is of arm64, and without symbols.
programs_are_for_arm64() {
  local program found=0
  for program in "$1"/usr/bin/*; do
    is_for_arm64 "$program" && [[ $(file --brief "$program") == *stripped* ]] || return
    found=1
  done
  ((found))
}

# The dependencies name packages that the sysroot has, or provides.
dependencies_exist() {
  sed -n -E 's/^(Package|Provides): //p' "$SYSROOT/var/lib/dpkg/status" | tr ',' '\n' | sed 's/(.*//; s/ //g' \
    >"$runtime/packages.txt"
  dpkg-deb --field "$1" Depends | tr ',' '\n' | sed 's/|.*//; s/ *(.*//; s/ //g' | while IFS= read -r package; do
    grep -qFx "$package" "$runtime/packages.txt" || [[ $package == @(systemd|procps) ]] || return
  done
}

check_packages() {
  install_tools lintian
  rm -rf "$DEB_FOLDER"
  build arm64 packages
  local file folder name
  folder=$runtime/packages
  for name in rnicd rnicd-device-plugin rnicd-dbgsym librnicd0 librnicd-fi librnicd-dev; do
    file=$(compgen -G "$DEB_FOLDER/${name}_*_arm64.deb") || file=/none
    check "$name has a package for arm64" test -f "$file"
    [[ -f $file ]] || continue
    check "$name is of architecture arm64" has_field "$file" Architecture arm64
    rm -rf "$folder"
    dpkg-deb --extract "$file" "$folder"
    case $name in
      rnicd | rnicd-device-plugin)
        check "the programs of $name are of arm64" programs_are_for_arm64 "$folder"
        check "$name depends on its C library" has_field "$file" Depends '*libc6 (>= 2.*'
        check "what $name depends on exists" dependencies_exist "$file"
        ;;
      rnicd-dbgsym) check "symbols are of arm64" symbols_are_for_arm64 "$folder" ;;
      librnicd0) check "librnicd.so is of arm64" is_for_arm64 "$(find "$folder" -name 'librnicd.so.*.*')" ;;
      librnicd-fi) check "librnicd-fi.so is of arm64" is_for_arm64 "$(find "$folder" -name librnicd-fi.so)" ;;
      *) check "a program links with $name" program_links "$folder" ;;
    esac
  done
  check "lintian finds no mistakes" lint_packages
  (cd "$DEB_FOLDER" && du --human-readable -- *.deb)
}

symbols_are_for_arm64() {
  local file
  file=$(find "$1/usr/lib/debug" -name '*.debug' | head -n 1)
  [[ -n $file ]] && is_for_arm64 "$file"
}

# Compiles and links the example with the files of librnicd-dev.
program_links() {
  local pc
  pc=$(dirname "$(find "$1" -name librnicd-cpp.pc)")
  export PKG_CONFIG_PATH=$pc PKG_CONFIG_SYSROOT_DIR="" PKG_CONFIG_LIBDIR=$SYSROOT/usr/lib/aarch64-linux-gnu/pkgconfig
  # shellcheck disable=SC2046  # options, a word each
  aarch64-linux-gnu-g++ --sysroot="$SYSROOT" -std=c++20 -o "$1/program" examples/register_memory.cc \
    $(pkg-config --cflags --libs librnicd-cpp) && is_for_arm64 "$1/program"
}

lint_packages() { lintian --allow-root --fail-on error,warning "$DEB_FOLDER"/*.deb; }
