# shellcheck shell=bash
# A step of steps.txt: libibverbs sees both cards, their ports are up, and a packet carries a whole page.
set -euo pipefail

for card in rxa rxb; do
  info=$(ibv_devinfo -d "$card")
  printf '%s\n' "$info"
  grep -q 'state:.*PORT_ACTIVE' <<<"$info"
  grep -q 'active_mtu:.*4096' <<<"$info"
done
