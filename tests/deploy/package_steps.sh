# shellcheck shell=bash
# Runs as root inside the Debian root of scripts/package-test; /try contains the packages. No systemd runs there: a loop
# restarts the daemon, and calls of systemctl are recorded.
set -euo pipefail
exec </dev/null

readonly SAID=/try/systemctl.said PID=/try/rnicd.pid
# The kernel whose headers are in the root.
KERNEL=
heading() { printf '\n== %s\n' "$*"; }
fail() {
  printf 'package_steps: %s\n' "$*" >&2
  [[ ! -s /try/rnicd.log ]] || tail -n 20 /try/rnicd.log >&2
  exit 1
}
# The output of apt and dpkg is shown only when they fail.
apt() {
  apt-get -qq --yes -o Dpkg::Use-Pty=0 -o APT::Sandbox::User=root -o Dpkg::Options::=--force-unsafe-io \
    -o DPkg::Path=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --no-install-recommends "$@" >/try/apt.log 2>&1 || {
    tail -n 20 /try/apt.log >&2
    fail "apt-get $1"
  }
}
expect() { [[ $2 == "$3" ]] || fail "$1: expected '$3', found '$2'"; }

# wait_for WHAT COMMAND...: waits until the command succeeds, at most 20 seconds.
wait_for() {
  local what=$1 tries=0
  shift
  until "$@" >/dev/null 2>&1; do
    if ((++tries > 200)); then fail "$what does not happen"; fi
    sleep 0.1
  done
}

# All files except the databases of dpkg, apt and systemd, and the key that DKMS makes for itself.
list_files() {
  find / -xdev \( -path /try -o -path /proc -o -path /tmp -o -path /var/lib/dpkg -o -path /var/lib/apt -o \
    -path /var/cache -o -path /var/log/apt -o -path '/var/lib/dkms/mok.*' \) -prune -o -print
  find /run -mindepth 1 -path /run/systemd -prune -o -print
}
snapshot() { list_files | sort >"/try/$1"; }

# Acts like the unit, as far as possible without systemd: the user, no privilege, and a restart after each failure
# except invalid flags.
supervise() {
  local status
  while true; do
    status=0
    setpriv --reuid=rnicd --regid=rnicd --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all -- \
      rnicd --flagfile=/etc/rnicd/rnicd.flags &
    echo $! >"$PID"
    wait $! || status=$?
    if ((status == 0 || status == 2)); then return; fi
    echo "supervisor: it ended with $status" >&2
  done
}
start() {
  # LogsDirectory= of the unit.
  install -d -o rnicd -g rnicd -m 0750 /var/log/rnicd
  supervise 2>>/try/rnicd.log &
  supervisor=$!
  wait_for "rnicd answers" rnicctl status
}
stop() {
  kill -TERM "$(cat "$PID")"
  wait "$supervisor" || fail "the supervisor ended with $?"
}
# The supervisor's child, not this shell's.
is_another() { [[ $(cat "$PID") != "$1" ]] && rnicctl status; }
register() {
  setpriv --reuid=65534 --regid=65534 --clear-groups rnicctl register --size "$1" >/try/registered
  echo "another user registered $1"
}

install_dependencies() {
  heading "what they depend on, from Debian"
  apt update
  local package depends wanted=()
  for package in /try/*.deb; do
    # Our own library is not in Debian.
    depends=$(dpkg-deb --field "$package" Depends | sed 's/librnicd0 ([^)]*), //')
    if [[ -n $depends ]]; then wanted+=("$depends"); fi
  done
  # rnicd-fr-dkms recommends the headers, and openssl for the signature.
  apt satisfy "${wanted[@]}" linux-headers-amd64 openssl libfabric-bin openmpi-bin python3-mpi4py
  KERNEL=$(basename /lib/modules/*)
  depmod "$KERNEL" 2>/try/depmod.log
  fake_systemd
  snapshot before
}

# Makes the maintainer scripts detect a running systemd.
fake_systemd() {
  mkdir -p /run/systemd/system
  cat >/usr/local/bin/systemctl <<FAKE
#!/bin/sh
echo "\$*" >>$SAID
[ "\$1" != is-active ] || echo active
FAKE
  chmod 0755 /usr/local/bin/systemctl
}

install_packages() {
  heading "install"
  apt install /try/*.deb
  dpkg-query --show 'rnicd*' 'librnicd*' 'python3-rnicd'
  grep -qx -- "--system daemon-reload" "$SAID" || fail "systemd was not told"
  ! grep -E '^(--\S+ )*(start|restart|enable)' "$SAID" || fail "the installation started something"
  [[ ! -e /etc/systemd/system/multi-user.target.wants/rnicd@a.service ]] || fail "the installation enabled the service"
  expect "the user" "$(getent passwd rnicd | cut -d: -f6,7)" /nonexistent:/usr/sbin/nologin
  expect "/run/rnicd" "$(stat -c '%U:%G %a' /run/rnicd)" "rnicd:rnicd 755"
  expect "/run/rnicd-admin" "$(stat -c '%U:%G %a' /run/rnicd-admin)" "rnicd:rnicd 700"
  expect "/run/rnicd-doors" "$(stat -c '%U:%G %a' /run/rnicd-doors)" "rnicd:rnicd 700"
  expect "/run/rnicd-handover" "$(stat -c '%U:%G %a' /run/rnicd-handover)" "rnicd:rnicd 700"
  expect "systemd-analyze" "$(systemd-analyze verify --man=no rnicd@a.service 2>&1)" ''
  find_symbols /usr/bin/rnicd* /usr/bin/rnicctl /usr/lib/*/librnicd.so.0 /usr/lib/*/librnicd-heap.so \
    /usr/lib/*/libfabric/librnicd-fi.so
  check_module
  configure_without_proc
}

