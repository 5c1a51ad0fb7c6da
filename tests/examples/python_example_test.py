"""Runs examples against a real daemon, and checks that docs/WORKLOADS.md describes them correctly.

usage: python_example_test.py --source REPOSITORY --rnicd PROGRAM --rnicctl PROGRAM --hello PROGRAM
           [--exchange PROGRAM] [TEST...]

With TEST only those, as in "Hello", which is also what the program of examples/rust does.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from polling import wait_for

_TIMEOUT_S = 60
_PAGE = 4096
# The daemon registers this size on a worker thread, so that the example gets a pending response.
_PENDING_BYTES = 16 * _PAGE
given = argparse.Namespace()


class Daemon:
    """The real daemon with the soft card, in a separate folder."""

    def __init__(self, folder):
        self.socket_dir, self.fd_path = f"{folder}/s", f"{folder}/s/fd.sock"
        self._log = Path(folder) / "rnicd.log"
        with open(self._log, "wb") as log:
            self._child = subprocess.Popen(
                [given.rnicd, f"--socket_dir={self.socket_dir}", "--metrics_address=",
                 f"--pending_threshold_bytes={_PENDING_BYTES}"], stdout=log, stderr=subprocess.STDOUT)
        wait_for("the daemon", lambda: self.ask("status").returncode == 0 or self._child.poll() is not None)
        if self._child.poll() is not None:
            raise AssertionError(f"the daemon does not serve: {self._log.read_text()}")

    def ask(self, command):
        return subprocess.run([given.rnicctl, command, "--json", f"--socket-dir={self.socket_dir}"],
                              capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)

    def status(self):
        return json.loads(self.ask("status").stdout)

    def stop(self):
        """Returns the daemon's exit code."""
        if self._child.poll() is None:
            self._child.terminate()
        try:
            return self._child.wait(timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return self._child.wait()


def run_example(socket_dir, *options, story="register_memory.py"):
    return subprocess.run([sys.executable, str(given.source / "examples/python" / story), *options, socket_dir],
                          capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)


def messages_of(rnicd_rpc):
    """Messages of one name can be loaded only once per process."""
    if not hasattr(given, "messages"):
        given.messages = rnicd_rpc.Messages(given.source / "proto")
    return given.messages


def code_blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)


def stripped(text):
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


