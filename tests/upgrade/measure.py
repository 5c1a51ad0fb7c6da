"""Measures hand-overs on the soft card, and prints tables of figures beside their bars. Asserts nothing.

usage: measure.py --package FOLDER --rnicd PROGRAM --rnicctl PROGRAM [--handovers N] [--clients N] [--sessions N]
                  [--regions N]

A client reads and writes without pause, by calls and through a ring, while processes open their first session one
after the other. Everything is timed without hand-overs too, as other programs of the machine also make clients wait.
"""

import argparse
import datetime
import multiprocessing
import os
import re
import socket
import statistics
import struct
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from generations import Node
from polling import wait_for
from upgrade_test import Storm

_PAGE = 4096
_HOLDERS = 50
_FLAGS = ("--connections_per_second=0", "--max_connections_per_uid=0", "--log_level=debug")
given = argparse.Namespace()
# Children begin before this process has a thread or has used gRPC.
fork = multiprocessing.get_context("fork")
phase, over = fork.Value("i", 0), fork.Event()


def transfers(folder, began):
    """One-sided writes and reads, each of which has come back before the next one."""
    import rnicd

    taken, made = {}, []
    for path in ("calls", "rings"):
        session = rnicd.connect(f"{folder}/s", data_path=path)
        region = session.allocate(2 * _PAGE).register(remote="rw")
        pair, peer = session.queue_pair(), session.queue_pair()
        pair.connect(peer.address)
        peer.connect(pair.address)
        made.append((f"a transfer by {path}", pair, region, peer))
    began()
    while not over.is_set():
        for what, pair, region, _ in made:
            for transfer in (pair.write, pair.read):
                now, start = phase.value, time.perf_counter()
                transfer(region[:_PAGE], region.remote[_PAGE:])
                taken.setdefault((what, now), []).append(time.perf_counter() - start)
    return taken


def _frame(kind, flags, stream, payload):
    """One of HTTP/2."""
    return len(payload).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + payload


_WORDS = (b"/rnicd.v1.SessionService/OpenSession", b"content-type", b"application/grpc", b"te", b"trailers")
_HEADERS = b"\x83\x86\x04%c%b\0%c%b%c%b\0%c%b%c%b" % tuple(part for word in _WORDS for part in (len(word), word))
_OPEN_SESSION = (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0, b"") + _frame(1, 4, 1, _HEADERS) +
                 _frame(0, 1, 1, bytes(5)))


def _is_opened(stream):
    """Whether the answer has data; a refusal has only headers."""
    while len(head := stream.read(9)) == 9:
        payload = stream.read(int.from_bytes(head[:3], "big"))
        if head[3] == 0 and payload or head[3] == 1 and head[4] & 1:
            return head[3] == 0
    return False


def _open_session(folder):
    """On a plain socket, as libraries take longer than the daemon. What is refused is asked again, as they do."""
    opened = False
    while not opened:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"{folder}/s/rpc.sock")
            connection.sendall(_OPEN_SESSION)
            opened = _is_opened(connection.makefile("rb"))


def newcomers(folder, began):
    """Processes that open their first session, one after the other."""
    taken, (reader, writer) = {}, os.pipe()
    began()
    while not over.is_set():
        now, child = phase.value, os.fork()
        if child == 0:
            start = time.perf_counter()
            _open_session(folder)
            os.write(writer, struct.pack("d", time.perf_counter() - start))
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, "a newcomer failed"
        taken.setdefault(("a newcomer's OpenSession", now), []).extend(struct.unpack("d", os.read(reader, 8)))
    return taken


