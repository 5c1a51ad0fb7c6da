"""ib_write_bw -R of perftest 4.5: a connection for control, with one SEND each way in turn, and one for its writes."""

from __future__ import annotations

import re
import struct

from foreign import LONG, OTHER, OWN, Inbox, finish, holds, meet
from rnicd import RemoteRegion

_PORT, _SIZE, _COUNT = "18515", 4096, 5
_OPTIONS = ("-R", "-F", "-p", _PORT, "-s", str(_SIZE), "-n", str(_COUNT))
# Version, pages of a buffer that it goes through, cache line, MTU.
_HELLO = (b"6.06".ljust(16, b"\0"), struct.pack("!i", 4096), struct.pack("!i", 64), b"5\0")
# LID, reads, number and sequence of the queue pair, token, address, GID, shared receives, place of the GID.
_KEYS = struct.Struct("!4iI4xQ16sIi")
# Size, count, and bandwidth and rates, which the server prints.
_REPORT = (struct.pack("!Q", _SIZE), struct.pack("!Q", _COUNT), *[struct.pack("!d", 7.0)] * 3)
_ROW = re.compile(rf"^ {_SIZE} +{_COUNT} ", re.MULTILINE)


def keys_of(region):
    return _KEYS.pack(0, 0, 0, 0, region.token, region.address, bytes(16), 0, 0)


def answer(pair, inbox, words):
    """Hears the client, and says its own."""
    heard = inbox.take()
    pair.send(words)
    return heard


def ask(pair, inbox, words):
    """Speaks first, as a client."""
    pair.send(words)
    return inbox.take()


def test_its_client_writes(session, start):
    control, pair, memory = session.queue_pair(), session.queue_pair(), session.allocate(2 * _SIZE)
    region = memory.register(remote="w")
    inbox, keys = Inbox(session, control, 24), keys_of(region.remote)
    with session.listen(address=OWN, port=int(_PORT)) as listener:
        child = start("ib_write_bw", *_OPTIONS, "-d", "rxb", "--source_ip", OTHER, OWN)
        listener.next_request(LONG).accept(control)
        assert [answer(control, inbox, words) for words in _HELLO][0] == _HELLO[0]
        answer(control, inbox, keys)
        request = listener.next_request(LONG)
        request.accept(pair)
        for _ in range(4):
            answer(control, inbox, keys)
        assert len(inbox.take()) == _KEYS.size
        # All is written, and it waits for a word.
        written = bytes(memory[:_SIZE])
        assert any(written) and holds(child, written) and not any(memory[_SIZE:])
        control.send(keys)
        assert [answer(control, inbox, words) for words in _REPORT][:2] == list(_REPORT[:2])
        answer(control, inbox, keys)
        assert request.wait_for_disconnect(LONG)
        request.disconnect()
        said = finish(child)
    assert _ROW.search(said), said


def test_its_server_is_written_to(session, start):
    control, pair, memory = session.queue_pair(), session.queue_pair(), session.allocate(_SIZE)
    region = memory.register()
    inbox, unused = Inbox(session, control, 24), keys_of(RemoteRegion(0, 0, 0))
    child = start("ib_write_bw", *_OPTIONS, "-d", "rxb", "--source_ip", OTHER)
    meet(session, control, child, int(_PORT))
    assert [ask(control, inbox, words) for words in _HELLO][0] == _HELLO[0]
    ask(control, inbox, unused)
    data = meet(session, pair, child, int(_PORT))
    ask(control, inbox, unused)
    fields = _KEYS.unpack([ask(control, inbox, unused) for _ in range(3)][0])
    target = RemoteRegion(fields[5], _SIZE, fields[4])
    memory[:] = message = b"written by rnicd" * (_SIZE // 16)
    assert not holds(child, message)
    pair.write(region, target)
    assert holds(child, message)
    ask(control, inbox, unused)
    for words in _REPORT:
        ask(control, inbox, words)
    ask(control, inbox, unused)
    assert data.wait_for_disconnect(LONG)
    said = finish(child)
    assert _ROW.search(said), said
