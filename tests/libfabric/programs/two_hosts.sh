#!/bin/sh
# Runs a program with mpirun, one rank on each of two hosts: network namespaces that a veth pair joins, and that end
# with it. They belong to a user namespace, so that any user can make them.
# usage: two_hosts.sh PROGRAM ARGUMENT...
set -eu

begin() { exec unshare --user --map-current-user --keep-caps --net sh "$0" --there "$@"; }

# This process stands for the other host until the job has ended.
there() {
  ip link set lo up
  unshare --net sh "$0" --here $$ "$@"
}

here() {
  other=$1
  shift
  ip link set lo up
  ip link add eth0 type veth peer name eth0 netns "$other"
  for host in $$ "$other"; do
    at "$host" ip address add "192.0.2.$((1 + (host == other)))/24" dev eth0
    at "$host" ip link set eth0 up
  done
  exec mpirun --host "pid-$$,pid-$other" --leave-session-attached --mca plm rsh \
    --mca plm_rsh_agent "sh $0 --ssh" "$@"
}

at() {
  process=$1
  shift
  nsenter --net="/proc/$process/ns/net" "$@"
}

# In place of ssh: a host has the name of a process in it. Its part of Open MPI has files of its own.
ssh() {
  process=${1#pid-}
  shift
  TMPDIR=$(mktemp --directory --tmpdir host.XXXXXX)
  export TMPDIR
  exec nsenter --net="/proc/$process/ns/net" sh -c "$*"
}

case $1 in
  --there) shift && there "$@" ;;
  --here) shift && here "$@" ;;
  --ssh) shift && ssh "$@" ;;
  *) begin "$@" ;;
esac
