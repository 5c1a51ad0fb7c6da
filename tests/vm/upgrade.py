"""Newer generations of the daemon take over on rxa, while memory that older ones registered is written and read.

usage, in the guest with the module rnicd_fr: BUILD=build/release upgrade.py

Each generation gets a client, a process of its own, and each client a program on rxb that has nothing of rnicd. Both
write and read the other's memory without a pause, and compare every byte. The program uses the tokens of a region, and
of fast registrations by the kernel's module, a new one in each round.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

sys.dont_write_bytecode = True
REPO = Path(__file__).resolve().parents[2]
BUILD = REPO / os.environ["BUILD"]
sys.path[:0] = [str(BUILD / "python"), str(REPO / "tests/support"), str(REPO / "tests/upgrade")]

import rnicd
from generations import Node
from polling import wait_for

PROGRAMS = SimpleNamespace(rnicd=BUILD / "daemon/app/rnicd", rnicctl=BUILD / "client/ctl/rnicctl")
PEER = (BUILD / "tests/vm/foreign_peer/rnicd_foreign_peer", "--device=rxb", "--gid=ipv4")
# A registration of a probe would be counted as one that is left.
FLAGS = ("--provider=verbs", "--verbs_devices=rxa", "--verbs_fast_engine=kernel", "--health_interval_ms=3600000")
POLICY = 'tenant { name: "guest" connections { connect { prefix: "::/0" } } } default_tenant: "guest"'
HANDOVERS, SIZE, SEEDS = 3, 8192, 3
# As the program makes them of LENGTH:SEED.
PATTERNS = [bytes((13 * at + at // 4096 * 5 + 101 * seed) % 251 for at in range(SIZE)) for seed in range(SEEDS)]
# A fork has imported rnicd, which takes seconds in the guest.
FORKS = multiprocessing.get_context("fork")


def rounds(session, peer):
    """Plays a round at each step."""

    def ask(line):
        print(line, file=peer.stdin, flush=True)
        answer = peer.stdout.readline().strip()
        assert answer.startswith("ok"), f"{line}: {answer}"
        return answer

    pair, memory = session.queue_pair(), session.allocate(3 * SIZE)
    pair.connect(peer.stdout.readline().strip().encode())
    ask(pair.address.decode())
    region, fast, mapping = memory.register(remote="rw"), session.fast_region(SIZE // 4096), memory.map_pages(0, SIZE)
    described = [ask(f"fill 0 {SIZE}:{seed}") and ask(f"peek 0 {SIZE}") for seed in range(SEEDS)]
    place = dict(field.split("=") for field in ask("mr").split()[1:])
    theirs = rnicd.RemoteRegion(int(place["address"], 16), SIZE, int(place["rkey"], 16))
    number = 0
    while True:
        pattern = PATTERNS[number % SEEDS]
        registered = pair.fast_register(fast, mapping)
        memory[SIZE : 2 * SIZE] = pattern
        own = pair.post([rnicd.Write(region[SIZE : 2 * SIZE], theirs), rnicd.Read(region[2 * SIZE :], theirs)])
        for token in (registered.token, region.remote.token):
            number += 1
            ask(f"write {memory.address} {token} {SIZE}:{number % SEEDS}")
            assert bytes(memory[:SIZE]) == PATTERNS[number % SEEDS]
            assert ask(f"read {memory.address} {token} {SIZE}") == described[number % SEEDS]
        own.wait()
        assert bytes(memory[2 * SIZE :]) == pattern
        pair.invalidate(fast)
        yield


def serve(socket_dir, data_path, orders):
    """A client. Answers an order after the round that is being played."""
    # For the daemons, which keep newcomers waiting during a hand-over: an emulated machine has little time.
    os.nice(10)
    peer = subprocess.Popen(PEER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with rnicd.connect(socket_dir, data_path=data_path, timeout=60) as session:
        for count, _ in enumerate(rounds(session, peer), start=1):
            if orders.poll():
                if not orders.recv():
                    break
                orders.send(count)
    peer.communicate()


class Client:
    def __init__(self, socket_dir, data_path):
        self._orders, theirs = FORKS.Pipe()
        self.process = FORKS.Process(target=serve, args=(socket_dir, data_path, theirs))
        self.process.start()
        theirs.close()
        self.rounds()

    def rounds(self):
        self._orders.send(True)
        return self._orders.recv()

    def end(self):
        self.rounds()
        self._orders.send(False)
        self.process.join()
        assert self.process.exitcode == 0


def kernel_objects():
    return subprocess.run(["rdma", "resource"], check=True, capture_output=True, text=True).stdout


def hand_over(node, stack):
    clients = []

    def start_client():
        clients.append(Client(f"{node.folder}/s", ("rings", "calls")[len(clients) % 2]))
        stack.callback(clients[-1].process.kill)

    node.take_over()
    idle = kernel_objects()
    start_client()
    for _ in range(HANDOVERS):
        before, began = [client.rounds() for client in clients], time.monotonic()
        node.take_over()
        after = [client.rounds() for client in clients]
        print(f"{time.monotonic() - began:.1f} s; rounds of each client: {before} -> {after}", flush=True)
        start_client()
    code, sessions = node.run("sessions")
    print(sessions, kernel_objects(), sep="")
    assert [line.split()[-1] for line in sessions.splitlines()[1:]] == ["4", "3", "2", "1"], code
    for client in clients:
        client.end()
    for generation in node.generations[:-1]:
        assert generation.wait_for_end() == 0, generation.log()
    wait_for(f"as many objects as at first: {idle}", lambda: kernel_objects() == idle)
    start_client()
    clients[-1].end()
    node.generations[-1].child.terminate()
    assert node.generations[-1].wait_for_end() == 0, node.generations[-1].log()


def main():
    with tempfile.TemporaryDirectory(prefix="rnicd-") as folder, ExitStack() as stack:
        policy = Path(folder) / "policy.textproto"
        policy.write_text(POLICY)
        node = Node(PROGRAMS, Path(folder), *FLAGS, f"--policy_file={policy}")
        stack.callback(node.stop)
        hand_over(node, stack)


if __name__ == "__main__":
    main()
