# shellcheck shell=bash
# Sourced by scripts/container-test, after lib.sh: its tools, and its own storage for images and containers.

# shellcheck disable=SC2034  # for scripts/container-test
PACKAGES=(buildah podman runc mmdebstrap catatonit jq)
STORE=$REPO/.cache/container
BASE=docker.io/library/debian:bookworm-slim

# Separate storage, configuration and runtime: the machine's containers are not touched.
prepare_store() {
  mkdir -p "$STORE"
  export CONTAINERS_STORAGE_CONF=$STORE/storage.conf CONTAINERS_CONF=$STORE/containers.conf
  cat >"$CONTAINERS_STORAGE_CONF" <<STORAGE
[storage]
driver = "overlay"
graphroot = "$STORE/graph"
runroot = "$STORE/run"
STORAGE
  write_runtime "$STORE/runc-without-rlimits"
  cat >"$CONTAINERS_CONF" <<CONFIGURATION
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "rnicd-runc"
[engine.runtimes]
rnicd-runc = ["$STORE/runc-without-rlimits"]
CONFIGURATION
}

# If rlimits may not be raised (containers, restricted machines), runc must not try.
write_runtime() {
  cat >"$1" <<'RUNTIME'
#!/usr/bin/env bash
# Deletes the rlimits from the bundle or process file that the engine wrote, then runs runc.
set -euo pipefail
previous=''
for argument in "$@"; do
  case $previous in
    --bundle | -b) file=$argument/config.json filter='del(.process.rlimits, .process.oomScoreAdj)' ;;
    --process | -p) file=$argument filter='del(.rlimits, .oomScoreAdj)' ;;
    *) file='' ;;
  esac
  if [[ -n $file && -f $file ]]; then
    changed=$(jq --compact-output "$filter" "$file")
    printf '%s' "$changed" >"$file"
  fi
  previous=$argument
done
exec runc "$@"
RUNTIME
  chmod +x "$1"
}

# Removes containers of a run that was killed or has ended.
remove_containers() {
  podman pod rm --force --all >/dev/null 2>&1 || true
  podman rm --force --all >/dev/null 2>&1 || true
  podman volume prune --force >/dev/null 2>&1 || true
  buildah rm --all >/dev/null 2>&1 || true
}

# Includes the licences of packages, which the image contains too, but not their other documentation.
make_base() {
  if podman image exists "$BASE"; then return 0; fi
  say "making $BASE from Debian packages (about a minute)"
  mmdebstrap --quiet --variant=minbase --include=ca-certificates --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --dpkgopt='path-exclude=/usr/share/locale/*' bookworm "$STORE/base.tar"
  podman import --quiet --change 'CMD ["bash"]' "$STORE/base.tar" "$BASE" >/dev/null
  rm -f "$STORE/base.tar"
}
