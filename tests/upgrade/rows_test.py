"""What a session of an older generation has goes on as docs/OPERATING.md says, one row after the other.

usage: rows_test.py --package FOLDER --rnicd PROGRAM --rnicctl PROGRAM [TEST...]

The sessions are of this process, so that each step of a client is in its place before or after the hand-over.
"""

import os
import subprocess
import sys
import threading
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from generations import GenerationsTest, given, parser_of
from polling import wait_for

_PAGE = 4096
_LARGEST_MIB = 512
# A peer that has its session in the newest generation.
_PEER = """
import sys
import rnicd
with rnicd.connect(sys.argv[1]) as session:
    for peer in ("array", (sys.argv[2], int(sys.argv[3]))):
        try:
            session.connect(peer, session.queue_pair())
        except rnicd.Error as refused:
            print(refused.reason)
"""


def connected(session):
    one, other = session.queue_pair(), session.queue_pair()
    one.connect(other.address)
    other.connect(one.address)
    return one, other


def shared_mib(generation):
    """Memory files that the daemon has mapped, in MiB."""
    status = Path(f"/proc/{generation.child.pid}/status").read_text()
    return int(status.split("RssShmem:")[1].split()[0]) // 1024


class Rows(GenerationsTest):
    def connect(self, **options):
        session = rnicd.connect(f"{self.node.folder}/s", **options)
        self.addCleanup(session.close)
        return session

    def assert_served_by(self, older, session):
        """It is still the older generation that serves the session, and it ends with it."""
        self.assertIsNone(older.child.poll())
        session.close()
        self.assertEqual(older.wait_for_end(), 0, older.log())

    def test_a_ring_is_served_on(self):
        older = self.node.take_over()
        session = self.connect(data_path="rings")
        memory = session.allocate(_PAGE)
        region = memory.register(remote="rw")
        one, other = connected(session)
        one.write(b"before", region.remote)
        waits = one.post([rnicd.Receive(region)])
        self.node.take_over()
        other.send(b"after")
        self.assertEqual(waits.wait()[0].bytes, 5)
        with session.allocate(_PAGE) as later, later.register(remote="rw") as newest:
            one.write(b"later", newest.remote)
            self.assertEqual(bytes(later[:5]), b"later")
        self.assertEqual((session.data_path, session.usage().session["rings"].used), ("rings", 1))
        self.assert_served_by(older, session)

    def test_a_mapped_queue_keeps_its_completions_and_its_notification(self):
        older = self.node.take_over()
        session = self.connect()
        region = session.allocate(_PAGE).register(remote="rw")
        queue = session.completion_queue()
        one, other = session.queue_pair(completion_queue=queue), session.queue_pair()
        one.connect(other.address)
        other.connect(one.address)
        self.assertIsNotNone(queue._mapped)
        one.post_raw([rnicd.Write(b"one", region.remote)], [1])
        self.node.take_over()
        queue.arm()
        one.post_raw([rnicd.Write(b"two", region.remote)], [2])
        self.assertTrue(queue.wait_for_notification(60))
        self.assertEqual([done.context for done in queue.poll(2, 60)], [1, 2])
        self.assert_served_by(older, session)

    def test_the_pool_is_given_up_and_taken_up_again(self):
        self.node.flags += ("--memory_pool=4KiB:16MiBx2",)
        older = self.node.take_over()
        self.connect()
        wait_for("the pool", lambda: shared_mib(older) >= 32)
        newer = self.node.take_over()
        wait_for("pages given back", lambda: shared_mib(older) < 16)
        wait_for("the newer generation's pool", lambda: shared_mib(newer) >= 32)
        newer.kill()
        wait_for("the pool again", lambda: shared_mib(older) >= 32)

    def hand_over_under_way(self, older, session, size):
        """The memory, if the hand-over was quicker than populating it, or no larger one is to be tried."""
        made, before = [], shared_mib(older)
        allocating = threading.Thread(target=lambda: made.append(session.allocate(f"{size}MiB", populate=False)))
        allocating.start()
        wait_for("populating", lambda: shared_mib(older) > before)
        self.node.take_over()
        under_way = shared_mib(older) < before + size
        allocating.join()
        if under_way or size == _LARGEST_MIB:
            return made[0]
        made[0].close()
        return None

    def test_populating_goes_on(self):
        older = self.node.take_over()
        session = self.connect(timeout=120)
        sizes = iter((16, 32, 64, 128, 256, _LARGEST_MIB))
        memory = wait_for("large memory", lambda: self.hand_over_under_way(older, session, next(sizes)))
        memory.register()
        self.assert_served_by(older, session)

    def test_a_listener_accepts_those_of_its_generation(self):
        older = self.node.take_over()
        session, other = self.connect(), self.connect()
        listener, pair = session.listen("array"), session.queue_pair()
        self.node.take_over()
        newer = subprocess.run([sys.executable, "-c", _PEER, f"{self.node.folder}/s", *map(str, listener.address)],
                               env={**os.environ, "PYTHONPATH": given.package}, stdout=subprocess.PIPE, text=True)
        self.assertEqual(newer.stdout.split(), ["NAME_NOT_FOUND", "ADDRESS_NOT_PERMITTED"])
        accepting = threading.Thread(target=lambda: listener.next_request(60).accept(pair))
        accepting.start()
        connector = other.connect("array", other.queue_pair())
        accepting.join()
        pair.disconnect()
        self.assertTrue(connector.wait_for_disconnect(60))
        other.close()
        self.assert_served_by(older, session)


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--package", required=True, type=os.path.abspath)
    parser.parse_args(namespace=given)
    sys.path.append(given.package)
    global rnicd
    import rnicd
    unittest.main(argv=[sys.argv[0], "-v", *given.tests])


if __name__ == "__main__":
    main()
