"""Queue pairs, completion queues, and everything that moves bytes."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import rnicd

from polling import wait_for

pytestmark = pytest.mark.usefixtures("data_path")
PAGE = 4096


@pytest.fixture
def ends(session):
    """Two registered pages: the initiator's, and the peer's."""
    here, there = session.allocate(PAGE), session.allocate(PAGE)
    return here.register(), there.register(remote="rw"), here, there


@pytest.mark.essential
def test_a_write_is_there_when_it_returns(pair, ends):
    source, target, here, there = ends
    here[:] = bytes(range(256)) * 16
    pair[0].write(source, target.remote)
    assert bytes(there[:]) == bytes(here[:])


def test_a_write_goes_to_its_offset(pair, ends):
    source, target, here, there = ends
    here[0:4] = b"abcd"
    pair[0].write(source[0:4], target.remote, offset=100)
    assert bytes(there[98:106]) == b"\0\0abcd\0\0"


def test_a_read_fetches(pair, ends):
    source, target, here, there = ends
    there[0:3] = b"xyz"
    pair[0].read(source[8:11], target.remote)
    assert bytes(here[8:11]) == b"xyz"


def test_bytes_travel_inside_a_write(pair, ends):
    _, target, _, there = ends
    pair[0].write(b"inline", target.remote)
    assert bytes(there[0:6]) == b"inline"


def test_pieces_are_taken_one_after_another(pair, ends):
    source, target, here, there = ends
    here[0:4] = b"abcd"
    pair[0].write([source[2:4], source[0:2]], target.remote)
    assert bytes(there[0:4]) == b"cdab"


def test_a_message_is_received(pair, ends):
    source, _, here, _ = ends
    waiting = pair[1].post([rnicd.Receive(source[0:16])])
    pair[0].send(b"message")
    (received,) = waiting.wait()
    assert (received.operation, received.bytes, bytes(here[0:7])) == ("receive", 7, b"message")


def test_a_receive_waits_for_the_peer(pair, ends, waiting):
    source, _, here, _ = ends
    sender = threading.Thread(target=lambda: waiting.wait(30) and pair[0].send(b"late"))
    sender.start()
    assert pair[1].receive(source) == 4
    assert bytes(here[0:4]) == b"late"
    sender.join()


def test_transfers_that_do_not_wait(pair, ends):
    source, target, here, there = ends
    here[:] = b"z" * PAGE
    pending = pair[0].post([rnicd.Write(source[a : a + 64], target.remote[a:]) for a in range(0, PAGE, 64)])
    completions = pending.wait()
    assert pending.done and len(completions) == 64 and all(one.ok for one in completions)
    assert bytes(there[:]) == b"z" * PAGE


def test_a_batch_is_one_call(pair, ends):
    source, target, here, there = ends
    here[0:2] = b"12"
    with pair[0].batch() as batch:
        batch.write(source[0:1], target.remote)
        batch.write(source[1:2], target.remote, offset=1)
    assert len(batch.wait()) == 2 and bytes(there[0:2]) == b"12"


def test_a_batch_that_raises_posts_nothing(pair, ends):
    source, target, here, there = ends
    here[0:1] = b"1"
    with pytest.raises(KeyError):
        with pair[0].batch() as batch:
            batch.write(source[0:1], target.remote)
            raise KeyError
    assert batch.pending is None and there[0] == 0


def test_silent_requests_have_no_completion(pair, ends):
    source, target, _, _ = ends
    first, last = rnicd.Write(source[0:1], target.remote, silent=True), rnicd.Write(source[0:1], target.remote)
    assert len(pair[0].post([first, last]).wait()) == 1


@pytest.mark.essential
def test_a_refused_access_says_who_refused(pair, ends):
    source, _, _, there = ends
    readonly = there.register(remote="r")
    with pytest.raises(rnicd.TransferFailed) as caught:
        pair[0].write(source, readonly.remote)
    failure = caught.value
    assert (failure.reason, failure.ntstatus_name, failure.operation, failure.index) == (
        "REMOTE_ACCESS_REFUSED",
        "STATUS_ACCESS_VIOLATION",
        "write",
        0,
    )
    assert pair[0].state() == "error"
    with pytest.raises(rnicd.Refused) as refused:
        pair[0].write(source, readonly.remote)
    assert refused.value.reason == "QP_NOT_CONNECTED"


def test_the_failed_request_of_a_chain_is_named(pair, ends):
    source, target, _, _ = ends
    wrong = rnicd.RemoteRegion(target.remote.address, PAGE, target.remote.token ^ 0x55)
    chain = [rnicd.Write(source, one) for one in (target.remote, wrong, target.remote)]
    with pytest.raises(rnicd.TransferFailed) as caught:
        pair[0].post(chain).wait()
    assert caught.value.index == 1 and caught.value.reason == "REMOTE_ACCESS_REFUSED"


def test_what_does_not_fit_is_refused_before_the_call(pair, ends):
    source, target, _, there = ends
    narrow = there.register(local_write=False)
    for wrong in (
        lambda: pair[0].write(source, target.remote[0:100]),
        lambda: pair[0].write(source, target.remote, offset=1),
        lambda: pair[0].read(narrow, target.remote),
        lambda: target.remote[0 : PAGE + 1],
    ):
        with pytest.raises(rnicd.InvalidArgument):
            wrong()
    pair[0].write(source, target.remote)


def test_a_refused_request_keeps_those_before_it(pair, ends):
    source, target, _, _ = ends
    too_many = [source[0:1]] * 9
    with pytest.raises(rnicd.Refused) as caught:
        pair[0].post([rnicd.Write(source[0:1], target.remote), rnicd.Write(too_many, target.remote)])
    assert (caught.value.reason, caught.value.posted) == ("SGE_COUNT", 1)
    assert caught.value.field.startswith("requests[1]")
    assert len(caught.value.pending.wait()) == 1


def test_a_wait_that_times_out_can_go_on(pair, ends):
    source, _, _, _ = ends
    waiting = pair[1].post([rnicd.Receive(source)])
    for timeout in (0.0, 0.01, 0.2):
        with pytest.raises(rnicd.TimedOut):
            waiting.wait(timeout)
    pair[0].send(b"x")
    assert waiting.wait()[0].bytes == 1


def test_a_closed_pair_flushes_its_receives(session, ends):
    source, _, _, _ = ends
    queue = session.completion_queue(16)
    pair = session.queue_pair(completion_queue=queue)
    waiting = pair.post([rnicd.Receive(source)])
    pair.close()
    with pytest.raises(rnicd.TransferFailed) as caught:
        waiting.wait()
    assert caught.value.reason == "REQUEST_FLUSHED"


def test_flush_and_disconnect_end_a_pair(session, pair):
    told = threading.Event()
    watched = session.queue_pair(on_disconnected=told.set)
    peer = session.queue_pair()
    watched.connect(peer.address)
    peer.connect(watched.address)
    peer.disconnect()
    assert told.wait(30) and watched.peer_gone and not pair[0].peer_gone
    pair[0].flush()
    assert pair[0].state() == "error" and peer.state() == "error"


def test_a_callback_that_raises_does_not_end_the_session(session, capfd):
    def fail():
        raise RuntimeError("the user's own mistake")

    watched, peer = session.queue_pair(on_disconnected=fail), session.queue_pair()
    watched.connect(peer.address)
    peer.connect(watched.address)
    peer.disconnect()
    wait_for("the disconnect", lambda: watched.peer_gone)
    told = threading.Event()
    other = session.queue_pair(on_disconnected=told.set)
    partner = session.queue_pair()
    other.connect(partner.address)
    partner.connect(other.address)
    partner.disconnect()
    assert told.wait(30) and session.lost is None
    assert "the user's own mistake" in capfd.readouterr().err


def test_raw_requests_are_polled_with_their_contexts(session, ends):
    source, target, _, _ = ends
    queue = session.completion_queue(16)
    one, other = session.queue_pair(completion_queue=queue, context=9), session.queue_pair()
    one.connect(other.address)
    other.connect(one.address)
    assert queue.poll() == []
    one.post_raw([rnicd.Write(source, target.remote), rnicd.Write(source, target.remote)], [1, 2])
    found = queue.poll(1, timeout=30) + queue.poll(1, timeout=30)
    assert [(done.context, done.qp_context, done.operation) for done in found] == [(1, 9, "write"), (2, 9, "write")]
    with pytest.raises(ValueError):
        one.post_raw([rnicd.Write(source, target.remote)], [1 << 63])


def test_an_armed_queue_notifies_once(session, ends):
    source, target, _, _ = ends
    queue = session.completion_queue(16)
    one, other = session.queue_pair(completion_queue=queue), session.queue_pair()
    one.connect(other.address)
    other.connect(one.address)
    queue.arm("any")
    assert not queue.wait_for_notification(0.05)
    one.post_raw([rnicd.Write(source, target.remote)], [1])
    assert queue.wait_for_notification(30) and not queue.wait_for_notification(0.05)
    with pytest.raises(ValueError):
        queue.arm("sometimes")


def test_an_overrun_is_reported_to_polls_and_notifications(session, ends):
    source, target, _, _ = ends
    queue = session.completion_queue(1)
    one, other = session.queue_pair(completion_queue=queue), session.queue_pair()
    one.connect(other.address)
    other.connect(one.address)
    queue.arm("errors")
    one.post_raw([rnicd.Write(source, target.remote)] * 8, range(8))
    for use in (lambda: queue.wait_for_notification(30), lambda: queue.poll(timeout=30)):
        with pytest.raises(rnicd.Refused) as caught:
            use()
        assert caught.value.reason == "CQ_OVERRUN"


def test_a_queue_changes_its_depth(session):
    queue = session.completion_queue(4)
    try:
        queue.resize(8)
        assert queue.depth == 8
    except rnicd.Refused as refused:
        assert refused.reason == "DEVICE_NOT_CAPABLE" and queue.depth == 4


def test_receives_have_a_queue_of_their_own(session, ends):
    source, _, _, _ = ends
    receives = session.completion_queue(16)
    one, other = session.queue_pair(receive_queue=receives), session.queue_pair()
    one.connect(other.address)
    other.connect(one.address)
    mixed = one.post([rnicd.Receive(source), rnicd.Send(b"out")])
    other_end = other.post([rnicd.Receive(source)])
    other.send(b"in")
    assert [done.operation for done in mixed.wait()] == ["receive", "send"]
    other_end.wait()


def test_pages_are_registered_by_a_request_and_taken_back(session, pair, ends):
    memory = session.allocate(4 * PAGE)
    with memory.map_pages() as mapping, session.fast_region(4) as region:
        remote = pair[0].fast_register(region, mapping)
        assert remote.token == region.remote_token() and region.local_token
        pair[1].write(b"fast", remote, offset=PAGE)
        assert bytes(memory[PAGE : PAGE + 4]) == b"fast"
        reverse = rnicd.FastRegister(region, mapping.pages[::-1], 4 * PAGE, memory.address)
        pair[0].invalidate(region)
        pending = pair[0].post([reverse])
        pending.wait()
        pair[1].write(b"last", rnicd.RemoteRegion(memory.address, 4 * PAGE, pending.tokens[0]))
        assert bytes(memory[3 * PAGE : 3 * PAGE + 4]) == b"last"
        pair[0].invalidate(region)
        with pytest.raises(rnicd.TransferFailed) as caught:
            pair[1].write(b"late", remote)
        assert caught.value.reason == "REMOTE_ACCESS_REFUSED"


def test_pages_of_several_memories_are_one_mapping(session, pair):
    one, other = session.allocate(PAGE), session.allocate(PAGE)
    with session.map_chain([one.part(), other.part()]) as mapping, session.fast_region(2) as region:
        assert len(mapping.pages) == 2 and mapping.length == 2 * PAGE
        remote = pair[0].fast_register(region, mapping)
        pair[1].write(b"other", remote, offset=PAGE)
        pair[0].invalidate(region)
    assert bytes(other[0:5]) == b"other"


def test_a_window_opens_a_part(session, pair, ends):
    source, target, _, there = ends
    with session.window() as window:
        remote = pair[1].bind(window, target[64:128])
        assert remote.token == window.remote_token() and remote.length == 64
        pair[0].write(b"in", remote)
        assert bytes(there[64:66]) == b"in"
        pair[1].invalidate(window)
        with pytest.raises(rnicd.TransferFailed):
            pair[0].write(b"no", remote)
    assert len(source) == PAGE


def test_logical_addresses_are_named_with_the_privileged_token(session, pair, ends):
    _, target, _, there = ends
    memory = session.allocate(PAGE)
    memory[0:4] = b"priv"
    with memory.map_pages() as mapping:
        sge = rnicd.Sge(mapping.pages[0], 4, session.privileged_token())
        pair[0].write(sge, target.remote)
    assert bytes(there[0:4]) == b"priv"


def test_eight_threads_share_a_pair(session, pair):
    source, target = session.allocate(8 * PAGE), session.allocate(8 * PAGE)
    here, remote = source.register(), target.register(remote="rw").remote
    np.frombuffer(source, np.uint8)[:] = np.arange(8).repeat(PAGE)
    failures = []

    def work(index):
        try:
            part = slice(index * PAGE, (index + 1) * PAGE)
            for _ in range(50):
                pair[0].write(here[part], remote[part])
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and bytes(target[:]) == bytes(source[:])


def test_a_waiting_thread_stops_no_other(session, pair, ends):
    source, target, _, _ = ends
    receiver = threading.Thread(target=pair[1].receive, args=(source,))
    receiver.start()
    for _ in range(20):
        pair[0].write(source, target.remote)
    pair[0].send(b"done")
    receiver.join(30)
    assert not receiver.is_alive()


def test_a_thread_that_waits_ends_with_the_session(daemon, waiting):
    session = rnicd.connect()
    pair = session.queue_pair()
    region = session.allocate(PAGE).register()
    caught = []

    def wait():
        try:
            pair.receive(region)
        except rnicd.Error as failure:
            caught.append(failure)

    thread = threading.Thread(target=wait)
    thread.start()
    assert waiting.wait(30)
    session.close()
    thread.join(30)
    # Closed where it was only about to wait.
    assert not thread.is_alive() and isinstance(caught[0], (rnicd.SessionLost, rnicd.TransferFailed, rnicd.Closed))


def test_adapters_and_limits_are_plain_values(session):
    (one,) = session.list_adapters()
    assert one.provider == "soft" and one.name == session.adapter
    assert session.adapter_info() == one.info and one.info.max_cq_depth > 0
    assert session.tenant and session.id and session.usage().tenant["sessions"].used == 1
