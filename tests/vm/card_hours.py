"""Plays hours of a daemon on a kernel's cards, quiet and with a fault each, and the alerts that must fire in them.

usage, in the guest: BUILD=build/release RESULTS=build/release/results card_hours.py

Writes $RESULTS/vm_hours.json. scripts/vm-test then has promtool evaluate it on the host (tests/observability/hours.py):
in the guest that takes 20 seconds an hour. So would 61 readings: each state is read until it stands still, and held.
The daemon's probes go on meanwhile, but no rule reads their counters.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests/observability"))

from hours import BEGIN, MINUTES, Hour, play_all
from processes import Process, ProcessError

BUILD = REPO / os.environ["BUILD"]
RNICD, RNICCTL, CLIENT = (BUILD / name for name in (
    "daemon/app/rnicd", "client/ctl/rnicctl", "tests/support/test_client/test_client"))
VERBS = ("--provider=verbs", "--verbs_devices=rxa,rxb,rxc", "--health_interval_ms=100")
# Shorter than an alert waits.
A_MOMENT = 3
BYTES = 64 << 10


def tool(command):
    subprocess.run(command.split(), check=True)


class Card:
    """rxc on a link of its own, from vc to vd, so that rxa and rxb stay as the other steps need them."""

    def add(self):
        tool("ip link add vc type veth peer name vd")
        tool("ip link set vc up")
        tool("ip link set vd up")
        tool("rdma link add rxc type rxe netdev vc")

    def remove(self):
        """The kernel waits until no daemon has the card open."""
        tool("ip link delete vc")


CARD = Card()
HEALTH_OF_RXC = 'rnicd_adapter_healthy{adapter="rxc"}'


class Client(Process):
    """A client with a session, which answers each line with one."""

    def __init__(self, hour, card):
        environment = {**os.environ, "RNICD_TEST_PROVIDER": "verbs", "RNICD_TEST_ADAPTER": card}
        self.child = subprocess.Popen([CLIENT, hour.folder / "s"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      env=environment, text=True)
        Process.started.append(self)
        self.ask("open")

    def ask(self, line):
        """The value of the answer's only field."""
        print(line, file=self.child.stdin, flush=True)
        state, _, values = self.child.stdout.readline().strip().partition(" ")
        if state != "ok":
            raise ProcessError(f"{line}: {state} {values}")
        return values.partition("=")[2]


def port_of_rxc(active):
    return f'rnicd_port_state{{adapter="rxc",state="active"}} {active}'


# --- the hours: each leaves the readings of a whole hour, and answers the alerts that must fire ---


def quiet(hour):
    hour.hold_until(MINUTES)
    return set()


def packets_that_are_lost(hour):
    near, far = Client(hour, "rxa"), Client(hour, "rxb")
    address = near.ask("qp")
    near.ask(f"peer {far.ask('qp')}")
    far.ask(f"peer {address}")
    hour.hold_until(BEGIN)
    tool("tc qdisc add dev vb root netem loss 100%")
    try:
        hour.wait_for('rnicd_queue_pairs{adapter="rxa",state="error"} 1')
        hour.wait_for('rnicd_queue_pairs{adapter="rxb",state="error"} 1')
        hour.hold_until(MINUTES - BEGIN)
    finally:
        tool("tc qdisc del dev vb root")
    near.kill()
    far.kill()
    hour.wait_for("rnicd_sessions 0")
    hour.hold_until(MINUTES)
    return set()


def a_link_that_flaps(hour):
    hour.hold_until(BEGIN)
    tool("ip link set vd down")
    hour.wait_for(port_of_rxc(0))
    hour.hold_until(BEGIN + A_MOMENT)
    tool("ip link set vd up")
    hour.wait_for(port_of_rxc(1))
    hour.hold_until(MINUTES)
    return set()


def a_link_that_is_down(hour):
    hour.hold_until(BEGIN)
    tool("ip link set vd down")
    hour.wait_for(port_of_rxc(0))
    hour.hold_until(MINUTES)
    tool("ip link set vd up")
    hour.wait_for(port_of_rxc(1))
    return {"AdapterPortDown"}


def a_card_that_comes_back(hour):
    hour.hold_until(BEGIN)
    CARD.remove()
    hour.wait_without(HEALTH_OF_RXC)
    hour.hold_until(BEGIN + A_MOMENT)
    CARD.add()
    hour.wait_for(f"{HEALTH_OF_RXC} 1")
    hour.hold_until(MINUTES)
    return set()


def a_card_that_is_removed(hour):
    client = Client(hour, "rxc")
    client.ask(f"register {client.ask(f'alloc {BYTES}')} {BYTES} 0")
    hour.hold_until(BEGIN)
    CARD.remove()
    hour.wait_without(HEALTH_OF_RXC)
    hour.hold_until(2 * BEGIN)
    client.kill()
    hour.wait_for("rnicd_sessions 0")
    hour.hold_until(MINUTES)
    return {"AdapterUnhealthy"}


def a_daemon_that_starts_without_the_card(hour):
    CARD.add()
    hour.wait_for(f"{HEALTH_OF_RXC} 1")
    hour.hold_until(A_MOMENT)
    hour.daemon.end()
    CARD.remove()
    hour.start()
    hour.hold_until(MINUTES)
    return {"AdapterUnhealthy"}


# In this order: each takes the daemon and the card as the one before has left them.
HOURS = (quiet, packets_that_are_lost, a_link_that_flaps, a_link_that_is_down, a_card_that_comes_back,
         a_card_that_is_removed, a_daemon_that_starts_without_the_card)


def main():
    hour = None

    def begin(folder):
        nonlocal hour
        if hour is None:
            hour = Hour(folder, RNICD, RNICCTL, provider=VERBS)
        hour.begin()
        return hour

    CARD.add()
    try:
        hours, failed = play_all(HOURS, begin)
    finally:
        if Path("/sys/class/net/vc").exists():
            CARD.remove()
    (REPO / os.environ["RESULTS"] / "vm_hours.json").write_text(json.dumps(hours))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
