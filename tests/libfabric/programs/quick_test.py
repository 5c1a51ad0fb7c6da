"""Programs that exist, unmodified, over the provider; and ends of jobs in the middle.

usage: quick_test.py --rnicd PROGRAM --rnicctl PROGRAM --library FILE... [TEST...]
"""

import json
import os
import random
import re
import signal
import socket
from pathlib import Path

import job
from polling import wait_for

_SEED = "RNICD_TEST_SEED"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    """Whether a socket of any address listens there, without a connection that the listener would see."""
    sockets = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    return re.search(rf":{port:04X} [0-9A-F]+:0000 0A ", sockets) is not None


class Libfabric(job.ProgramTest):
    def pingpong(self, provider, *options):
        """A server and a client, which check what they receive, at all sizes."""
        port = free_port()
        command = ("fi_pingpong", "-p", provider, "-c", "-S", "all", *options)
        server = self.start(*command, "-B", port)
        wait_for("the server", lambda: listens(port) or server.poll() is not None)
        out = self.run_well(*command, "-P", port, "127.0.0.1")
        self.assertEqual(self.finish(server)[0], 0)
        self.assertIn("\n1m ", out)
        self.assert_nothing_is_left()

    def test_fi_info_lists_both_layers(self):
        out = self.run_well("fi_info")
        self.assertRegex(out, r"provider: rnicd\n(    .*\n)*    type: FI_EP_MSG\n")
        self.assertRegex(out, r"provider: rnicd;ofi_rxm\n(    .*\n)*    type: FI_EP_RDM\n")

    def test_pingpong_by_connected_endpoints(self):
        self.pingpong("rnicd", "-e", "msg")

    def test_pingpong_by_datagrams(self):
        self.pingpong("rnicd;ofi_rxm", "-e", "rdm", "-m", "msg")

    def test_pingpong_by_tags(self):
        self.pingpong("rnicd;ofi_rxm", "-e", "rdm", "-m", "tagged")


class Privileges(job.ProgramTest):
    def test_ranks_have_none(self):
        # The last line is the limit of locked memory, since there are no cards.
        out = self.run_well("mpirun", "-np", 1, "sh", "-c",
                            "grep -E '^(Uid|CapEff|CapBnd)' /proc/self/status; ulimit -l; ls /dev/infiniband/uverbs* || :")
        self.assertRegex(out, r"^Uid:\t65534\t.*\nCapEff:\t0+\nCapBnd:\t0+\n0\n$")


class Messages(job.ProgramTest):
    def test_ring_of_two(self):
        self.check(2, "ring")

    def test_ring_of_four(self):
        self.check(4, "ring")

    def test_message_of_more_than_64_mib(self):
        self.check(2, "ring", (64 << 20) + 1)

    def test_collectives_of_two(self):
        self.check(2, "collectives")

    def test_collectives_of_four(self):
        self.check(4, "collectives")

    def test_any_source_oneself_probes_and_parts(self):
        self.check(4, "point_to_point")

    def test_random_messages(self):
        seed = os.environ.get(_SEED) or str(random.randrange(1 << 32))
        print(f"{_SEED}={seed}", flush=True)
        self.check(3, "messages", seed, 10000)


class Targets(job.ProgramTest):
    """Memory that MPI gives is malloc's in Open MPI 4.1."""

    def test_large_ones(self):
        self.check(2, "targets", 2_000_000)

    def test_those_of_the_preloaded_heap(self):
        self.check(2, "targets", 600, LD_PRELOAD="librnicd-heap.so")


class Endings(job.ProgramTest):
    """A rank, its session or the daemon ends in the middle: the job fails, and nothing hangs. Open MPI has an error where
    a rank sends; one that only waits for a message crashes on RxM's error without a request.
    """

    def begin(self, ranks=2):
        child = self.start_job(ranks, self.built("endings"), "endless")
        return child, self.ready_ranks(child, ranks)

    def assert_fails(self, child):
        status, out, err = self.finish(child)
        self.assertNotEqual(status, 0, out + err)
        return status, err

    def test_killed_rank(self):
        child, processes = self.begin(4)
        os.kill(processes[0], signal.SIGKILL)
        self.assertEqual(self.assert_fails(child)[0], 128 + signal.SIGKILL)
        self.assert_nothing_is_left()

    def test_killed_daemon(self):
        child, _ = self.begin()
        self.daemon.kill()
        self.assert_fails(child)

    def test_ranks_of_two_daemons_that_have_no_connection(self):
        other = self.start_daemon("other")
        choose = 'test $OMPI_COMM_WORLD_RANK = 0 || export RNICD_SOCKET_DIR=$OTHER; exec "$0"'
        child = self.start_job(2, "sh", "-c", choose, self.built("ring"), OTHER=other.socket_dir)
        self.assert_fails(child)
        self.assert_nothing_is_left()
        other.wait_until_empty()

    def test_evicted_session(self):
        child, _ = self.begin()
        victim, *_ = json.loads(self.daemon.ask("sessions", "--json").stdout)["sessions"]
        self.assertEqual(self.daemon.ask("evict", victim["session_id"]).returncode, 0)
        self.assert_fails(child)
        self.assert_nothing_is_left()

    def test_exit_without_finalize(self):
        child = self.start_job(2, self.built("endings"), "exit")
        self.assertIn('without calling "finalize"', self.assert_fails(child)[1])
        self.assert_nothing_is_left()

    def test_fork_in_a_rank(self):
        self.assertTrue(self.run_job(2, self.built("endings"), "fork").endswith("all is well\n"))


if __name__ == "__main__":
    job.main(__doc__)