def holder(folder, began):
    """A process with sessions of many regions, each a page."""
    import rnicd

    made, each = [], given.regions // given.sessions
    for _ in range(given.sessions // _HOLDERS):
        session = rnicd.connect(f"{folder}/s")
        memory, regions = session.provision(each * _PAGE, [(index * _PAGE, _PAGE) for index in range(each)])
        assert all(isinstance(region, rnicd.Region) for region in regions), regions
        made.append((session, memory, regions))
    began()
    over.wait()
    return {}


class Clients:
    """Processes, each of which has begun when this is made."""

    def __init__(self, folder, *clients):
        self._queues = []
        for client in clients:
            self._queues.append(fork.SimpleQueue())
            fork.Process(target=self._run, args=(client, folder, self._queues[-1]), daemon=True).start()
        self._words()

    @staticmethod
    def _run(client, folder, queue):
        figures = client(folder, lambda: queue.put({}))
        queue.put({key: (max(taken) * 1e3, statistics.median(taken) * 1e3) for key, taken in figures.items()})
        os._exit(0)

    def _words(self):
        for queue in self._queues:
            wait_for("a client", lambda: not queue.empty())
        return [queue.get() for queue in self._queues]

    def end(self):
        """{(what, phase): (longest, median)} in milliseconds"""
        over.set()
        figures = {key: value for each in self._words() for key, value in each.items()}
        over.clear()
        return figures


def timed(node):
    """Milliseconds until a newer generation accepts: from its start, and from its first word to the older one."""
    began = time.time()
    log = node.take_over().log().splitlines()
    at = {line.split(" ", 2)[2][:15]: datetime.datetime.fromisoformat(line.split()[0]).timestamp() for line in log}
    return [(at["front door open"] - since) * 1e3 for since in (began, at["step number=7 w"])]


def give_back(node):
    """The newest generation ends, and the first one, which has sessions, serves again."""
    older, count = node.generations[0], node.generations[0].log().count("serves again")
    node.generations[-1].child.terminate()
    node.generations[-1].wait_for_end()
    wait_for("the older generation", lambda: older.log().count("serves again") > count)


def timed_and_back(node):
    phase.value = 0
    taken = timed(node)
    phase.value = 1
    give_back(node)
    return taken


def memory(*generations, file="smaps_rollup", kinds=("Anonymous", "Pss")):
    """MiB of all of them together: anonymous; all, with a part of each page that several processes have."""
    texts = [Path(f"/proc/{each.child.pid}/{file}").read_text() for each in generations]
    return [sum(int(re.search(rf"^{kind}:\s+(\d+)", text, re.M)[1]) for text in texts) / 1024 for kind in kinds]


def most_memory(node):
    """MiB: the most of both, while one takes over and for a second after. The daemons do not wait for this look."""
    older, newer, most, end = node.generations[0], node.start(), 0.0, float("inf")
    while time.monotonic() < end:
        most = max(most, *memory(older, newer, file="status", kinds=("RssAnon",)))
        end = min(end, time.monotonic() + 1) if newer.serves() else end
    return most


def row(*cells):
    print("| " + " | ".join(cell if isinstance(cell, str) else f"{cell:.1f}" for cell in cells) + " |", flush=True)


def table(*heads):
    print()
    row(*heads)
    row("---", *["---:"] * (len(heads) - 1))


def rows_of(figures, phases):
    for what in dict.fromkeys(what for what, _ in figures):
        for index, kind in enumerate(("longest", "median")):
            row(f"{what}, {kind}", *(figures[what, each][index] for each in phases))


def storm(node):
    """Transfers and newcomers, with and without hand-overs, with and without many other clients."""
    node.take_over()
    clients = Clients(node.folder, transfers, newcomers)

    def measure(first):
        phase.value, began = first, time.monotonic()
        for _ in range(given.handovers):
            node.take_over()
        phase.value = first + 1
        over.wait(time.monotonic() - began)

    measure(0)
    with Storm(node, given.clients) as others:
        measure(2)
    table("ms", f"{given.handovers} hand-overs", "as long without", "with a storm of clients", "the storm alone")
    rows_of(clients.end(), range(4))
    print(f"\nThe storm: {others.served} clients, {len(others.failures)} refused.")


def many(node):
    """A generation with many sessions and regions."""
    policy = node.folder / "policy.textproto"
    policy.write_text('tenant { name: "all" } default_tenant: "all"')
    node.flags += (f"--policy_file={policy}",)
    older = node.take_over()
    fresh = memory(older)
    Clients(node.folder, *[holder] * _HOLDERS)
    full, turns = memory(older), range(given.handovers)
    times = [[timed_and_back(node) for _ in turns]]
    most = most_memory(node)
    pair = memory(older, node.generations[-1])
    give_back(node)
    clients = Clients(node.folder, transfers, newcomers)
    began = time.monotonic()
    times.append([timed_and_back(node) for _ in turns])
    phase.value = 2
    over.wait(time.monotonic() - began)
    figures = clients.end()
    node.stop()
    node.take_over()
    times.append([timed(node) for _ in turns])
    table("ms", f"{given.sessions} sessions, {given.regions} regions", "the same under clients", "no session")
    for index, what in enumerate(("from the start to accepting", "nobody is accepted")):
        for kind, of in (("longest", max), ("median", statistics.median)):
            row(f"{what}, {kind}", *(of(each[index] for each in column) for column in times))
    table("ms", "hand-overs of these sessions", "ways back", "as long without")
    rows_of(figures, range(3))
    table("MiB", "older one alone", "newer one alone", "both", "beyond")
    for what, old, new, both in zip(("anonymous", "Pss", "anonymous, at most"), (*full, full[0]), (*fresh, fresh[0]),
                                    (*pair, most)):
        row(what, old, new, both, both - old - new)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("package", "rnicd", "rnicctl"):
        parser.add_argument(f"--{name}", required=True, type=os.path.abspath)
    for name, usual in (("handovers", 10), ("clients", 8), ("sessions", 1000), ("regions", 100_000)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.parse_args(namespace=given)
    sys.path.insert(0, given.package)
    # Once for all children.
    __import__("rnicd")
    for part in (storm, many):
        with tempfile.TemporaryDirectory(prefix="rnicd-") as folder:
            node = Node(given, Path(folder), *_FLAGS)
            try:
                part(node)
            finally:
                node.stop()


if __name__ == "__main__":
    main()
