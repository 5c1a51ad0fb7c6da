"""What the peers of foreign programs have in common."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from pathlib import Path
from typing import Optional

import rnicd
from rnicd import Receive

from polling import wait_for

# The daemon's card, and the addresses of it and of the card at the other end.
_CARD = os.environ.get("RNICD_TEST_CARD", "rxa")
_NETWORK = {"rxa": "10.98.0", "swa": "10.99.0"}[_CARD]
OWN, OTHER, NETWORK = _NETWORK + ".1", _NETWORK + ".2", _NETWORK + ".0/24"
LONG = 60.0


def queue_pair(session: rnicd.Session) -> rnicd.QueuePair:
    """With the inline data that each card has."""
    return session.queue_pair(inline_bytes=64)


class Inbox:
    """Receives that are posted before a connection is made: a foreign program may send at once."""

    def __init__(self, session: rnicd.Session, pair: rnicd.QueuePair, count: int, size: int = 128) -> None:
        self._memory = session.allocate(4096)
        self._memory[:] = b"\xee" * len(self._memory)
        self._region = self._memory.register()
        places = range(0, count * size, size)
        self._open = deque((place, pair.post([Receive(self._region[place : place + size])])) for place in places)

    def take(self) -> bytes:
        """The oldest message."""
        place, pending = self._open.popleft()
        length = pending.wait(LONG)[0].bytes
        return bytes(self._memory[place : place + length])


def meet(session: rnicd.Session, pair: rnicd.QueuePair, child: "subprocess.Popen[str]", port: int) -> rnicd.Connector:
    """Connects to the program on the other card, once it listens."""

    def attempt() -> Optional[rnicd.Connector]:
        assert child.poll() is None, finish(child)
        try:
            return session.connect((OTHER, port), pair)
        except rnicd.Refused as refused:
            if refused.reason != "CONNECTION_REFUSED":
                raise
            return None

    return wait_for(f"port {port}", attempt)


def finish(child: "subprocess.Popen[str]") -> str:
    """What a program said that has ended well."""
    said, _ = child.communicate(timeout=LONG)
    assert child.returncode == 0, f"status {child.returncode}:\n{said}"
    return said


def holds(child: "subprocess.Popen[str]", wanted: bytes) -> bool:
    """Whether these bytes are in the memory of a program, which does not change it meanwhile. On iWARP the kernel
    answers its disconnect, so that it may have ended: then its own verdict is all that there is.
    """
    with open(f"/proc/{child.pid}/maps") as maps, open(f"/proc/{child.pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            # Queues of the card hold bytes that are under way.
            if " rw" in line and "/dev/" not in line:
                first, end = (int(bound, 16) for bound in line.split()[0].split("-"))
                memory.seek(first)
                if wanted in memory.read(end - first):
                    return True
    return _CARD == "swa" and not Path(f"/proc/{child.pid}/maps").read_text()
