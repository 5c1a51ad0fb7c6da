# shellcheck shell=bash
# Sourced by scripts/container-test, after store.sh: builds the image and checks it.

VERSION=$(sed -n 's/^ARG VERSION=//p' Dockerfile)
# The image's name in the manifests; podman looks in "localhost" first.
IMAGE=localhost/rnicd:$VERSION
BUILD_IMAGE=localhost/rnicd-build:test
DEBUG_IMAGE=localhost/rnicd-debug:test
AGAIN_IMAGE=localhost/rnicd-again:test
SIZE_MAX=$((120 * 1000 * 1000))
SHELLS=(sh bash dash busybox perl python3 apt dpkg)
# A folder for temporary files.
work=''

# bake TAG DOCKERFILE CONTEXT [OPTION...]
bake() {
  local tag=$1 file=$2 context=$3
  shift 3
  nice buildah bud --pull-never --isolation=chroot --format docker --file "$file" --tag "$tag" "$@" "$context" 2>&1 |
    condense '^(Selecting|Preparing|Unpacking|Setting up|Processing|Get:|\(Reading|-- |-->|$)' '^\[[0-9]+/[0-9]+\] '
}

# Compiles in a container, with this machine's compiler cache and the same options, so that the cache hits.
build_programs() {
  local -a options=(--layers --target build --volume "$CCACHE_DIR:/ccache")
  mkdir -p "$CCACHE_DIR"
  if [[ -n ${CI:-} ]]; then options+=(--build-arg "CI=$CI"); fi
  bake "$BUILD_IMAGE" Dockerfile . "${options[@]}"
}

# after_build FILE [COMMAND]: the part of the Dockerfile after its stage "build", which exists already, so that this
# part can be repeated; COMMAND runs before it.
after_build() {
  {
    sed '/^FROM/,$d' Dockerfile
    say "FROM $BUILD_IMAGE AS build"
    if [[ -n ${2:-} ]]; then say "RUN $2"; fi
    sed -n '/^FROM build /,$p' Dockerfile
  } >"$1"
}

build_image() {
  local file=$work/Dockerfile revision
  # All files have one time, so that the same files produce the same layer.
  local -a same=(--no-cache --timestamp 0)
  revision=$(git -c safe.directory="$REPO" rev-parse HEAD 2>/dev/null || echo unknown)
  after_build "$file"
  mkdir -p "$work/nothing"
  bake "$IMAGE" "$file" "$work/nothing" "${same[@]}" --build-arg REVISION="$revision"
  bake "$AGAIN_IMAGE" "$file" "$work/nothing" "${same[@]}" --build-arg REVISION="$revision"
  bake "$DEBUG_IMAGE" "$file" "$work/nothing" "${same[@]}" --target debug
}

asked() { podman image inspect --format "$2" "$1"; }

# expect WHAT FOUND WANTED
expect() { [[ $2 == "$3" ]] || fail "$1: is $2 and must be $3"; }

check_configuration() {
  expect "user" "$(asked "$IMAGE" '{{.User}}')" 65532:65532
  expect "number of layers" "$(asked "$IMAGE" '{{len .RootFS.Layers}}')" 1
  local label
  for label in title description licenses version revision; do
    [[ -n $(asked "$IMAGE" "{{index .Labels \"org.opencontainers.image.$label\"}}") ]] || fail "no label $label"
  done
  expect "health check" "$(asked "$IMAGE" '{{.HealthCheck.Test}}')" "[CMD /usr/bin/rnicctl health --live]"
  local size
  size=$(asked "$IMAGE" '{{.Size}}')
  ((size < SIZE_MAX)) || fail "the image has $size bytes"
  say "one layer of $((size / 1000 / 1000)) MB, user 65532, labels, health check"
}

check_reproducible() {
  local first second
  first=$(asked "$IMAGE" '{{.RootFS.Layers}}')
  second=$(asked "$AGAIN_IMAGE" '{{.RootFS.Layers}}')
  expect "the layer of a second build" "$second" "$first"
  say "built twice, the layer is the same: $first"
}

# The list of packages and the licences must cover the same packages.
check_packages() {
  expect "packages of the SBOM, beside those with a licence" \
    "$(jq --raw-output '.components[].name, .metadata.component.name' "$1/usr/share/rnicd/sbom.json" | sort | xargs)" \
    "$(cd "$1/usr/share/doc" && printf '%s\n' */copyright | sed 's#/copyright##' | sort | xargs)"
  say "$(jq '.components | length' "$1/usr/share/rnicd/sbom.json") packages, each with its licence"
}

# has_lines FILE: whether it has line numbers for a debugger. Does not pipe into grep -q, which may exit before readelf
# does.
has_lines() { [[ $(readelf --sections --wide "$1" 2>/dev/null) == *.debug_line* ]]; }

