"""Listeners and connectors, of both clients."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import rnicd
import rnicd.aio

import programs

PAGE = 4096
_LONG = 60.0


@pytest.fixture
def other(daemon):
    """Another session: the one that connects."""
    with rnicd.connect(label="other") as opened:
        yield opened


@pytest.fixture
def side():
    """A thread for the side that waits."""
    with ThreadPoolExecutor(1) as pool:
        yield pool


def accept(listener, pair, **options):
    request = listener.next_request(_LONG)
    request.accept(pair, **options)
    return request


def refusal(use):
    with pytest.raises(rnicd.Refused) as caught:
        use()
    return caught.value.reason


def connected(session, other, side):
    """A connector of each session."""
    listener, pair = session.listen("pair"), session.queue_pair()
    accepted = side.submit(accept, listener, pair)
    return accepted, other.connect("pair", other.queue_pair()), pair


def test_sessions_meet_by_name_and_exchange_bytes(session, other, side):
    with session.allocate(PAGE) as memory, memory.register(remote="rw") as region, session.queue_pair() as pair:
        with session.listen("array") as listener, other.queue_pair() as peer:
            assert listener.full_name.endswith("/array") and listener.address[1] >= 49152
            accepted = side.submit(accept, listener, pair, private_data=region.remote.to_bytes())
            with other.connect(listener.full_name, peer, private_data=b"hello") as connector:
                remote = rnicd.RemoteRegion.from_bytes(connector.connection_data().private_data[:24])
                peer.write(b"bytes", remote)
                assert bytes(memory[:5]) == b"bytes"
                accepted.result().close()


def test_sessions_meet_by_address(session, other, side):
    address, port = session.listen().address
    listener = session.listen(address=address, port=port - 1 if port > 49152 else port + 1)
    accepted = side.submit(accept, listener, session.queue_pair())
    connector = other.connect(listener.address, other.queue_pair(), inbound_reads=1, outbound_reads=2)
    ends, answer = connector.addresses(), connector.connection_data()
    assert ends.peer == listener.address and (answer.inbound_reads, answer.outbound_reads) == (1, 2)
    seen = accepted.result().addresses()
    assert (seen.local, seen.peer) == (ends.peer, ends.local)


def test_the_request_says_what_the_peer_offers(session, other, side):
    listener = session.listen("offers")
    connecting = side.submit(other.connect, "offers", other.queue_pair(), private_data=b"who", inbound_reads=3)
    request = listener.next_request(_LONG)
    offer = request.connection_data()
    assert offer.private_data.startswith(b"who") and offer.outbound_reads == 3
    request.accept(session.queue_pair(), outbound_reads=0)
    assert connecting.result().connection_data().inbound_reads == 0
    assert refusal(request.connection_data) == "CONNECTOR_STATE"


def test_a_rejection_has_words_and_may_be_tried_again(session, other, side):
    listener, pair = session.listen("door"), other.queue_pair()
    with other.connector() as connector:
        rejected = side.submit(lambda: listener.next_request(_LONG).reject(b"too early"))
        assert refusal(lambda: connector.connect("door", pair)) == "CONNECTION_REFUSED"
        rejected.result()
        assert connector.connection_data().private_data.startswith(b"too early")
        accepted = side.submit(accept, listener, session.queue_pair())
        connector.connect("door", pair)
        connector.complete()
        accepted.result()


def test_an_answer_may_be_rejected(session, other, side):
    listener = session.listen("answers")
    accepted = side.submit(accept, listener, session.queue_pair())
    with other.connector() as connector:
        connector.connect("answers", other.queue_pair())
        connector.reject()
    assert refusal(accepted.result) in ("CONNECTION_REFUSED", "CONNECTION_ABORTED")


def test_a_side_hears_that_the_other_disconnects(session, other, side):
    told = threading.Event()
    listener, pair = session.listen("ends"), session.queue_pair()
    accepted = side.submit(accept, listener, pair, on_disconnected=told.set)
    connector = other.connect("ends", other.queue_pair())
    request = accepted.result()
    assert not request.peer_gone and not request.wait_for_disconnect(0)
    leaving = side.submit(connector.disconnect)
    assert request.wait_for_disconnect(_LONG) and told.wait(_LONG) and request.peer_gone
    request.disconnect()
    leaving.result()
    assert not connector.peer_gone and pair.state() == "error"


def test_a_closed_connector_ends_the_connection(session, other, side):
    accepted, connector, _ = connected(session, other, side)
    connector.close()
    assert accepted.result().wait_for_disconnect(_LONG)
    assert connector.closed and not accepted.result().closed


def test_a_killed_peer_is_gone(daemon, session, side):
    listener, pair = session.listen("victim"), session.queue_pair()
    child = programs.start(
        """
        import rnicd
        s = rnicd.connect()
        pair = s.queue_pair()
        connector = s.connect("victim", pair)
        print("connected", flush=True)
        signal.pause()
        """
    )
    request = accept(listener, pair)
    programs.wait_for_line(child, "connected")
    child.kill()
    child.communicate()
    assert request.wait_for_disconnect(_LONG)


def test_listeners_are_told_apart(session, other, side):
    one, two = session.listen("one"), session.listen("two")
    assert refusal(lambda: session.listen("one")) == "NAME_TAKEN"
    assert refusal(lambda: session.listen(port=one.address[1])) == "ADDRESS_IN_USE"
    assert refusal(lambda: other.connect("three", other.queue_pair())) == "NAME_NOT_FOUND"
    accepted = side.submit(accept, two, session.queue_pair())
    other.connect("two", other.queue_pair())
    accepted.result()
    with pytest.raises(rnicd.TimedOut):
        one.next_request(0)


def test_a_paused_listener_refuses(session, other, side):
    listener, pair = session.listen("paused"), other.queue_pair()
    listener.pause()
    assert refusal(lambda: other.connect("paused", pair)) == "CONNECTION_REFUSED"
    listener.resume()
    accepted = side.submit(accept, listener, session.queue_pair())
    other.connect("paused", pair)
    accepted.result()


def test_requests_that_nobody_takes_are_refused_with_the_listener(session, other, side):
    listener = session.listen("closing")
    connecting = side.submit(refusal, lambda: other.connect("closing", other.queue_pair()))
    # It is here, and the program has not asked for it.
    taken = listener._requests.get(timeout=_LONG)
    listener._requests.put(taken)
    listener.close()
    assert connecting.result() == "CONNECTION_REFUSED"
    listener.close()


def test_a_connector_that_nobody_keeps_ends_with_its_pair(session, other, side):
    listener = session.listen("kept")
    with other.queue_pair() as pair:
        accepted = side.submit(accept, listener, session.queue_pair())
        other.connect("kept", pair)
        gc.collect()
        assert not accepted.result().wait_for_disconnect(0)
    assert accepted.result().wait_for_disconnect(_LONG)


def test_dropped_listeners_give_their_name_back(session):
    session.listen("dropped")
    gc.collect()
    session.listen("dropped").close()


def test_a_listener_ends_with_the_session(daemon, side):
    with rnicd.connect() as session:
        waiting = side.submit(session.listen("last").next_request, _LONG)
        daemon.kill()
        with pytest.raises(rnicd.SessionLost):
            waiting.result()


def test_what_is_no_peer_is_refused_before_the_call(session):
    with session.connector() as connector, session.queue_pair() as pair:
        for peer in (5, ("10.0.0.1",), ("10.0.0.1", "port")):
            with pytest.raises(rnicd.InvalidArgument):
                connector.connect(peer, pair)
        with pytest.raises(rnicd.InvalidArgument):
            connector.connect("name", "pair")
    with pytest.raises(rnicd.Closed):
        connector.complete()


def test_rnicctl_lists_both_sides(daemon, session, other, side):
    accepted, connector, _ = connected(session, other, side)
    accepted.result()
    assert "/pair" in daemon.ask("listeners").stdout
    table = daemon.ask("connections").stdout
    assert table.count(" connected ") == 2 and " passive " in table and " active " in table, table
    assert connector.addresses().local[0] in table


def test_coroutines_meet(daemon):
    async def story():
        async with rnicd.aio.connect() as s, s.listen(
            "loop"
        ) as listener, s.queue_pair() as pair, s.queue_pair() as peer:
            connecting = asyncio.ensure_future(_connect(s, peer))
            async with await listener.next_request(_LONG) as request:
                await request.accept(pair, private_data=b"yes")
                async with await connecting as connector:
                    assert (await connector.connection_data()).private_data.startswith(b"yes")
                    assert (await connector.addresses()).peer == listener.address
                    leaving = asyncio.ensure_future(connector.disconnect())
                    assert await request.wait_for_disconnect(_LONG)
                    await request.disconnect()
                    await leaving
            with pytest.raises(rnicd.TimedOut):
                await listener.next_request(0.01)

    async def _connect(session, pair):
        return await session.connect("loop", pair)

    asyncio.run(asyncio.wait_for(story(), _LONG))
    daemon.wait_until_empty()


def test_coroutines_are_rejected_and_refused(daemon):
    async def story():
        async with rnicd.aio.connect() as s, s.listen("loop") as listener, s.queue_pair() as pair:
            async with s.connector() as connector:
                connecting = asyncio.ensure_future(connector.connect("loop", pair))
                await (await listener.next_request(_LONG)).reject(b"no")
                with pytest.raises(rnicd.Refused):
                    await connecting
                assert (await connector.connection_data()).private_data.startswith(b"no")
            await listener.pause()
            with pytest.raises(rnicd.Refused):
                await s.connect("loop", pair)
            await listener.resume()
            waiting = asyncio.ensure_future(listener.next_request(_LONG))
            daemon.kill()
            with pytest.raises(rnicd.SessionLost):
                await waiting

    asyncio.run(asyncio.wait_for(story(), _LONG))
