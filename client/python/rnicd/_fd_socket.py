"""One exchange on fd.sock, which carries file descriptors; gRPC cannot."""

from __future__ import annotations

import os
import socket

from . import _failures, errors
from ._effects import Exchange
from ._proto import fd_channel_pb2

_PACKET_BYTES_MAX = 4096


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
        packet, received, flags, _ = socket.recv_fds(connection, _PACKET_BYTES_MAX, 1, socket.MSG_CMSG_CLOEXEC)
    if not packet or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        _close_all(received)
        raise ConnectionError("the daemon hung up, or its packet was cut")
    return packet, received


def _close_all(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