# As in an image that is made by chroot: without /proc, and without systemd. All mounts are private already (run_steps).
configure_without_proc() {
  # shellcheck disable=SC2016  # for the inner shell
  unshare --mount --propagation unchanged -- sh -c '
    umount --no-mtab --lazy /proc && rm -rf /run/rnicd /run/systemd && sh /var/lib/dpkg/info/rnicd.postinst configure' \
    >/try/postinst.log 2>&1 || fail "the package cannot be configured without /proc: $(cat /try/postinst.log)"
  mkdir -p /run/systemd/system
  systemd-tmpfiles --create rnicd.conf
  echo "configured without /proc"
}

# DKMS builds for every kernel of the root, because the one that runs is not among them. Since Debian 13 it compresses.
check_module() {
  local built
  built=$(compgen -G "/lib/modules/$KERNEL/updates/dkms/rnicd_fr.ko*") || fail "no module"
  expect "dkms" "$(dkms status -m rnicd-fr -k "$KERNEL" | sed 's/.*: //')" installed
  expect "the module's kernel" "$(modinfo --field vermagic "$built" | cut -d ' ' -f 1)" "$KERNEL"
  expect "the module's licence" "$(modinfo --field license "$built")" "Dual BSD/GPL"
  [[ $(modinfo --field signer "$built") == "DKMS module signing key" ]] || fail "the module is not signed"
  grep -q 'KERNEL=="rnicd_fr", OWNER="rnicd", MODE="0600"' /usr/lib/udev/rules.d/60-rnicd-fr.rules || fail "no udev rule"
  [[ $(systemd-analyze cat-config systemd/system/rnicd@.service.d/rnicd-fr.conf) == *"DeviceAllow=/dev/rnicd_fr rw"* ]] ||
    fail "systemd does not find the drop-in"
  echo "DKMS built rnicd_fr.ko for $KERNEL"
}

# The build id begins 16 bytes into its note and is 20 bytes long.
find_symbols() {
  local program id
  for program in "$@"; do
    id=$(LC_ALL=C grep -aobP '\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0' "$program" | sed -n 1p | cut -d: -f1)
    id=$(od -An -tx1 -j $((id + 16)) -N 20 "$program" | tr -d ' \n')
    [[ -f /usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug ]] || fail "no debug symbols for $program"
  done
}

# ping_pong OPTION...: two processes of fi_pingpong, which compare what they receive. The port is 4711.
ping_pong() {
  local command=(setpriv --reuid=65534 --regid=65534 --clear-groups timeout 60 fi_pingpong -c "$@") server
  "${command[@]}" -B 4711 >/try/server 2>&1 &
  server=$!
  wait_for "the server of fi_pingpong" grep -qE ':1267 [0-9A-F]+:0000 0A' /proc/net/tcp /proc/net/tcp6
  "${command[@]}" -P 4711 127.0.0.1 >/try/client 2>&1 || fail "fi_pingpong $*: $(cat /try/client)"
  wait "$server" || fail "the server of fi_pingpong $*: $(cat /try/server)"
  tail -n 1 /try/client
}

