"""A daemon takes over from another one, under clients that never pause.

usage: upgrade_test.py --rnicd PROGRAM --rnicctl PROGRAM [--handovers N] [--clients N] [--kills N] [TEST...]
"""

import signal
import socket
import sys
import threading
import unittest
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from generations import GenerationsTest, given, parser_of
from polling import wait_for

# Steps of the start from the first word to the older generation on, as the log numbers them.
_STEPS = range(7, 12)
_NAMES = ["s-admin/admin.sock", "s-handover/handover.sock", "s/fd.sock", "s/rpc.sock"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Storm:
    """Clients that connect, call, exchange descriptors both ways, and end, again and again."""

    def __init__(self, node, clients):
        self._node, self._over = node, threading.Event()
        self.served, self.failures = 0, []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run, args=(index,)) for index in range(clients)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, index):
        way = ["--import"] if index % 2 else []
        while not self._over.is_set():
            code, out = self._node.run("register", "--size=64KiB", *way)
            with self._lock:
                self.served += 1
                if code != 0:
                    self.failures.append(out)


class Upgrade(GenerationsTest):
    def hold(self, size="--size=1MiB"):
        """A client that keeps a session until it is ended."""
        client = self.node.client("register", size, "--hold=forever")
        self.addCleanup(client.stdout.close)
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        client.stdout.readline()
        return client

    def end(self, client):
        client.send_signal(signal.SIGTERM)
        self.assertEqual(client.wait(), 0, client.stdout.read())

    def limit(self, limits):
        policy = self.node.folder / "policy.textproto"
        policy.write_text(f'tenant {{ name: "all" limits {{ {limits} }} }} default_tenant: "all"')
        self.node.flags += (f"--policy_file={policy}",)

    def sessions(self):
        code, out = self.node.run("sessions")
        self.assertEqual(code, 0, out)
        return out

    def test_nobody_notices_hand_overs_in_a_storm(self):
        self.node.take_over()
        port = str(free_port())
        listener = self.node.client("pingpong", f"--listen=127.0.0.1:{port}", "--size=64KiB")
        transfers = self.node.client("pingpong", f"--connect=127.0.0.1:{port}", "--size=64KiB",
                                     f"--rounds={2000 * given.handovers}")
        with Storm(self.node, given.clients) as storm:
            for _ in range(given.handovers):
                before = storm.served
                self.node.take_over()
                wait_for("clients of this generation", lambda: storm.served >= before + given.clients)
        self.assertEqual(storm.failures, [])
        for client in (transfers, listener):
            out, _ = client.communicate()
            self.assertEqual(client.returncode, 0, out)
        for generation in self.node.generations[:-1]:
            self.assertEqual(generation.wait_for_end(), 0, generation.log())
        self.assertEqual(self.node.names(), _NAMES)
        print(f"{given.handovers} hand-overs, {storm.served} clients, none refused", flush=True)

    def test_a_session_stays_where_it_is_and_the_older_generation_ends_with_it(self):
        older = self.node.take_over()
        client = self.hold()
        newer = self.node.take_over()
        self.assertIsNone(older.child.poll())
        self.assertRegex(self.sessions(), r"GENERATION\n.* 1\n")
        self.end(client)
        self.assertEqual(older.wait_for_end(), 0, older.log())
        self.assertIsNone(newer.child.poll())
        self.assertEqual(self.node.names(), _NAMES)

    def test_three_generations_serve_at_once(self):
        clients = []
        for _ in range(3):
            self.node.take_over()
            clients.append(self.hold())
        first, second, third = self.node.generations
        self.end(clients[1])
        self.assertIsNone(first.child.poll())
        self.end(clients[0])
        self.assertEqual(first.wait_for_end(), 0, first.log())
        self.assertEqual(second.wait_for_end(), 0, second.log())
        self.assertIsNone(third.child.poll())
        self.assertEqual(self.node.names(), _NAMES)

    def test_the_eldest_counts_when_the_one_between_dies(self):
        self.limit("pinned_bytes: 8388608")
        eldest = self.node.take_over()
        held = self.hold("--size=6MiB")
        middle = self.node.take_over()
        lost = self.hold("--size=4KiB")
        self.node.take_over()
        middle.kill()
        self.assertNotEqual(lost.wait(), 0)
        code, out = self.node.run("register", "--size=4MiB")
        self.assertIn("QUOTA_PINNED_BYTES", out)
        self.end(held)
        self.assertEqual(eldest.wait_for_end(), 0, eldest.log())
        wait_for("room", lambda: self.node.run("register", "--size=4MiB")[0] == 0)
        self.node.stop()
        self.assertEqual(self.node.names(), [])

    def test_when_the_newer_one_dies_the_older_one_serves_again(self):
        older = self.node.take_over()
        client = self.hold()
        self.node.take_over().kill()
        wait_for("the older generation", lambda: "serves again" in older.log())
        code, out = self.node.run("register", "--size=64KiB")
        self.assertEqual(code, 0, out)
        self.node.take_over()
        self.end(client)
        self.assertEqual(older.wait_for_end(), 0, older.log())

    def test_when_the_older_one_dies_only_its_sessions_end(self):
        older = self.node.take_over()
        lost = self.hold()
        self.node.take_over()
        kept = self.hold()
        older.kill()
        self.assertNotEqual(lost.wait(), 0)
        self.end(kept)
        code, out = self.node.run("register", "--size=64KiB")
        self.assertEqual(code, 0, out)

    def reach(self, step):
        """A newer generation that has begun this step, or is beyond it."""
        newer = self.node.start("--log_level=debug")
        wait_for(f"step {step}", lambda: f"step number={step} " in newer.log() or newer.child.poll() is not None)
        return newer

    def test_a_newer_one_that_is_killed_at_any_step_ends_no_session(self):
        for step in list(_STEPS) * given.kills:
            with self.subTest(step=step):
                self.node.take_over()
                client = self.hold()
                self.reach(step).kill()
                code, out = self.node.run("register", "--size=64KiB")
                self.assertEqual(code, 0, out)
                self.end(client)
                self.node.stop()
                self.assertEqual(self.node.names(), [])

    def test_an_older_one_that_is_killed_at_any_step_leaves_a_node_that_serves(self):
        for step in list(_STEPS) * given.kills:
            with self.subTest(step=step):
                older = self.node.take_over()
                lost = self.hold()
                newer = self.reach(step)
                older.kill()
                self.assertNotEqual(lost.wait(), 0)
                wait_for("the newer generation", lambda: newer.serves() or newer.child.poll() is not None)
                if newer.child.poll() is not None:
                    self.node.take_over()
                code, out = self.node.run("register", "--size=64KiB")
                self.assertEqual(code, 0, out)
                self.node.stop()
                self.assertEqual(self.node.names(), [])

    def test_limits_hold_over_generations(self):
        self.limit("pinned_bytes: 8388608")
        self.node.take_over()
        held = self.hold("--size=6MiB")
        self.node.take_over()
        code, out = self.node.run("register", "--size=4MiB")
        self.assertEqual(code, 1, out)
        self.assertIn("QUOTA_PINNED_BYTES", out)
        self.end(held)
        wait_for("room", lambda: self.node.run("register", "--size=4MiB")[0] == 0)

    def test_a_new_policy_holds_for_all_generations(self):
        self.limit("pinned_bytes: 8388608")
        older = self.node.take_over()
        client = self.hold()
        newer = self.node.take_over()
        code, out = self.node.run("reload")
        self.assertEqual(code, 0, out)
        for generation in (older, newer):
            self.assertIn("policy in force", generation.log())
        self.end(client)

    def test_one_page_goes_on_with_all_counters(self):
        address = f"127.0.0.1:{free_port()}"
        self.node.flags += (f"--metrics_address={address}",)

        def page():
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
                lines = answer.read().decode().splitlines()
            samples = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
            counted = {name: float(value) for name, value in samples}
            return counted["rnicd_sessions_opened_total"], counted["rnicd_generations"]

        self.node.take_over()
        held = self.hold()
        self.assertEqual(page(), (1, 1))
        newer = self.node.take_over()
        self.assertEqual(self.node.run("register", "--size=64KiB")[0], 0)
        wait_for("both", lambda: page() == (2, 2))
        newer.kill()
        wait_for("the older one", lambda: self.node.run("register", "--size=64KiB")[0] == 0)
        wait_for("its page", lambda: page() == (3, 1))
        self.end(held)

    def test_a_newer_one_that_cannot_serve_changes_nothing(self):
        older = self.node.take_over()
        client = self.hold()
        failed = self.node.start("--policy_file=/none/such.textproto")
        self.assertEqual(failed.wait_for_end(), 1, failed.log())
        code, out = self.node.run("register", "--size=64KiB")
        self.assertEqual(code, 0, out)
        self.end(client)
        self.assertIsNone(older.child.poll())

    def test_draining_waits_for_the_sessions_of_the_older_one(self):
        self.node.take_over()
        client = self.hold()
        self.node.take_over()
        drain = self.node.client("drain", "--wait=60s")
        self.addCleanup(drain.stdout.close)
        self.assertIn("left are 1 session", drain.stdout.readline())
        self.end(client)
        self.assertEqual(drain.wait(), 0, drain.stdout.read())

    def test_the_first_order_to_stop_lets_sessions_end_and_the_second_does_not(self):
        older = self.node.take_over()
        client = self.hold()
        self.node.take_over()
        older.child.terminate()
        wait_for("the first order", lambda: "goes on for its sessions" in older.log())
        self.assertIsNone(client.poll())
        older.child.terminate()
        self.assertEqual(older.wait_for_end(), 0, older.log())
        self.assertNotEqual(client.wait(), 0)


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--handovers", type=int, default=5)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--kills", type=int, default=1)
    parser.parse_args(namespace=given)
    unittest.main(argv=[sys.argv[0], "-v", *given.tests])


if __name__ == "__main__":
    main()
