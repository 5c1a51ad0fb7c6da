# shellcheck shell=bash
# Runs in the guest, for scripts/vm-test: the steps of steps.txt that STEPS names, or all. Each must succeed within its
# time limit, and leave behind no process, no RDMA object and no kernel error. Writes a log for each step and one line
# "name seconds result" into $RESULTS/vm_steps.txt, and prints the same with the errors.
#
# usage: STEPS='name...' BUILD=build/release MODULES=build/release/kernel RESULTS=build/release/results \
#          bash tests/vm/run_steps.sh
set -uo pipefail
# shellcheck source=tests/vm/cards.sh
source tests/vm/cards.sh

readonly GROUP=/sys/fs/cgroup/step
readonly KERNEL_ERRORS='WARNING:|BUG:|Oops|general protection fault|INFO: task .* blocked'
export BUILD MODULES RESULTS
KINDS=(mr qp cq pd cm_id ctx srq)
# Linux 5.10 does not list the last two.
if [[ $(uname -r) == 5.10.* ]]; then KINDS=("${KINDS[@]:0:5}"); fi

# Objects that the step's processes hold on the cards. The kernel's own objects have a name in brackets; an object with
# neither name nor pid belongs to a process that received it from another one.
held_objects() {
  {
    printf 'resource show %s\n' "${KINDS[@]}" | rdma -b - || printf 'rdma resource show failed\n'
  } | grep -v ' comm \['
}
holds_nothing() { [[ -z $(held_objects) ]]; }

no_process_left() { ! grep -q 'populated 1' "$GROUP/cgroup.events"; }
processes_left() {
  local pid
  while read -r pid; do
    printf 'process %s: %s\n' "$pid" "$(tr '\0' ' ' <"/proc/$pid/cmdline")"
  done <"$GROUP/cgroup.procs"
}

# Kernel errors since its log buffer was cleared.
kernel_errors() { dmesg --notime | grep -E -A 12 "$KERNEL_ERRORS"; }

# in_group COMMAND...: runs the command in its own control group, from which no child escapes.
in_group() {
  mkdir -p "$GROUP"
  (
    printf '%s\n' "$BASHPID" >"$GROUP/cgroup.procs"
    exec "$@"
  ) </dev/null
}

# leftovers: prints what the step left behind and must not; nothing if there is none.
leftovers() {
  if ! wait_until 1 no_process_left; then
    printf 'left processes behind:\n'
    processes_left
    echo 1 >"$GROUP/cgroup.kill"
    wait_until 5 no_process_left || printf 'and they cannot be killed\n'
  fi
  if ! wait_until 1 holds_nothing; then
    printf 'left RDMA objects behind:\n'
    held_objects
  fi
  local errors
  if errors=$(kernel_errors); then printf 'the kernel reported errors:\n%s\n' "$errors"; fi
}

# heartbeat NAME LOG: prints a step's progress every 30 seconds, so that a long one does not look hung.
heartbeat() {
  local began=$SECONDS
  while sleep 30; do
    printf '   ... %s, %d s: %s\n' "$1" $((SECONDS - began)) "$(tail -n 1 "$2" | cut -c 1-120)"
  done
}

# run_step NAME LIMIT COMMAND
run_step() {
  local name=$1 limit=$2 command=$3 log=$RESULTS/vm_$1.log began=$SECONDS status=0 left
  # The kernel log on the host keeps everything; this line marks the beginning of the step.
  dmesg --clear
  printf 'rnicd-vm: step %s begins\n' "$name" >/dev/kmsg
  : >"$log"
  heartbeat "$name" "$log" &
  local heart=$!
  in_group timeout --kill-after=5 "$limit" bash -c "$command" >"$log" 2>&1 || status=$?
  kill "$heart" && wait "$heart" 2>/dev/null
  left=$(leftovers)
  printf '%s' "${left:+$left$'\n'}" >>"$log"
  local result=ok
  if ((status == 124 || status == 137)); then
    result=TIMEOUT
  elif ((status != 0)) || [[ -n $left ]]; then
    result=FAILED
  fi
  printf '%s %d %s\n' "$name" $((SECONDS - began)) "$result" >>"$RESULTS/vm_steps.txt"
  printf '%-32s %6d s  %s\n' "$name" $((SECONDS - began)) "$result"
  [[ $result != ok ]] || return 0
  printf '   exit status %d; the end of %s:\n' "$status" "$log"
  tail -n 40 "$log" | sed 's/^/   /'
}

rm -f "$RESULTS/vm_steps.txt"
while IFS='|' read -r name limit command; do
  name=${name//[[:space:]]/}
  if [[ -z $name || $name == '#'* ]]; then continue; fi
  if [[ -n ${STEPS:-} && " $STEPS " != *" $name "* ]]; then continue; fi
  run_step "$name" "$((limit))" "$command"
done <tests/vm/steps.txt