class WithADaemon(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rnicd-")
        self.addCleanup(folder.cleanup)
        self.daemon = Daemon(folder.name)
        self.addCleanup(self.daemon.stop)


class Example(WithADaemon):
    def tokens(self, done):
        found = re.search(r"local token (0x[0-9a-f]{8}), remote token (0x[0-9a-f]{8})", done.stdout)
        self.assertIsNotNone(found, done)
        return int(found[1], 16), int(found[2], 16)

    def test_prints_tokens_and_leaves_nothing(self):
        done = run_example(self.daemon.socket_dir, "--size", str(_PAGE))
        self.assertEqual(done.returncode, 0, done)
        self.assertNotIn(0, self.tokens(done))
        self.assertIn("the session ended: closed", done.stdout)
        self.assertNotIn("pending", done.stdout)
        status = self.daemon.status()
        self.assertEqual((status["sessions"], status["registered_pages"], status["device_regions"]), (0, 0, 0), status)
        self.assertEqual(self.daemon.stop(), 0)

    def test_waits_for_the_event_of_a_pending_registration(self):
        done = run_example(self.daemon.socket_dir, "--size", str(_PENDING_BYTES))
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("pending", done.stdout)
        self.assertNotIn(0, self.tokens(done))

    def test_registers_scattered_pages_by_a_work_request(self):
        done = run_example(self.daemon.socket_dir, story="fast_register.py")
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(done.stdout, r"token 0x[0-9a-f]{8}, the last page begins with b'hello'\n")
        self.assertIn("after the invalidation: REMOTE_ACCESS_REFUSED, STATUS_ACCESS_VIOLATION\n", done.stdout)
        self.assertEqual(self.daemon.stop(), 0)

    def test_posts_through_a_ring_and_reads_a_mapped_queue(self):
        done = run_example(self.daemon.socket_dir, "--size", str(4 * _PAGE), story="ring_client.py")
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(done.stdout, r"posted: status 0x0, token 0x[0-9a-f]{8}\n")
        self.assertIn("completed: status 0x0, context 7\nthe peer wrote b'hello'\n", done.stdout)
        self.assertIn("refused: status 0xc0000225, ERROR_REASON_OBJECT_NOT_FOUND\n", done.stdout)
        status = self.daemon.status()
        self.assertEqual((status["sessions"], status["registered_pages"], status["device_regions"]), (0, 0, 0), status)
        self.assertEqual(self.daemon.stop(), 0)

    def test_names_numbers_that_it_does_not_know(self):
        sys.path.insert(0, str(given.source / "examples/python"))
        import rnicd_rpc
        messages = messages_of(rnicd_rpc)
        completion = messages.work_request.CqResult(ntstatus=0xC0FFEE00, reason=99_999)
        self.assertEqual(str(messages.failed(completion)), "?, ?")

    def test_reads_the_reason_and_the_field_from_the_trailer(self):
        done = run_example(self.daemon.socket_dir, "--size", "5")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("(MEMORY_SIZE_UNALIGNED, STATUS_INVALID_PARAMETER, field size)", done.stderr)

    def test_says_that_nobody_answers(self):
        done = run_example(self.daemon.socket_dir + "/nowhere")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("no answer: UNAVAILABLE", done.stderr)

    def test_does_not_wait_for_events_of_a_session_that_ended(self):
        sys.path.insert(0, str(given.source / "examples/python"))
        import register_memory
        with self.assertRaises(ConnectionError):
            register_memory.await_event(iter([]), "request_completed")


class Hello(WithADaemon):
    def run_hello(self, socket_dir):
        return subprocess.run([given.hello, socket_dir], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)

    def test_writes_to_itself_and_leaves_nothing(self):
        done = self.run_hello(self.daemon.socket_dir)
        self.assertEqual(done.stdout, "request 7: status 0, and the other half says hello\n", done)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.daemon.status()["sessions"], 0)

    def test_says_that_nobody_answers(self):
        done = self.run_hello(self.daemon.socket_dir + "/nowhere")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("session: no answer from rnicd", done.stderr)


class Exchange(WithADaemon):
    """Two programs that meet by a name."""

    def start(self, role):
        return subprocess.Popen([given.exchange, self.daemon.socket_dir, role], stdout=subprocess.PIPE, text=True)

    def test_the_worker_doubles_the_owners_array(self):
        owner = self.start("owner")
        self.addCleanup(owner.kill)
        self.assertRegex(owner.stdout.readline(), "listening as .*/array\n")
        worker = self.start("worker")
        self.addCleanup(worker.kill)
        self.assertEqual(owner.communicate(timeout=_TIMEOUT_S)[0], "1048576 numbers are doubled\n")
        self.assertEqual(worker.communicate(timeout=_TIMEOUT_S)[0], "")
        self.assertEqual((owner.returncode, worker.returncode), (0, 0))
        self.assertEqual(self.daemon.status()["sessions"], 0)


