# shellcheck shell=bash
# Sourced by scripts/container-test, after image.sh: plays the manifests of deploy/kubernetes with podman, on a node
# whose root is a folder, with a stand-in of the kubelet.

SOURCE=$REPO/tests/container
OVERLAY=$REPO/deploy/kubernetes/overlays/soft
EXAMPLE=$REPO/deploy/kubernetes/examples/workload.yaml
KUBELET=$REPO/build/release/tests/kubernetes/rnicd_kubelet
CTL=$REPO/build/release/client/ctl/rnicctl
ADMIN=(--admin-socket-dir /run/rnicd-admin/sockets)
UNITS=4
BYTES=$((UNITS * 64 * 1024 * 1024))
RECLAIM_SECONDS=5
# The node's folder, and the stand-in's process.
root='' kubelet=''

# Without systemd podman warns that no health checks run; none are needed.
play() {
  podman play kube --network=none --quiet - 2> >(grep --invert-match --ignore-case systemd >&2) >/dev/null
}

pods_yaml() { /usr/bin/python3 -B "$SOURCE/podman_pods.py" "$@"; }
on_node() { podman exec rnicd-rnicd /usr/bin/rnicctl "$@" "${ADMIN[@]}"; }

make_node() {
  root=$(mktemp -d /tmp/rnicd-node.XXXXXX)
  # Users other than root access the sockets through this folder.
  chmod 0755 "$root"
  # Folders of a kubelet. DirectoryOrCreate creates the others.
  install -d -m 0750 "$root/var/lib/kubelet/device-plugins" "$root/var/lib/kubelet/pod-resources"
  kubectl kustomize "$OVERLAY" >"$root/rendered.yaml" 2>/dev/null
}

start_kubelet() {
  "$KUBELET" --folder="$root/var/lib/kubelet/device-plugins" \
    --pod_resources_socket="$root/var/lib/kubelet/pod-resources/kubelet.sock" --own_pod=node/node \
    --admit="rnicd-example/workload/workload:rnicd.io/memory-64mi=$UNITS" --result="$root/answer.json" \
    >"$root/kubelet.log" 2>&1 &
  kubelet=$!
}

run_probes() {
  local container probe
  local -a command
  while read -r container probe command; do
    read -r -a command <<<"${command[0]}"
    wait_for 60 "$probe of $container" podman exec "$container" "${command[@]}"
    say "$container: $probe: ${command[*]}"
  done < <(pods_yaml probes <"$root/rendered.yaml")
}

start_node() {
  pods_yaml node --root "$root" <"$root/rendered.yaml" | play
  run_probes
}

start_workload() { pods_yaml workload --root "$root" --answer "$root/answer.json" <"$EXAMPLE" | play; }
end_workload() { podman pod rm --force --ignore workload >/dev/null; }

# Bytes that all grants' tenants have pinned; empty while the daemon does not respond. Runs outside of the containers,
# because podman takes long to enter one.
pinned() {
  "$CTL" tenants --json --admin-socket-dir "$root/run/rnicd-admin/sockets" |
    jq '[.tenants[] | select(.tenant | startswith("grant/")) | .resources.pinned_bytes.used] | add // 0'
}
has_pinned() { [[ $(pinned) == "$1" ]]; }

# Checks the kernel's view of the workload's process.
check_workload_is_restricted() {
  local pid status=$root/status
  pid=$(podman inspect --format '{{.State.Pid}}' workload-workload)
  cp "/proc/$pid/status" "$status"
  expect "uid" "$(sed -n 's/^Uid:\t//p' "$status" | xargs)" "65532 65532 65532 65532"
  expect "capabilities" "$(sed -n 's/^Cap\(Prm\|Eff\|Bnd\):\t//p' "$status" | sort -u)" 0000000000000000
  expect "no_new_privs" "$(sed -n 's/^NoNewPrivs:\t//p' "$status")" 1
  expect "seccomp" "$(sed -n 's/^Seccomp:\t//p' "$status")" 2
  expect "network" "$(sed -n 's/^ *\([^ ]*\):.*/\1/p' "/proc/$pid/net/dev" | xargs)" lo
  expect "root file system" "$(awk '$5 == "/" { print substr($6, 1, 2) }' "/proc/$pid/mountinfo")" ro
  expect "directory of sockets" "$(awk '$5 == "/run/rnicd" { print substr($6, 1, 2) }' "/proc/$pid/mountinfo")" ro
  expect "limit of memory" "$(memory_limit "$pid")" $((64 * 1024 * 1024))
  say "the workload: uid 65532, no capability, no network, read-only, 64 MiB of memory"
}

