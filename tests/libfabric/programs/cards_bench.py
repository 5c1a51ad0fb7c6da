"""Measures transfers between the two cards of the guest of tests/vm, through the C library and by perftest, and prints
a table. Asserts nothing but that all runs.

usage: cards_bench.py --rnicd PROGRAM --rnicctl PROGRAM --library FILE...
"""

import subprocess
from collections import defaultdict

import cards
from bench import words
from polling import wait_for
from quick_test import free_port, listens

# rdma_rxe takes no more at once than the last.
SIZES = (8, 1024, 65536, 1 << 20, 8 << 20)
_ROUNDS = 3
# Bytes that are transferred in a round of each size, and the limits of the number of messages.
_ROUND_BYTES, _MESSAGES_MIN, _MESSAGES_MAX = 128 << 20, 16, 500
# The slot of the address of RoCE v2 that rnicd takes, too.
_GID_SLOT = "source tests/vm/cards.sh && gid_slot {} '*:ffff:0a62:*'"


def messages_of(size):
    return max(_MESSAGES_MIN, min(_MESSAGES_MAX, _ROUND_BYTES // size))


def perftest(program, size, *options):
    """The columns of its result. It needs the device files, which ranks need not."""
    port = free_port()

    def command(card):
        slot = subprocess.run(["bash", "-c", _GID_SLOT.format(card)], check=True, capture_output=True, text=True).stdout
        return [program, "-F", "-d", card, "-x", slot.strip(), "-p", str(port), "-s", str(size), "-n",
                str(messages_of(size)), *options]

    with subprocess.Popen(command("rxb"), stdout=subprocess.DEVNULL) as server:
        wait_for("the server", lambda: listens(port) or server.poll() is not None)
        out = subprocess.run([*command("rxa"), "127.0.0.1"], check=True, capture_output=True, text=True).stdout
    return next(line.split() for line in out.splitlines() if line.split()[:1] == [str(size)])


class Bench(cards.TwoCards):
    def setUp(self):
        super().setUp()
        # Each cell has the best of all rounds: what else the machine does only makes them slower.
        self.rate = defaultdict(float)
        self.us = defaultdict(lambda: float("inf"))

    def add(self, name, size, rate, us):
        self.rate[name, size] = max(self.rate[name, size], float(rate))
        self.us[name, size] = min(self.us[name, size], float(us))

    def through_rnicd(self, size):
        program = self.built_with_library("two_cards")
        sockets = (self.daemon.socket_dir, self.other.socket_dir)
        _, rate, us = self.run_well(program, *sockets, size, messages_of(size)).split()
        self.add("rnicd", size, rate, us)

    def directly(self, size):
        _, _, _, gigabits, _ = perftest("ib_write_bw", size, "--report_gbits")
        _, _, _, _, median, *_ = perftest("ib_send_lat", size)
        self.add("direct", size, float(gigabits) * 1000 / 8, median)

    def test_table(self):
        for size in _ROUNDS * SIZES:
            self.through_rnicd(size)
            self.directly(size)
        # Behind the name of the test.
        print("\n| | write, MB/s | x `ib_write_bw` | send, us | x `ib_send_lat` |\n|---|" + "---:|" * 4)
        for size in SIZES:
            rate, us = self.rate["rnicd", size], self.us["rnicd", size]
            of_rate, of_us = rate / self.rate["direct", size], us / self.us["direct", size]
            print(f"| {words(size)} | {rate:.2f} | {of_rate:.2f} | {us:.0f} | {of_us:.2f} |")


if __name__ == "__main__":
    cards.main(__doc__)
