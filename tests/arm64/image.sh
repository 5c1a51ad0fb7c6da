# shellcheck shell=bash
# Sourced by scripts/arm64-test, after packages.sh: the image for arm64, and the index of it and the image for x86-64.
# Nothing of arm64 runs to make them: deploy/image collects the files, and the last part of the Dockerfile only copies.

# shellcheck source=tests/container/store.sh
source tests/container/store.sh
STORE=$REPO/.cache/arm64
VERSION=$(sed -n 's/^ARG VERSION=//p' Dockerfile)
PROGRAMS=$(sed -n 's/^ARG PROGRAMS="\(.*\)"/\1/p' Dockerfile)
INDEX=localhost/rnicd-index:$VERSION
# A folder for temporary files, of emulator.sh.
runtime=${runtime:-}

# image_of ARCHITECTURE BUILD [OPTION...]: with the programs of this build; options of assemble.py.
image_of() {
  local architecture=$1 folder=$runtime/image-$1 programs=() program
  for program in $PROGRAMS; do programs+=("$2/$program"); done
  shift 2
  mkdir -p "$folder/context"
  as_root env OBJCOPY="$architecture-linux-gnu-objcopy" python3 -B deploy/image/assemble.py --out "$folder/out" \
    --debug "$folder/debug" --version "$VERSION" "$@" "${programs[@]}"
  as_root tar --create --sort=name --numeric-owner --file "$folder/context/files.tar" --directory "$folder/out" .
  {
    say "FROM scratch"
    sed '1,/^FROM scratch$/d; s#^COPY --from=assembled /out/ /#ADD files.tar /#' Dockerfile
  } >"$folder/Dockerfile"
  grep -q '^ADD files.tar /$' "$folder/Dockerfile"
  as_root buildah bud --quiet --isolation=chroot --format oci --timestamp 0 --os linux --arch "$(debian_name "$architecture")" \
    --build-arg VERSION="$VERSION" --tag "localhost/rnicd-$architecture:$VERSION" --file "$folder/Dockerfile" \
    "$folder/context" 2>&1 | { grep -v HEALTHCHECK || true; }
}

debian_name() { if [[ $1 == aarch64 ]]; then say arm64; else say amd64; fi; }

# The index has an image for x86-64 beside that for arm64, so the programs of both are needed. Those of the release build
# are taken as they are: scripts/container-test judges their image, and here only the index of both is looked at.
build_missing_programs() {
  local program
  for program in $PROGRAMS; do
    if [[ ! -x build/release/$program ]]; then
      configure release
      build release rnicd rnicctl rnicd-device-plugin
      return
    fi
  done
}

build_images() {
  install_tools buildah jq
  prepare_store
  build_missing_programs
  image_of aarch64 build/arm64 --sysroot "$SYSROOT"
  image_of x86_64 build/release
  as_root buildah manifest rm "$INDEX" >/dev/null 2>&1 || true
  as_root buildah manifest create "$INDEX" >/dev/null
  local architecture
  for architecture in x86_64 aarch64; do
    as_root buildah manifest add "$INDEX" "containers-storage:localhost/rnicd-$architecture:$VERSION" >/dev/null
  done
  rm -rf build/arm64/image
  as_root buildah manifest push --quiet --all --format oci "$INDEX" "oci:build/arm64/image:$VERSION" >/dev/null
}

# The files of the index are found by the digest in index.json.
blob() { say "build/arm64/image/blobs/${1/://}"; }

# platforms: "amd64 arm64", as the index says.
platforms() {
  local list
  list=$(blob "$(jq -r '.manifests[0].digest' build/arm64/image/index.json)")
  jq -r '.manifests[].platform | .os + "/" + .architecture' "$list" | sort | xargs
}

# The configuration in an image of the index.
architecture_of_configuration() {
  local list manifest
  list=$(blob "$(jq -r '.manifests[0].digest' build/arm64/image/index.json)")
  manifest=$(blob "$(jq -r --arg wanted "$1" '.manifests[] | select(.platform.architecture == $wanted).digest' "$list")")
  jq -r '.architecture + " " + .config.User' "$(blob "$(jq -r .config.digest "$manifest")")"
}

# All programs and libraries of the image are of arm64.
all_files_are_for_arm64() {
  local file
  while IFS= read -r -d '' file; do
    is_for_arm64 "$file" || [[ $(head -c 4 "$file") != $'\x7fELF' ]] || { say "   $file" && return 1; }
  done < <(find "$1/usr/bin" "$1/usr/lib" -type f -print0)
}

packages_are_for_arm64() { [[ $(grep -o 'arch=[a-z0-9]*' "$1" | sort -u | xargs) == @(arch=arm64|"arch=all arch=arm64") ]]; }

# Two builds of the same programs are the same.
is_reproducible() {
  local first=$runtime/image-aarch64/context/files.tar again=$runtime/again programs=() program
  for program in $PROGRAMS; do programs+=("build/arm64/$program"); done
  as_root env OBJCOPY=aarch64-linux-gnu-objcopy python3 -B deploy/image/assemble.py --out "$again/out" \
    --debug "$again/debug" --version "$VERSION" --sysroot "$SYSROOT" "${programs[@]}"
  as_root tar --create --sort=name --numeric-owner --directory "$again/out" . | cmp - "$first"
}

# The image's daemon with the image's libraries, and its own tool.
daemon_answers() {
  local files=$1 prefix=$runtime/image-prefix sockets=$runtime/sockets pid status=1 try
  mkdir -p "$prefix/usr" "$sockets"
  ln -sfn "$files/usr/lib" "$prefix/usr/lib"
  ln -sfn usr/lib "$prefix/lib"
  local -a run=("$runtime/qemu-aarch64-static" -L "$prefix")
  "${run[@]}" -E LD_PRELOAD="$runtime/one_thread.so" -E RNICD_ONE_THREAD="$runtime/one-thread" "$files/usr/bin/rnicd" \
    --provider=soft --socket_dir="$sockets/s" --metrics_address= --system_call_filter=off 2>"$RESULTS/image_daemon.log" &
  pid=$!
  for ((try = 0; try < 60; ++try)); do
    if "${run[@]}" "$files/usr/bin/rnicctl" --socket-dir="$sockets/s" status >"$RESULTS/image_status.txt" 2>&1; then
      status=0
      break
    fi
    sleep 1
  done
  sed -n '1,3s/^/   /p' "$RESULTS/image_status.txt"
  kill "$pid"
  wait "$pid" || status=1
  return "$status"
}

check_image() {
  build_images
  local files=$runtime/image-aarch64/out
  check "the index names both platforms" test "$(platforms)" = "linux/amd64 linux/arm64"
  check "the image for arm64 says so, and its user" test "$(architecture_of_configuration arm64)" = "arm64 65532:65532"
  check "the image for amd64 says so, and its user" test "$(architecture_of_configuration amd64)" = "amd64 65532:65532"
  check "the files are of arm64" all_files_are_for_arm64 "$files"
  check "the packages in the list are of arm64" packages_are_for_arm64 "$files/usr/share/rnicd/sbom.json"
  check "assembled twice, the files are the same" is_reproducible
  check "the daemon of the image answers rnicctl status" daemon_answers "$files"
}