class FdChannel(WithADaemon):
    """Sends the bytes of the page, not those of a library."""

    def setUp(self):
        super().setUp()
        sys.path.insert(0, str(given.source / "examples/python"))
        import fd_socket
        import rnicd_rpc
        self.fd_socket, self.refused = fd_socket, rnicd_rpc.Refused
        self.connection = rnicd_rpc.Connection(self.daemon.socket_dir, messages_of(rnicd_rpc))
        self.addCleanup(self.connection.close)
        self.connection.call("Session", "OpenSession")

    def bytes_of_the_page(self, name, ticket):
        """The packet in the page's hexadecimal digits; "tt" is replaced by the bytes of the ticket, in order."""
        block, = code_blocks((given.source / "docs/WORKLOADS.md").read_text(), name)
        words = re.findall(r"\b(?:[0-9a-f]{2}|tt)\b", re.sub(r"#.*", "", block))
        of_ticket = iter(ticket)
        return bytes(next(of_ticket) if word == "tt" else int(word, 16) for word in words)

    def allocate(self):
        return self.connection.call("Memory", "AllocateMemory", size=_PAGE)

    def test_a_fetch_is_as_the_page_says(self):
        ticket = self.allocate().fd_ticket
        packet, descriptors = self.fd_socket.exchange(self.daemon.fd_path,
                                                      self.bytes_of_the_page("fd-fetch", ticket), ())
        self.assertEqual(packet, self.bytes_of_the_page("fd-ok", b""))
        descriptor, = descriptors
        self.addCleanup(os.close, descriptor)
        self.assertEqual(os.fstat(descriptor).st_size, _PAGE)

    def test_an_import_is_as_the_page_says(self):
        file = os.memfd_create("mine", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        self.addCleanup(os.close, file)
        os.truncate(file, _PAGE)
        announced = self.connection.call("Memory", "ImportMemory", size=_PAGE)
        packet, descriptors = self.fd_socket.exchange(
            self.daemon.fd_path, self.bytes_of_the_page("fd-import", announced.fd_ticket), (file,))
        self.assertEqual((packet, descriptors), (self.bytes_of_the_page("fd-ok", b""), []))
        sealed = self.connection.call("Memory", "SealMemory", memory_id=announced.memory_id)
        self.assertEqual(sealed.size, _PAGE)

    def test_the_example_sends_a_file_as_well(self):
        file = os.memfd_create("mine", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        self.addCleanup(os.close, file)
        announced = self.connection.call("Memory", "ImportMemory", size=_PAGE)
        with self.assertRaises(self.refused) as caught:
            self.fd_socket.send(self.daemon.fd_path, announced.fd_ticket, file, self.connection.messages)
        self.assertEqual(caught.exception.reason, "MEMORY_TOO_SHORT")

    def test_a_ticket_works_once(self):
        ticket = self.allocate().fd_ticket
        os.close(self.fd_socket.fetch(self.daemon.fd_path, ticket, self.connection.messages))
        with self.assertRaises(self.refused) as caught:
            self.fd_socket.fetch(self.daemon.fd_path, ticket, self.connection.messages)
        self.assertEqual(caught.exception.reason, "TICKET_UNKNOWN")

    def test_one_connection_carries_one_exchange(self):
        request = self.bytes_of_the_page("fd-fetch", self.allocate().fd_ticket)
        with self.fd_socket.socket.socket(self.fd_socket.socket.AF_UNIX,
                                          self.fd_socket.socket.SOCK_SEQPACKET) as raw:
            raw.settimeout(_TIMEOUT_S)
            raw.connect(self.daemon.fd_path)
            raw.sendall(request)
            self.assertEqual(raw.recv(_PAGE), self.bytes_of_the_page("fd-ok", b""))
            self.assertEqual(raw.recv(_PAGE), b"")

    def test_a_mapping_must_be_made_before_the_seal(self):
        import mmap
        memory = self.allocate()
        descriptor = self.fd_socket.fetch(self.daemon.fd_path, memory.fd_ticket, self.connection.messages)
        self.addCleanup(os.close, descriptor)
        self.connection.call("Memory", "SealMemory", memory_id=memory.memory_id)
        with self.assertRaises(PermissionError):
            mmap.mmap(descriptor, _PAGE, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)


class Page(unittest.TestCase):
    """All code in docs/WORKLOADS.md is part of a program that is built or run."""

    def quoted(self, language, *programs):
        page = (given.source / "docs/WORKLOADS.md").read_text()
        sources = [stripped(path.read_text()) for folder, pattern in programs
                   for path in sorted((given.source / folder).glob(pattern))]
        blocks = code_blocks(page, language)
        self.assertTrue(blocks and sources)
        for block in blocks:
            for part in block.split("[...]\n"):
                self.assertTrue(any(stripped(part) in source for source in sources), f"nowhere in {programs}:\n{part}")

    def test_quotes_python_that_runs(self):
        self.quoted("python", ("examples/python", "*.py"))

    def test_quotes_cpp_that_compiles(self):
        self.quoted("cpp", ("examples", "*.cc"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--source", "--rnicd", "--rnicctl", "--hello"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--exchange", type=Path)
    parser.add_argument("tests", nargs="*")
    parser.parse_args(namespace=given)
    unittest.main(argv=[sys.argv[0], "--verbose", *given.tests])


if __name__ == "__main__":
    main()
