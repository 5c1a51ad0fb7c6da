"""One exchange on fd.sock, which carries file descriptors; gRPC cannot."""

from __future__ import annotations

import array
import os
import socket

from . import _failures, errors
from ._effects import Exchange
from ._proto import fd_channel_pb2

_PACKET_BYTES_MAX = 4096
_DESCRIPTOR_BYTES = array.array("i").itemsize


def exchange(path: str, wanted: Exchange, seconds: float) -> int:
    """Sends the ticket, with a descriptor or without; returns the received descriptor, which the caller closes, or -1.

    Errors: Refused, Unavailable, TimedOut.
    """
    request = fd_channel_pb2.FdRequest(fd_ticket=wanted.ticket, fd_count=0 if wanted.descriptor < 0 else 1)
    try:
        packet, received = _talk(path, request.SerializeToString(), wanted.descriptor, seconds)
    except socket.timeout as failure:
        raise errors.TimedOut("no answer on fd.sock in time") from failure
    except OSError as failure:
        raise errors.Unavailable(f"no answer on fd.sock: {failure.strerror or failure}") from failure
    reply = fd_channel_pb2.FdReply.FromString(packet)
    if reply.HasField("error"):
        _close_all(received)
        raise _failures.of_detail(reply.error)
    return received[0] if received else -1


def _talk(path: str, request: bytes, descriptor: int, seconds: float) -> tuple[bytes, list[int]]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(seconds)
        connection.connect(path)
        if descriptor >= 0:
            socket.send_fds(connection, [request], [descriptor])
        else:
            connection.sendall(request)
        packet, received, flags = _receive(connection)
    if not packet or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        _close_all(received)
        raise ConnectionError("the daemon hung up, or its packet was cut")
    return packet, received


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
