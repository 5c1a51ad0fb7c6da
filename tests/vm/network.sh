# shellcheck shell=bash
# Sourced by inside.sh after cards.sh: two software RDMA cards, rxa and rxb, connected by the veth pair va/vb.

# The netdev's MTU decides the RDMA MTU: 4200 leaves room for 4096 and the headers of RoCE v2.
readonly NETDEV_MTU=4200

set_sysctl() { printf '%s\n' "$2" >"/proc/sys/${1//.//}"; }

# Without this route the kernel uses the loopback for both addresses, and a card never sees its peer. Only connections
# over IPv4 addresses need it.
route_between_own_addresses() {
  local name
  for name in va vb; do
    set_sysctl "net.ipv4.conf.$name.accept_local" 1
    set_sysctl "net.ipv4.conf.$name.rp_filter" 0
  done
  set_sysctl net.ipv4.conf.all.rp_filter 0
  ip -batch - <<'BATCH'
route add 10.98.0.2 dev va table 201
route add 10.98.0.1 dev vb table 202
rule add pref 10 iif va lookup local
rule add pref 11 iif vb lookup local
rule add pref 20 to 10.98.0.2 oif va lookup 201
rule add pref 21 to 10.98.0.1 oif vb lookup 202
rule add pref 100 lookup local
rule del pref 0
BATCH
}

# The kernel gives a connection one second to resolve the peer's MAC address, and sends one request in that second. An
# emulated machine that stalls for a moment is too slow for that.
know_each_other() {
  ip -batch - <<'BATCH'
neighbour add 10.98.0.2 lladdr 02:00:00:00:00:0b dev va nud permanent
neighbour add 10.98.0.1 lladdr 02:00:00:00:00:0a dev vb nud permanent
BATCH
}

add_cards() {
  # No other machine can have these addresses, so duplicate detection would only cost a second.
  set_sysctl net.ipv6.conf.default.accept_dad 0
  ip -batch - <<BATCH
link delete dummy0
link set lo up
link add va mtu $NETDEV_MTU address 02:00:00:00:00:0a type veth peer name vb mtu $NETDEV_MTU address 02:00:00:00:00:0b
address add 10.98.0.1/24 dev va
address add 10.98.0.2/24 dev vb
link set va up
link set vb up
BATCH
  route_between_own_addresses
  know_each_other
  rdma -b - <<'BATCH'
link add rxa type rxe netdev va
link add rxb type rxe netdev vb
BATCH
}

wait_for_cards() {
  wait_until 10 card_ready rxa && wait_until 10 card_ready rxb && return
  printf 'guest: rxa and rxb did not come up in 10 seconds\n'
  rdma link
  return 1
}