# check_files FOLDER: the image's files.
check_files() {
  local files=$1 shell program
  for shell in "${SHELLS[@]}"; do
    [[ ! -e $files/usr/bin/$shell && ! -e $files/bin/$shell ]] || fail "the image holds $shell"
  done
  expect "owner and mode of /run/rnicd" "$(stat --format '%u:%g %a' "$files/run/rnicd")" "65532:65532 755"
  expect "owner and mode of /run/rnicd-admin" "$(stat --format '%u:%g %a' "$files/run/rnicd-admin")" "65532:65532 700"
  expect "owner and mode of /run/rnicd-doors" "$(stat --format '%u:%g %a' "$files/run/rnicd-doors")" "65532:65532 700"
  for program in "$files"/usr/bin/*; do
    if has_lines "$program"; then fail "$program holds its symbols"; fi
  done
  readelf --file-header "$files"/usr/lib/*/libibverbs/libmlx5-rdmav*.so >"$work/driver" 2>&1 ||
    fail "the image holds no driver of mlx5: $(<"$work/driver")"
  check_packages "$files"
  say "programs: $(basename --multiple "$files"/usr/bin/* | xargs); no shell"
}

# check_symbols FILES DEBUG_FILES: each program has symbols under its build id.
check_symbols() {
  local program build_id symbols
  for program in "$1"/usr/bin/*; do
    build_id=$(readelf --notes "$program" | sed -n 's/.*Build ID: //p')
    symbols=$2/usr/lib/debug/.build-id/${build_id:0:2}/${build_id:2}.debug
    [[ -f $symbols ]] || fail "no symbols of ${program##*/}"
    has_lines "$symbols" || fail "$symbols holds no lines"
    expect "debug link of ${program##*/}" "$(readelf --string-dump=.gnu_debuglink "$program" |
      sed -n 's/.* \([0-9a-f]*\.debug\)$/\1/p')" "${build_id:2}.debug"
  done
  say "symbols of $(basename --multiple "$1"/usr/bin/* | xargs) in $DEBUG_IMAGE"
}

# on_files IMAGE COMMAND...: runs the command with the folder of the image's files as last argument.
on_files() {
  local image=$1 files status=0
  shift
  files=$(podman image mount "$image")
  ("$@" "$files") || status=$?
  podman image unmount "$image" >/dev/null
  return "$status"
}

check_image() {
  check_configuration
  check_reproducible
  on_files "$IMAGE" check_files
  on_files "$IMAGE" on_files "$DEBUG_IMAGE" check_symbols
}

# Runs as in a pod with a strict security context. Without systemd no health check runs automatically, and podman warns
# about it.
strict_run() {
  podman run --network=none --read-only --cap-drop=all --security-opt no-new-privileges "$@" 2> >(
    grep --invert-match --ignore-case systemd >&2)
}

# wait_for SECONDS WHAT COMMAND...: waits until the command succeeds; prints its last output if it never does.
wait_for() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >"$work/last" 2>&1; do
    if ((SECONDS >= end)); then
      sed 's/^/   /' "$work/last" >&2
      fail "$what: not in time"
    fi
    sleep 0.1
  done
}

# Runs the image with its own user and flags, and another user's container with the sockets mounted.
try_image() {
  local -a sockets=(--volume "$work/sockets:/run/rnicd")
  install -d -o 65532 -g 65532 -m 0755 "$work/sockets"
  strict_run --detach --name rnicd-alone "${sockets[@]}" "$IMAGE" >/dev/null
  wait_for 60 "the daemon" podman exec rnicd-alone rnicctl status
  podman exec rnicd-alone rnicctl status
  strict_run --rm --user 65534:65534 "${sockets[@]}" --entrypoint rnicctl "$IMAGE" \
    register --size 8MiB --flags local-write,remote-read
  podman healthcheck run rnicd-alone
  podman stop --time 15 rnicd-alone >/dev/null 2>&1
  expect "exit status of the daemon" "$(podman inspect --format '{{.State.ExitCode}}' rnicd-alone)" 0
  say "healthy by the image's own check; ended with 0"
}

# A missing library must fail the build and not the node.
check_missing_library() {
  local file=$work/Dockerfile.broken
  after_build "$file" 'rm /usr/lib/*/libseccomp.so.2'
  if bake localhost/rnicd-broken:test "$file" "$work/nothing" --no-cache >"$work/broken.log"; then
    fail "an image without libseccomp was built"
  fi
  grep --quiet 'assemble.py: libseccomp.so.2 => not found' "$work/broken.log" ||
    fail "the build failed for another reason: $(tail -n 5 "$work/broken.log")"
  say "without libseccomp the build fails"
}
