"""A listener whose queue of connections is full. It has room as soon as a client has met that and is about to wait."""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import socket
import time

import pytest
import rnicd
import rnicd.aio
from rnicd import _attempts, _fd_socket
from rnicd._effects import Exchange

SOON = 0.05
NEVER_REACHED = 3600.0


class FullListener:
    """Listens at a path with the shortest queue that the kernel has, which is full."""

    def __init__(self, path, kind=socket.SOCK_STREAM):
        self._socket = socket.socket(socket.AF_UNIX, kind)
        self._socket.bind(str(path))
        self._socket.listen(0)
        self._fillers = []
        while True:
            filler = socket.socket(socket.AF_UNIX, kind)
            filler.setblocking(False)
            try:
                filler.connect(str(path))
            except BlockingIOError:
                filler.close()
                return
            self._fillers.append(filler)

    def close(self):
        """Leaves the file, as a daemon that was killed does."""
        for one in (self._socket, *self._fillers):
            one.close()


async def _open_async(folder, timeout):
    async with rnicd.aio.connect(str(folder), timeout=timeout) as session, session.allocate(4096) as memory:
        return len(memory)


def _open_sync(folder, timeout):
    with rnicd.connect(str(folder), timeout=timeout) as session, session.allocate(4096) as memory:
        return len(memory)


def _open(kind, folder, timeout):
    return asyncio.run(_open_async(folder, timeout)) if kind == "aio" else _open_sync(folder, timeout)


@pytest.fixture
def met(monkeypatch):
    """Functions to call, each at the next pause of a client."""
    waiting = []
    original = _attempts.pauses

    def pauses(end):
        for pause in original(end):
            if waiting:
                waiting.pop(0)()
            yield pause

    monkeypatch.setattr(_attempts, "pauses", pauses)
    return waiting


@pytest.mark.parametrize("kind", ["sync", "aio"])
def test_a_client_gets_in_when_there_is_room(folder, daemon, met, kind):
    listeners = []
    for name, of_packets in (("rpc.sock", False), ("fd.sock", True)):
        listener = FullListener(folder / name, socket.SOCK_SEQPACKET if of_packets else socket.SOCK_STREAM)
        listeners.append(listener)
        os.symlink(os.path.join(daemon.socket_dir, name), folder / f"{name}.open")
        met.append(lambda name=name: os.replace(folder / f"{name}.open", folder / name))
    assert _open(kind, folder, NEVER_REACHED) == 4096
    assert not met
    for listener in listeners:
        listener.close()


@pytest.mark.parametrize("kind", ["sync", "aio"])
def test_a_queue_that_stays_full_is_a_timeout(folder, kind):
    listener = FullListener(folder / "rpc.sock")
    with pytest.raises(rnicd.TimedOut, match="queue of connections was full"):
        _open(kind, folder, SOON)
    listener.close()


def test_a_queue_of_packets_that_stays_full_is_a_timeout(folder):
    listener = FullListener(folder / "fd.sock", socket.SOCK_SEQPACKET)
    with pytest.raises(rnicd.TimedOut, match="queue of connections was full"):
        _fd_socket.exchange(str(folder / "fd.sock"), Exchange(b"ticket"), SOON)
    listener.close()


@pytest.mark.parametrize("kind", ["sync", "aio"])
def test_a_file_without_a_listener_is_unavailable_at_once(folder, kind):
    FullListener(folder / "rpc.sock").close()
    with pytest.raises(rnicd.Unavailable, match="refused"):
        _open(kind, folder, NEVER_REACHED)


def test_pauses_are_of_milliseconds_and_end_in_time():
    lengths = list(itertools.islice(_attempts.pauses(math.inf), 9))
    assert lengths == sorted(lengths) and (lengths[0], lengths[-1]) == (0.002, 0.01)
    with pytest.raises(rnicd.TimedOut):
        next(_attempts.pauses(time.monotonic()))