# libfabric finds the provider by itself, and its RxM is over it; Open MPI needs to be told. There are more ranks
# than processors.
try_libfabric() {
  local as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups) before
  "${as_user[@]}" fi_info >/try/fi_info
  expect "the providers of libfabric" "$(grep -oE '^provider: rnicd(;ofi_rxm)?$' /try/fi_info | sort -u)" \
    $'provider: rnicd\nprovider: rnicd;ofi_rxm'
  "${as_user[@]}" env FI_LOG_LEVEL=warn LD_PRELOAD=/try/other_libfabric.so fi_info -p rnicd >/try/fi_info 2>&1 || true
  expect "another libfabric" "$(grep -o 'built for libfabric .*' /try/fi_info)" \
    "built for libfabric $(dpkg-query --show --showformat='${Version}' libfabric1 | cut -d. -f1,2), not for 99.0"
  ! grep -q '^provider: rnicd' /try/fi_info || fail "the provider serves another libfabric"
  echo "libfabric lists rnicd; the provider refuses another libfabric"
  ping_pong -p rnicd -e msg
  ping_pong -p 'rnicd;ofi_rxm' -e rdm -m tagged
  before=$(grep -c 'session opened .*uid=65534' /try/rnicd.log)
  install -d -o 65534 -m 0700 /try/job
  expect "a sum of Open MPI" "$("${as_user[@]}" env HOME=/try/job TMPDIR=/try/job FI_RNICD_INTERFACE=lo \
    OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_mtl_ofi_provider_include='rnicd;ofi_rxm' \
    mpirun --oversubscribe --bind-to none -np 3 python3 -c '
from mpi4py import MPI
total = MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank + 1)
if MPI.COMM_WORLD.rank == 0: print(total)' 2>/try/mpi.log)" 6
  expect "sessions of ranks" "$(grep -c 'session opened .*uid=65534' /try/rnicd.log)" $((before + 3))
  echo "Open MPI sums through rnicd: $(mpirun --version | head -n 1)"
}

run_it() {
  heading "run"
  # An operator's configuration: a provider that needs no card, a policy.
  sed -i 's/=verbs$/=soft/; s/^# --policy_file/--policy_file/; s/:9747$/:0/' /etc/rnicd/rnicd.flags
  install -m 0644 /usr/share/rnicd/policy.example.textproto /etc/rnicd/policy.textproto
  start
  rnicctl status >/try/status
  head -n 4 /try/status
  register 8MiB
  setpriv --reuid=65534 --regid=65534 --clear-groups /try/hello || fail "a program in C does not work"
  python3 -m rnicd >/try/python || fail "the Python client found something missing: $(cat /try/python)"
  tail -n 1 /try/python
  try_libfabric
  expect "the audit log" "$(stat -c '%U %a' /var/log/rnicd/audit.jsonl)" "rnicd 600"

  heading "kill -9"
  local old
  old=$(cat "$PID")
  kill -KILL "$old"
  wait_for "another daemon" is_another "$old"
  register 8MiB
}

upgrade() {
  heading "upgrade"
  local old
  old=$(cat "$PID")
  : >"$SAID"
  apt install /try/next/*.deb
  [[ $(dpkg-query --show --showformat='${Version}' rnicd) == *+next ]] || fail "this is not the next version"
  grep -q "the old version still runs" /try/apt.log || fail "the operator was not told"
  ! grep -E '(stop|start)' "$SAID" || fail "an upgrade stopped or started something"
  expect "the daemon" "$(cat "$PID")" "$old"
  register 4KiB
  grep -qx -- --provider=soft /etc/rnicd/rnicd.flags || fail "the upgrade lost the operator's flags"
  stop
  start
  register 4KiB
}

remove_and_purge() {
  heading "remove"
  # Link as created by `systemctl enable`; a purge must remove it.
  mkdir -p /etc/systemd/system/multi-user.target.wants
  ln -s /lib/systemd/system/rnicd@.service /etc/systemd/system/multi-user.target.wants/rnicd@a.service
  stop
  : >"$SAID"
  apt remove rnicd
  grep -qE '^(--\S+ )*stop rnicd@\*.service' "$SAID" || fail "the service was not stopped"
  [[ ! -e /usr/bin/rnicd ]] || fail "the program is still there"
  [[ -s /var/log/rnicd/audit.jsonl && -s /etc/rnicd/rnicd.flags ]] || fail "remove took what only a purge takes"

  heading "purge"
  # The operator's own file; docs/OPERATING.md tells the operator to delete it.
  rm /etc/rnicd/policy.textproto
  local package names=()
  for package in /try/*.deb; do names+=("$(dpkg-deb --field "$package" Package)"); done
  apt purge "${names[@]}"
  snapshot after
  diff /try/before /try/after >/try/left || fail "left behind, or taken too much: $(cat /try/left)"
  getent passwd rnicd >/dev/null || fail "the user is gone, though files may belong to its number"
  echo "nothing is left but the user"
}

install_dependencies
install_packages
run_it
upgrade
remove_and_purge
