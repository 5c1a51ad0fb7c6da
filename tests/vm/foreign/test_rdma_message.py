"""rdma_client and rdma_server: one message of 16 bytes each way."""

from __future__ import annotations

from foreign import LONG, OTHER, OWN, Inbox, finish, holds, meet, queue_pair

_PORT = "7471"
_MESSAGE = b"16 bytes of ours"
# The programs send what a static variable of theirs is.
_THEIRS = bytes(16)


def test_rdma_client_gets_an_answer(session, start):
    pair = queue_pair(session)
    inbox = Inbox(session, pair, 1)
    with session.listen(address=OWN, port=int(_PORT)) as listener:
        child = start("rdma_client", "-s", OWN, "-p", _PORT)
        request = listener.next_request(LONG)
        request.accept(pair)
        assert inbox.take() == _THEIRS
        pair.send(_MESSAGE)
        # It waits for the answer to its own disconnect.
        assert request.wait_for_disconnect(LONG) and holds(child, _MESSAGE)
        request.disconnect()
    assert "rdma_client: end 0" in finish(child)


def test_rdma_server_answers(session, start):
    pair = queue_pair(session)
    inbox = Inbox(session, pair, 1)
    child = start("rdma_server", "-s", OTHER, "-p", _PORT)
    connector = meet(session, pair, child, int(_PORT))
    pair.send(_MESSAGE)
    assert inbox.take() == _THEIRS
    assert connector.wait_for_disconnect(LONG) and holds(child, _MESSAGE)
    connector.disconnect()
    assert "rdma_server: end 0" in finish(child)
