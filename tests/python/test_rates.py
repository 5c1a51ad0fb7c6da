"""More connections to fd.sock than the daemon allows: the package waits for as long as the daemon asks."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest
import rnicd
import rnicd.aio
from rnicd import _failures, _fd_socket
from rnicd._effects import Exchange
from rnicd._proto import error_pb2, fd_channel_pb2

from daemon import Daemon

PAGE = 4096


@pytest.fixture
def slow(folder):
    """A daemon that accepts 8 connections a second, after a burst of 64."""
    daemon = Daemon(folder, "--connections_per_second=8")
    yield daemon
    daemon.stop()


def test_allocations_above_the_rate_wait(slow):
    with rnicd.connect(slow.socket_dir) as session:
        for _ in range(80):
            with session.allocate(PAGE):
                pass


def test_a_batch_above_the_rate_is_whole(slow):
    with rnicd.connect(slow.socket_dir) as session:
        batch = session.allocate_batch([PAGE] * 80)
        assert all(isinstance(one, rnicd.Memory) for one in batch)


def test_asyncio_waits_too_and_leaves_the_loop_alone(slow):
    async def main():
        async with rnicd.aio.connect(slow.socket_dir) as session:
            batches = await asyncio.gather(*(session.allocate_batch([PAGE] * 27) for _ in range(3)))
            assert all(isinstance(one, rnicd.aio.Memory) for batch in batches for one in batch)

    asyncio.run(main())


def test_an_item_whose_descriptor_is_refused_does_not_stop_the_others(session, monkeypatch):
    exchange, turns = _fd_socket.exchange, iter(range(100))

    def refuse_the_second(*arguments):
        if next(turns) == 1:
            raise _failures.of_detail(error_pb2.ErrorDetail(reason=error_pb2.ERROR_REASON_RATE_LIMITED, limit=256))
        return exchange(*arguments)

    monkeypatch.setattr(_fd_socket, "exchange", refuse_the_second)
    first, refused, third = session.allocate_batch([PAGE, 2 * PAGE, 3 * PAGE])
    assert (len(first), len(third)) == (PAGE, 3 * PAGE)
    assert isinstance(refused, rnicd.QuotaExceeded) and (refused.reason, refused.limit) == ("RATE_LIMITED", 256)
    with first.register(remote="r"), third.register(remote="r"):
        # What the refused one had is released before the next object is made.
        assert session.usage().session["memory_objects"].used == 2


class Refusing:
    """An fd.sock that refuses the first connections, before it reads their request."""

    def __init__(self, path: str, refusals: int, retry_after_ms: int) -> None:
        self._detail = error_pb2.ErrorDetail(
            reason=error_pb2.ERROR_REASON_RATE_LIMITED, ntstatus=0xC000009A, retry_after_ms=retry_after_ms
        )
        self._refusals = refusals
        self.connections = 0
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(path)
        self._listener.listen()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                if self.connections <= self._refusals:
                    connection.sendall(fd_channel_pb2.FdReply(error=self._detail).SerializeToString())
                else:
                    connection.recv(_fd_socket._PACKET_BYTES_MAX)
                    connection.sendall(fd_channel_pb2.FdReply(message="ok").SerializeToString())

    def __enter__(self) -> Refusing:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()


def test_a_refused_exchange_is_made_again_after_the_time_that_the_daemon_names(folder):
    path = str(folder / "fd.sock")
    with Refusing(path, 30, 1) as daemon:
        assert _fd_socket.exchange(path, Exchange(b"ticket"), 60) == -1
    assert daemon.connections == 31


def test_a_time_that_is_too_long_is_not_waited_for(folder):
    path = str(folder / "fd.sock")
    with Refusing(path, 1, 3_600_000) as daemon:
        with pytest.raises(rnicd.QuotaExceeded) as caught:
            _fd_socket.exchange(path, Exchange(b"ticket"), 60)
    assert (caught.value.reason, caught.value.retry_after, daemon.connections) == ("RATE_LIMITED", 3600.0, 1)
