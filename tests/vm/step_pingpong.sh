# shellcheck shell=bash
# A step of steps.txt: rxa and rxb exchange messages over a reliable connection with their link-local addresses, and
# compare every byte.
set -euo pipefail
# shellcheck source=tests/vm/cards.sh
source tests/vm/cards.sh

readonly PORT=18515
pingpong() {
  local card=$1
  shift
  ibv_rc_pingpong --ib-dev="$card" --gid-idx="$(gid_slot "$card" 'fe80:*')" --port="$PORT" --mtu=4096 --size=16384 \
    --iters=100 --chk "$@"
}
listening() { [[ -n $(ss --no-header --listening --tcp --numeric "sport = :$PORT") ]]; }

pingpong rxa &
wait_until 10 listening
# A number, because a machine may have no /etc/hosts.
pingpong rxb 127.0.0.1
wait $!
