"""Open MPI over two cards, in the guest of tests/vm: half of the ranks at the daemon of each.

usage: cards_test.py --rnicd PROGRAM --rnicctl PROGRAM --library FILE... [TEST...]
"""

import os
import signal
from pathlib import Path

import cards


def received_over_the_wire():
    """Bytes. What a card sends to itself does not pass there."""
    return sum(int(Path(f"/sys/class/net/{port}/statistics/rx_bytes").read_text()) for port in ("va", "vb"))


class Cards(cards.TwoCards):
    def mpirun(self, ranks, *program):
        half = ("-np", ranks // 2)
        return ("mpirun", *half, *program, ":", *half, "-x", f"RNICD_SOCKET_DIR={self.other.socket_dir}", *program)

    def assert_nothing_is_left(self):
        for daemon in (self.daemon, self.other):
            self.assert_holds_nothing(daemon)

    def assert_fails(self, child):
        status, out, err = self.finish(child)
        self.assertNotEqual(status, 0, out + err)

    def begin(self):
        child = self.start_job(2, self.built("endings"), "endless")
        return child, self.ready_ranks(child, 2)

    def test_ring_of_two_crosses_the_wire(self):
        before = received_over_the_wire()
        self.check(2, "ring")
        self.assertGreater(received_over_the_wire() - before, 2 << 20)

    def test_ring_of_four(self):
        self.check(4, "ring")

    def test_collectives_of_two(self):
        self.check(2, "collectives")

    def test_collectives_of_four(self):
        self.check(4, "collectives")

    def test_any_source_oneself_probes_and_parts(self):
        self.check(4, "point_to_point")

    def test_random_messages(self):
        self.check(2, "messages", 1, 500)

    def test_killed_rank(self):
        child, processes = self.begin()
        os.kill(processes[0], signal.SIGKILL)
        self.assert_fails(child)
        self.assert_nothing_is_left()

    def test_killed_daemon(self):
        child, _ = self.begin()
        self.other.kill()
        self.assert_fails(child)
        self.assert_holds_nothing(self.daemon)


if __name__ == "__main__":
    cards.main(__doc__)