# memory_of PID FILE_OF_V1 FILE_OF_V2: what the process's control group says, of version 1 or 2.
memory_of() {
  local group
  group=$(sed -n 's/^[0-9]*:memory://p' "/proc/$1/cgroup")
  if [[ -n $group ]]; then
    cat "/sys/fs/cgroup/memory$group/$2"
  else
    cat "/sys/fs/cgroup$(sed -n 's/^0:://p' "/proc/$1/cgroup")/$3"
  fi
}

memory_limit() { memory_of "$1" memory.limit_in_bytes memory.max; }
memory_usage() { memory_of "$1" memory.usage_in_bytes memory.current; }

# While the workload holds what it allocated: it is charged to the daemon's group, which has room for all of it.
check_who_pays() {
  local daemon workload limit
  daemon=$(podman inspect --format '{{.State.Pid}}' rnicd-rnicd)
  workload=$(podman inspect --format '{{.State.Pid}}' workload-workload)
  limit=$(memory_limit "$daemon")
  expect "limit of the daemon's memory" "$limit" $((5888 * 1024 * 1024))
  local of_daemon of_workload
  of_daemon=$(memory_usage "$daemon") of_workload=$(memory_usage "$workload")
  ((of_daemon >= BYTES)) || fail "the daemon's group is charged for $of_daemon bytes, the workload has $BYTES"
  ((of_workload < BYTES)) || fail "the workload's group is charged for $of_workload bytes"
  say "charged: $((of_daemon >> 20)) MiB to the daemon, $((of_workload >> 20)) MiB to the workload, which has" \
    "$((BYTES >> 20)) MiB registered"
}

check_registered() {
  wait_for 60 "registration of the workload" has_pinned "$BYTES"
  podman logs workload-workload | sed 's/^/   /'
  on_node tenants
}

check_reclaimed() {
  local began
  podman kill workload-workload >/dev/null
  began=${EPOCHREALTIME/./}
  wait_for "$RECLAIM_SECONDS" "memory of the killed workload" has_pinned 0
  say "killed; its $((BYTES >> 20)) MiB were back $(((${EPOCHREALTIME/./} - began) / 1000)) ms after podman said so"
  end_workload
}

# The policy of the manifests admits grants only.
check_stranger_is_refused() {
  local told
  if told=$(podman run --rm --network=none --read-only --cap-drop=all --volume "$root/run/rnicd:/run/rnicd:ro" \
    --entrypoint /usr/bin/rnicctl "$IMAGE" register --size=4KiB 2>&1); then
    fail "a container without a grant registered memory"
  fi
  grep --quiet TENANT_REFUSED <<<"$told" || fail "a container without a grant failed otherwise: $told"
  say "a container without a grant is turned away"
}

# The device plugin renews the grants of running pods in a new daemon, which opens their doors in the directories that
# they have mounted.
check_restart_of_the_daemon() {
  start_workload
  wait_for 60 "registration of the workload" has_pinned "$BYTES"
  podman restart --time 10 rnicd-rnicd >/dev/null 2>&1
  run_probes
  wait_for 60 "registration at the new daemon" has_pinned "$BYTES"
  end_workload
  say "a new daemon knows the grant: the running workload came back through the door that it has mounted"
}

# Both exit on SIGTERM, and so does the stand-in.
stop_node() {
  local container
  for container in rnicd-device-plugin-device-plugin rnicd-rnicd; do
    podman stop --time 15 "$container" >/dev/null 2>&1
    expect "exit status of $container" "$(podman inspect --format '{{.State.ExitCode}}' "$container")" 0
  done
  expect "sockets of the device plugin that are left" \
    "$(find "$root/var/lib/kubelet/device-plugins" -name 'rnicd-*' | wc -l)" 0
  kill "$kubelet"
  wait "$kubelet" || true
  kubelet=''
  say "device plugin and daemon ended with 0"
}

print_logs() {
  local container
  for container in rnicd-rnicd rnicd-device-plugin-device-plugin workload-workload; do
    if podman container exists "$container"; then
      say "--- $container"
      podman logs --tail 40 "$container" 2>&1
    fi
  done
  if [[ -f $root/kubelet.log ]]; then
    say "--- kubelet"
    tail -n 40 "$root/kubelet.log"
  fi
}

remove_node() {
  if [[ -n $kubelet ]]; then kill "$kubelet" 2>/dev/null || true; fi
  if [[ -n ${root:-} ]]; then rm -rf "$root"; fi
}
