"""ucmatose: ten messages of 100 bytes each way, the server's first. All that it has is one buffer."""

from __future__ import annotations

from foreign import LONG, OTHER, OWN, Inbox, finish, holds, meet, queue_pair
from rnicd import Send

_PORT, _COUNT, _SIZE = "7471", 10, 100
_MESSAGES = [f"message {number} of rnicd".encode().ljust(_SIZE, b"*") for number in range(_COUNT)]


def send_all(session, pair):
    memory = session.allocate(4096)
    region = memory.register()
    memory[: _COUNT * _SIZE] = b"".join(_MESSAGES)
    places = range(0, _COUNT * _SIZE, _SIZE)
    pair.post([Send(region[place : place + _SIZE]) for place in places]).wait(LONG)


def test_its_client_returns_the_last_message(session, start):
    pair = queue_pair(session)
    inbox = Inbox(session, pair, _COUNT)
    with session.listen(address=OWN, port=int(_PORT)) as listener:
        child = start("ucmatose", "-s", OWN, "-b", OTHER, "-p", _PORT)
        request = listener.next_request(LONG)
        request.accept(pair)
        send_all(session, pair)
        assert [inbox.take() for _ in range(_COUNT)] == [_MESSAGES[-1]] * _COUNT
        request.disconnect()
    said = finish(child)
    assert "data transfers complete" in said and "return status 0" in said


def test_its_server_takes_all_messages(session, start):
    pair = queue_pair(session)
    inbox = Inbox(session, pair, _COUNT)
    child = start("ucmatose", "-b", OTHER, "-p", _PORT)
    connector = meet(session, pair, child, int(_PORT))
    theirs = [inbox.take() for _ in range(_COUNT)]
    assert len(theirs[0]) == _SIZE and theirs == theirs[:1] * _COUNT
    send_all(session, pair)
    # It waits for the answer to its own disconnect.
    assert connector.wait_for_disconnect(LONG) and holds(child, _MESSAGES[-1])
    connector.disconnect()
    said = finish(child)
    assert "data transfers complete" in said and "return status 0" in said
