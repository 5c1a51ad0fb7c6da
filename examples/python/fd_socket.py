"""One exchange on fd.sock, which carries file descriptors; gRPC cannot."""

import socket

_PACKET_BYTES_MAX = 4096
_TIMEOUT_SECONDS = 30


def fetch(path, ticket, messages):
    """Redeems the ticket of AllocateMemory: returns the descriptor of the memory file, which the caller closes."""
    request = messages.fd_channel.FdRequest(fd_ticket=ticket, fd_count=0).SerializeToString()
    packet, descriptors = exchange(path, request, ())
    reply = messages.fd_channel.FdReply.FromString(packet)
    if reply.HasField("error"):
        raise messages.refusal(reply.error)
    return descriptors[0]


def send(path, ticket, descriptor, messages):
    """Redeems the ticket of ImportMemory: sends a memfd to the daemon."""
    request = messages.fd_channel.FdRequest(fd_ticket=ticket, fd_count=1).SerializeToString()
    packet, _ = exchange(path, request, (descriptor,))
    reply = messages.fd_channel.FdReply.FromString(packet)
    if reply.HasField("error"):
        raise messages.refusal(reply.error)


def exchange(path, request, descriptors):
    """Sends one packet and receives one, each with its descriptors; then the daemon closes the connection."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(_TIMEOUT_SECONDS)
        connection.connect(path)
        if descriptors:
            socket.send_fds(connection, [request], descriptors)
        else:
            connection.sendall(request)
        packet, received, flags, _ = socket.recv_fds(connection, _PACKET_BYTES_MAX, 1)
    if not packet or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        raise ConnectionError("the daemon hung up on fd.sock, or its packet was cut")
    return packet, received
