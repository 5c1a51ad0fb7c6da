"""A client that meets an older generation of the daemon, which hands its sockets over to a newer one."""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
import os
import socket
import threading
import time
import types

import grpc
import pytest
import rnicd
import rnicd.aio
from rnicd import _attempts, _failures
from rnicd._proto import error_pb2

KINDS = pytest.mark.parametrize("kind", ["sync", "aio"])


def _refusal(reason):
    """The trailer of a refusal, as the daemon sends it."""
    status = error_pb2.RpcStatus()
    status.details.add().Pack(error_pb2.ErrorDetail(reason=error_pb2.ErrorReason.Value(f"ERROR_REASON_{reason}")))
    return (("grpc-status-details-bin", status.SerializeToString()),)


class OlderGeneration(grpc.GenericRpcHandler):
    """Refuses each OpenSession; before it does so, the next of `events` is called."""

    def __init__(self, folder, events):
        self.calls = []
        self._events = events
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(1), handlers=(self,))
        self._server.add_insecure_port(f"unix:{folder}/rpc.sock")
        self._server.start()

    def service(self, call):
        """Serves a call."""
        return grpc.unary_unary_rpc_method_handler(lambda _, context: self._refuse(call.method, context))

    def _refuse(self, method, context):
        self.calls.append(method.rpartition("/")[2])
        if self._events:
            self._events.pop(0)()
        context.set_trailing_metadata(_refusal("DAEMON_HANDED_OVER"))
        context.abort(grpc.StatusCode.UNAVAILABLE, "refused")

    def stop(self):
        """Ends it."""
        self._server.stop(None).wait()


@pytest.fixture
def hand_over(folder, daemon):
    """Whoever connects in the folder afterwards reaches the real daemon."""
    for name in ("rpc.sock", "fd.sock"):
        os.symlink(os.path.join(daemon.socket_dir, name), folder / f"{name}.newer")
    os.rename(folder / "fd.sock.newer", folder / "fd.sock")
    return lambda: os.replace(folder / "rpc.sock.newer", folder / "rpc.sock")


async def _open_async(folder, timeout):
    async with rnicd.aio.connect(str(folder), timeout=timeout) as session, session.allocate(4096) as memory:
        return len(memory)


def _open(kind, folder, timeout=30.0):
    if kind == "aio":
        return asyncio.run(_open_async(folder, timeout))
    with rnicd.connect(str(folder), timeout=timeout) as session, session.allocate(4096) as memory:
        return len(memory)


@KINDS
def test_a_refused_open_is_asked_again_over_a_new_connection(folder, hand_over, kind):
    older = OlderGeneration(folder, [lambda: None, hand_over])
    assert _open(kind, folder) == 4096
    assert older.calls == ["OpenSession"] * 2
    older.stop()


@KINDS
def test_a_connection_that_ends_before_the_answer_is_replaced(folder, hand_over, kind):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "rpc.sock"))
        listener.listen(1)

        def end_one():
            accepted, _ = listener.accept()
            hand_over()
            accepted.close()

        thread = threading.Thread(target=end_one)
        thread.start()
        assert _open(kind, folder) == 4096
        thread.join()


@KINDS
def test_without_a_newer_generation_the_refusal_comes_at_the_deadline(folder, monkeypatch, kind):
    now = [0.0]
    monkeypatch.setattr(_attempts, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    older = OlderGeneration(folder, [lambda: None, lambda: now.__setitem__(0, math.inf)])
    with pytest.raises(rnicd.Unavailable) as caught:
        _open(kind, folder)
    assert caught.value.detail.reason == "DAEMON_HANDED_OVER"
    assert older.calls == ["OpenSession"] * 2
    older.stop()


def _pauses(failure, end):
    attempts = _attempts.Attempts(end)
    found = []
    while len(found) < 10 and (pause := attempts.pause_after(failure)) is not None:
        found.append(pause)
    return found


def test_pauses_grow_and_a_closed_connection_is_replaced_a_few_times():
    far = time.monotonic() + 3600
    refusal = _failures.of_reason("DAEMON_HANDED_OVER")
    assert _pauses(refusal, far) == [0.0, 0.0, 0.0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.2, 0.2]
    assert _pauses(rnicd.Unavailable("no answer from rnicd: Socket closed"), far) == [0.0, 0.0, 0.0, 0.01, 0.02, 0.04]
    assert not _pauses(rnicd.Unavailable("no answer from rnicd: unix:rpc.sock: Connection refused"), far)
    assert not _pauses(_failures.of_reason("DAEMON_DRAINING"), far)
