# shellcheck shell=bash
# Sourced by scripts/demo --mpi, after lib_story.sh: its steps. A container is made by bubblewrap, as any user can.
# shellcheck disable=SC2034,SC2154  # variables of lib_story.sh
readonly SOURCE=$REPO/tests/libfabric/containers RANKS=4
CLIENT_MEMLOCK=0
# What Open MPI is told: to take the provider, and to run more ranks than there are processors.
readonly MPI_ENVIRONMENT=(
  OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi "OMPI_MCA_mtl_ofi_provider_include=rnicd;ofi_rxm" "OMPI_MCA_btl=^openib,ofi"
  OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
  OMPI_MCA_plm=isolated "FI_PROVIDER=rnicd,ofi_rxm" IPATH_NO_BACKTRACE=1
)

prepare_job() {
  install_tools openmpi-bin python3-mpi4py bubblewrap
  build release rnicd_shared rnicd_fi
  install -m 0755 build/release/client/libfabric/librnicd-fi.so build/release/client/c/shared/librnicd.so.0 \
    "$SOURCE/container.py" "$SOURCE/rank.py" "$PROGRAMS/"
  install -d -m 0755 "$state/job" "$state/peers"
  if [[ $EUID -eq 0 ]]; then chown "$CLIENT_UID:$CLIENT_UID" "$state/job" "$state/peers"; fi
  (as_client bwrap --unshare-all --ro-bind / / true) || fail "this kernel lets no user make a container"
}

ten_rounds_or_end() { has_ended "$client1" || grep -q '^10 rounds' "$state/job.log"; }

start_job() {
  next "$RANKS ranks of Open MPI ($CLIENT_WHO), each in a container of its own"
  show_command mpirun -np "$RANKS" container.py rank.py
  (cd "$state/job" && as_client env --ignore-environment PATH=/usr/bin:/bin HOME="$state/job" TMPDIR="$state/job" \
    FI_PROVIDER_PATH="$PROGRAMS" LD_LIBRARY_PATH="$PROGRAMS" "${MPI_ENVIRONMENT[@]}" \
    mpirun -np "$RANKS" "$PROGRAMS/container.py" "$state" "$PROGRAMS/rank.py") >"$state/job.log" 2>&1 &
  client1=$!
  disown "$client1"
  { wait_until 120 ten_rounds_or_end && ! has_ended "$client1"; } || {
    show <"$state/job.log"
    fail "the job does not run"
  }
  grep -E '^(rank|10 rounds)' "$state/job.log" | show
}

operator_sees_ranks() {
  next "Whose pages they are"
  sessions_are "$RANKS" || fail "not every rank has a session"
  run rnicctl top --count 1
}

# "PID PAGES" of a rank.
find_rank() {
  rnicctl sessions --json | python3 -c 'import json, sys
last = json.load(sys.stdin)["sessions"][-1]
print(last["pid"], last["resources"]["pinned_bytes"]["used"] // 4096)'
}

kill_rank() {
  next "kill -9 for one rank"
  local pid pages took
  read -r pid pages < <(find_rank)
  took=$(kill_and_measure "$pid" $(($(status_field registered_pages) - pages))) ||
    fail "the rank is dead, but its memory was not taken back"
  say "   the $pages pages of process $pid are back, ${GREEN}$took ms$PLAIN after the kill"
  if ((${took%.*} >= RECLAIM_MS)); then fail "it took more than $RECLAIM_MS ms"; fi
  wait_until 60 has_ended "$client1" || fail "the job does not end"
  client1=''
  say "   Open MPI has ended the other ranks, as it does:"
  tail -n 6 "$state/job.log" | show
  wait_until 5 sessions_are 0 || fail "the session of a rank is still there"
  registered_pages_are 0 || fail "pages are still registered"
  run rnicctl top --count 1
}

tell_mpi_story() {
  prepare_job
  begin_daemon
  start_job
  operator_sees_ranks
  kill_rank
  end_daemon
}
