"""rping: the client advertises bytes, the server reads them and writes them back elsewhere."""

from __future__ import annotations

import struct

from foreign import LONG, OTHER, OWN, Inbox, finish, meet, queue_pair
from rnicd import RemoteRegion

_ADVERTISEMENT = struct.Struct("!QII")
_PORT, _ROUNDS, _SIZE = "7174", 3, 64


def ping(number):
    """The bytes of a round, as rping makes them."""
    head = b"rdma-ping-%d: " % number
    return head + bytes(65 + (number + place) % 58 for place in range(_SIZE - len(head) - 1)) + b"\0"


def advertised(message):
    address, token, length = _ADVERTISEMENT.unpack(message)
    return RemoteRegion(address, length, token)


def advertise(pair, remote):
    pair.send(_ADVERTISEMENT.pack(remote.address, remote.token, len(remote)))


def test_its_client_gets_back_what_it_advertises(session, start):
    pair, memory = queue_pair(session), session.allocate(4096)
    region = memory.register()
    inbox = Inbox(session, pair, 2 * _ROUNDS)
    with session.listen(address=OWN, port=int(_PORT)) as listener:
        child = start("rping", "-c", "-Vv", "-a", OWN, "-I", OTHER, "-p", _PORT, "-C", str(_ROUNDS), "-S", str(_SIZE))
        request = listener.next_request(LONG)
        assert request.connection_data().outbound_reads == 1 and request.addresses().peer[0] == OTHER
        request.accept(pair)
        for number in range(_ROUNDS):
            pair.read(region[:_SIZE], advertised(inbox.take()))
            assert bytes(memory[:_SIZE]) == ping(number)
            pair.send(bytes(_ADVERTISEMENT.size))
            pair.write(region[:_SIZE], advertised(inbox.take()))
            pair.send(bytes(_ADVERTISEMENT.size))
        assert request.wait_for_disconnect(LONG)
        request.disconnect()
    printed = [line for line in finish(child).splitlines() if line.startswith("ping data: ")]
    assert printed == [f"ping data: {ping(number)[:-1].decode()}" for number in range(_ROUNDS)]


def test_its_server_returns_what_is_advertised(session, start):
    pair, memory = queue_pair(session), session.allocate(4096)
    region = memory.register(remote="rw")
    inbox = Inbox(session, pair, 2 * _ROUNDS)
    child = start("rping", "-s", "-v", "-a", OTHER, "-p", _PORT, "-S", str(_SIZE))
    connector = meet(session, pair, child, int(_PORT))
    texts = [f"from rnicd, round {number}".ljust(_SIZE - 1, "*") for number in range(_ROUNDS)]
    for text in texts:
        memory[: 2 * _SIZE] = text.encode().ljust(2 * _SIZE, b"\0")
        advertise(pair, region.remote[:_SIZE])
        inbox.take()
        advertise(pair, region.remote[_SIZE : 2 * _SIZE])
        inbox.take()
        assert bytes(memory[_SIZE : 2 * _SIZE]) == bytes(memory[:_SIZE])
    connector.disconnect()
    printed = [line for line in finish(child).splitlines() if line.startswith("server ping data: ")]
    assert printed == [f"server ping data: {text}" for text in texts]
