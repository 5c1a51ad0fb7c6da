# shellcheck shell=bash
# Sourced by steps of steps.txt: two iWARP cards in software, swa and swb, on a veth pair of their own (wa 10.99.0.1,
# wb 10.99.0.2). Their connections are of TCP, so these must leave by the pair, too: see network.sh.

add_siw_cards() {
  local module name
  for module in crc32c_generic libcrc32c siw; do insmod "${MODULES:?}/siw/$module.ko"; done
  ip -batch - <<'BATCH'
link add wa address 02:00:00:00:01:0a type veth peer name wb address 02:00:00:00:01:0b
address add 10.99.0.1/24 dev wa
address add 10.99.0.2/24 dev wb
link set wa up
link set wb up
route add 10.99.0.2 dev wa table 203
route add 10.99.0.1 dev wb table 204
rule add pref 12 iif wa lookup local
rule add pref 13 iif wb lookup local
rule add pref 22 to 10.99.0.2 from 10.99.0.1 lookup 203
rule add pref 23 to 10.99.0.1 from 10.99.0.2 lookup 204
neighbour add 10.99.0.2 lladdr 02:00:00:00:01:0b dev wa nud permanent
neighbour add 10.99.0.1 lladdr 02:00:00:00:01:0a dev wb nud permanent
BATCH
  for name in wa wb; do
    printf '1\n' >"/proc/sys/net/ipv4/conf/$name/accept_local"
    printf '0\n' >"/proc/sys/net/ipv4/conf/$name/rp_filter"
  done
  rdma link add swa type siw netdev wa
  rdma link add swb type siw netdev wb
}

remove_siw_cards() {
  rdma link delete swa
  rdma link delete swb
  ip -batch - <<'BATCH'
rule del pref 12
rule del pref 13
rule del pref 22
rule del pref 23
link delete wa
BATCH
  rmmod siw libcrc32c crc32c_generic
}
