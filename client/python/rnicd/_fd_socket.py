"""One exchange on fd.sock, which carries file descriptors; gRPC cannot."""

from __future__ import annotations

import array
import contextlib
import os
import socket
import time

from . import _attempts, _failures, errors
from ._effects import Exchange
from ._proto import fd_channel_pb2

_PACKET_BYTES_MAX = 4096
# A timeout of 0 would mean not to wait at all.
_SECONDS_MIN = 1e-3
_DESCRIPTOR_BYTES = array.array("i").itemsize


def exchange(path: str, wanted: Exchange, seconds: float) -> int:
    """As `exchange_once`; waits and tries again while the daemon asks for that and the time allows it."""
    end = time.monotonic() + seconds
    while True:
        try:
            return exchange_once(path, wanted, end)
        except errors.Refused as refused:
            time.sleep(pause_after(refused, end))


def pause_after(refused: errors.Refused, end: float) -> float:
    """Seconds until the next try. Raises `refused` where there is none before `end`."""
    if not refused.retry_after or time.monotonic() + refused.retry_after >= end:
        raise refused
    return refused.retry_after


def exchange_once(path: str, wanted: Exchange, end: float) -> int:
    """Sends the ticket, with a descriptor or without; returns the received descriptor, which the caller closes, or -1.

    Errors: Refused, Unavailable, TimedOut.
    """
    request = fd_channel_pb2.FdRequest(fd_ticket=wanted.ticket, fd_count=0 if wanted.descriptor < 0 else 1)
    try:
        packet, received = _talk(path, request.SerializeToString(), wanted.descriptor, end)
    except errors.TimedOut:
        raise
    except socket.timeout as failure:
        raise errors.TimedOut("no answer on fd.sock in time") from failure
    except OSError as failure:
        raise errors.Unavailable(f"no answer on fd.sock: {failure.strerror or failure}") from failure
    reply = fd_channel_pb2.FdReply.FromString(packet)
    if reply.HasField("error"):
        _close_all(received)
        raise _failures.of_detail(reply.error)
    return received[0] if received else -1


def _talk(path: str, request: bytes, descriptor: int, end: float) -> tuple[bytes, list[int]]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        _connect(connection, path, end)
        connection.settimeout(max(end - time.monotonic(), _SECONDS_MIN))
        # A connection that the daemon has refused may be closed already. Its reply says why; if the request was still
        # sent, the first read reports the loss of that, once.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            if descriptor >= 0:
                socket.send_fds(connection, [request], [descriptor])
            else:
                connection.sendall(request)
        try:
            packet, received, flags = _receive(connection)
        except ConnectionResetError:
            packet, received, flags = _receive(connection)
        # Until the daemon closes the connection it may have a descriptor of the file, and would charge for released
        # memory.
        with contextlib.suppress(OSError):
            connection.recv(1)
    if not packet or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        _close_all(received)
        raise ConnectionError("the daemon hung up, or its packet was cut")
    return packet, received


def _connect(connection: socket.socket, path: str, end: float) -> None:
    """Not by a connect that blocks: a signal's handler would make Python take an interrupted one for connected."""
    connection.setblocking(False)
    pauses = _attempts.pauses(end)
    while True:
        try:
            connection.connect(path)
            return
        except BlockingIOError:
            time.sleep(next(pauses))


def _receive(connection: socket.socket) -> tuple[bytes, list[int], int]:
    """A packet with at most one descriptor, which other programs do not inherit: socket.recv_fds ignores that flag."""
    room = socket.CMSG_SPACE(_DESCRIPTOR_BYTES)
    packet, ancillary, flags, _ = connection.recvmsg(_PACKET_BYTES_MAX, room, socket.MSG_CMSG_CLOEXEC)
    received = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            received.frombytes(data[: len(data) - len(data) % _DESCRIPTOR_BYTES])
    return packet, list(received), flags


def _close_all(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
