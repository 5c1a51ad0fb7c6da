"""Rings and mapped queues: what is not the same as by calls."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
import rnicd
import rnicd.aio
from rnicd import _data_path, _mapped_queue, _ring, _ring_path
from rnicd._effects import Call
from rnicd._proto import ring_service_pb2

import programs
from daemon import Daemon

PAGE = 4096
_TINY = {"_ENTRIES": 2, "_PAYLOAD_BYTES": 4096}


def connected(session, **options):
    one, other = session.queue_pair(**options), session.queue_pair(**options)
    one.connect(other.address)
    other.connect(one.address)
    return one, other


@pytest.fixture
def tiny(monkeypatch):
    """Rings with 2 entries and 4 KiB of payload: every slot is used again and again."""
    for name, value in _TINY.items():
        monkeypatch.setattr(_ring_path, name, value)


def test_shared_memory_is_used_where_the_daemon_has_it(session):
    region = session.allocate(PAGE).register(remote="rw")
    one, _ = connected(session)
    one.write(b"x", region.remote)
    assert session.data_path == "rings" and session.usage().session["rings"].used == 1
    assert one.completion_queue._mapped is not None


def test_calls_are_used_where_the_program_wants_them(daemon, monkeypatch):
    monkeypatch.setenv("RNICD_DATA_PATH", "calls")
    for options in ({}, {"data_path": "calls"}):
        with rnicd.connect(**options) as session:
            region = session.allocate(PAGE).register(remote="rw")
            connected(session)[0].write(b"x", region.remote)
            assert session.data_path == "calls" and session.usage().session["rings"].used == 0


def test_the_program_counts_more_than_the_environment(daemon, monkeypatch):
    monkeypatch.setenv("RNICD_DATA_PATH", "calls")
    with rnicd.connect(data_path="rings") as session:
        session.allocate(PAGE).register()
        assert session.data_path == "rings"


def test_an_unknown_data_path_is_refused(daemon, monkeypatch):
    with pytest.raises(rnicd.InvalidArgument) as caught:
        rnicd.connect(data_path="pigeons")
    assert caught.value.field == "data_path"
    monkeypatch.setenv("RNICD_DATA_PATH", "pigeons")
    with pytest.raises(rnicd.InvalidArgument) as caught:
        rnicd.connect()
    assert caught.value.field == "RNICD_DATA_PATH"
    daemon.wait_until_empty()


def go_without_rings(daemon, reason, prepare):
    """Refuses the ring of two sessions: one goes by calls, the other insists."""
    with rnicd.connect(daemon.socket_dir) as session:
        prepare(session)
        region = session.allocate(PAGE).register(remote="rw")
        connected(session)[0].write(b"x", region.remote)
        assert session.data_path == "calls"
    with rnicd.connect(daemon.socket_dir, data_path="rings") as session:
        prepare(session)
        memory = session.allocate(PAGE)
        for _ in range(2):
            with pytest.raises(rnicd.Refused) as caught:
                memory.register()
            assert caught.value.reason == reason


def test_a_session_of_a_daemon_without_rings_goes_by_calls_unless_it_insists(folder):
    daemon = Daemon(folder, "--ring_threads=0")
    try:
        go_without_rings(daemon, "RINGS_UNAVAILABLE", lambda session: None)
        with rnicd.connect(daemon.socket_dir) as session:
            # Mapped queues need no thread of the daemon's.
            assert session.completion_queue()._mapped is not None
    finally:
        daemon.stop()


def test_a_session_without_a_ring_left_goes_by_calls_unless_it_insists(folder):
    daemon = Daemon(folder, session_limits="rings: 1")
    try:
        open_one = Call("Ring", "OpenRing", ring_service_pb2.OpenRingRequest())
        go_without_rings(daemon, "QUOTA_RINGS", lambda session: session._link.channel.perform(open_one, 30))
    finally:
        daemon.stop()


def test_processors_that_reorder_stores_are_left_to_calls(daemon, monkeypatch):
    monkeypatch.setattr(_data_path, "SUPPORTED", False)
    with rnicd.connect() as session:
        region = session.allocate(PAGE).register(remote="rw")
        connected(session)[0].write(b"x", region.remote)
        assert session.data_path == "calls" and session.completion_queue()._mapped is None
    with pytest.raises(rnicd.Refused) as caught:
        rnicd.connect(data_path="rings")
    assert caught.value.reason == "RINGS_UNAVAILABLE"


def test_a_queue_for_which_there_is_no_memory_is_polled_by_calls(folder):
    # Enough for 16384 completions in the daemon (128 bytes each), not for their mapping besides (64 each).
    daemon = Daemon(folder, session_limits=f"heap_bytes: {2816 << 10}")
    try:
        with rnicd.connect(daemon.socket_dir) as session:
            region = session.allocate(PAGE).register(remote="rw")
            queue = session.completion_queue(16384)
            assert queue._mapped is None and session.completion_queue(16)._mapped is not None
            one, other = session.queue_pair(completion_queue=queue), session.queue_pair()
            one.connect(other.address)
            other.connect(one.address)
            one.write(b"x", region.remote)
        with rnicd.connect(daemon.socket_dir, data_path="rings") as session:
            with pytest.raises(rnicd.QuotaExceeded) as caught:
                session.completion_queue(16384)
            assert caught.value.reason == "QUOTA_HEAP_BYTES"
    finally:
        daemon.stop()


def test_a_refusal_is_the_same_on_every_path(folder):
    daemon = Daemon(folder, session_limits=f"pinned_bytes: {8 * PAGE}")
    try:
        by_calls, by_rings = (refusals(daemon, path) for path in ("calls", "rings"))
        assert by_calls == by_rings
        assert [one[0] for one in by_calls] == [
            "SGE_COUNT",
            "SGE_COUNT",
            "INLINE_TOO_LONG",
            "QP_NOT_CONNECTED",
            "BATCH_SIZE",
            "BATCH_SIZE",
            "PAGE_COUNT_ABOVE_REGION",
            "FIELD_OUT_OF_RANGE",
            "LENGTH_ZERO",
            "QUOTA_PINNED_BYTES",
            "QUOTA_PINNED_BYTES",
        ]
        assert by_calls[0][-1] == 1 and by_calls[-1][3] == 8 * PAGE
    finally:
        daemon.stop()


def refusals(daemon, path):
    with rnicd.connect(daemon.socket_dir, data_path=path) as session:
        memory, other = session.allocate(4 * PAGE), session.allocate(8 * PAGE)
        region, (one, _) = memory.register(remote="rw"), connected(session, depth=4)
        unconnected, fast = session.queue_pair(), session.fast_region(1)
        write = rnicd.Write(region[0:8], region.remote)
        many = rnicd.Write([region[0:1]] * 9, region.remote)
        return [
            refused(lambda: one.post([write, many])),
            refused(lambda: one.post([many])),
            refused(lambda: one.post([rnicd.Write(b"x" * 257, region.remote)])),
            refused(lambda: unconnected.post([write])),
            refused(lambda: one.post([])),
            refused(lambda: one.post([write] * 1025)),
            refused(lambda: one.post([rnicd.FastRegister(fast, [1, 2], 2 * PAGE, memory.address)])),
            refused(lambda: one.post([rnicd.FastRegister(fast, [], PAGE, memory.address)])),
            refused(lambda: memory.register(0, 0)),
            refused(other.register),
            refused(lambda: other.register(0, 7 * PAGE)),
        ]


def refused(use):
    """What the refusal says, and how many requests were posted before it."""
    with pytest.raises(rnicd.Refused) as caught:
        use()
    failure = caught.value
    amounts = failure.limit, failure.used, failure.requested
    return failure.reason, failure.ntstatus, failure.field, *amounts, type(failure), failure.posted


def break_ring(session):
    """Impossible indices: more entries than there are slots. Waits until the daemon has seen them."""
    ring = session._link.ring._ring
    ring.file.words[_ring.SUBMISSION_TAIL] = 1_000_000
    ring.ring_doorbell()
    end = time.monotonic() + 30
    while not ring.end_reason:
        assert time.monotonic() < end


def test_a_session_that_insists_is_told_why_its_ring_has_ended(daemon):
    with rnicd.connect(data_path="rings") as session:
        region = session.allocate(PAGE).register(remote="rw")
        one, _ = connected(session)
        break_ring(session)
        for _ in range(3):
            with pytest.raises(rnicd.InvalidArgument) as caught:
                one.write(b"x", region.remote)
            assert caught.value.reason == "RING_BROKEN" and caught.value.ntstatus_name == "STATUS_INVALID_PARAMETER"
        assert session.lost is None and session.usage().session["regions"].used == 1


def test_a_session_whose_ring_has_ended_goes_on_by_calls(session):
    memory = session.allocate(PAGE)
    region = memory.register(remote="rw")
    one, _ = connected(session)
    break_ring(session)
    # The first request may learn of the end from its own outcome that never comes.
    with pytest.raises(rnicd.Refused) as caught:
        one.write(b"1", region.remote)
    assert caught.value.reason == "RING_BROKEN"
    one.write(b"2", region.remote)
    assert session.data_path == "calls" and bytes(memory[0:1]) == b"2" and memory.register().local_token


def test_a_chain_that_the_ring_cannot_hold_goes_by_a_call(session, monkeypatch):
    memory = session.allocate(PAGE)
    region = memory.register(remote="rw")
    one, _ = connected(session, depth=1024)
    calls = []
    perform = type(session._link.channel).perform

    def counted(channel, call, seconds):
        calls.append(call.method)
        return perform(channel, call, seconds)

    monkeypatch.setattr(type(session._link.channel), "perform", counted)
    chain = [rnicd.Write(region[index : index + 1], region.remote[index:]) for index in range(1024)]
    assert len(one.post(chain).wait()) == 1024 and calls == ["Post"]
    assert len(one.post(chain[:64]).wait()) == 64 and calls == ["Post"]


def test_a_tiny_ring_serves_many_threads(tiny, session):
    source, target = session.allocate(8 * PAGE), session.allocate(8 * PAGE)
    here, there = source.register(), target.register(remote="rw")
    remote = there.remote
    source[:] = bytes(range(256)) * (8 * PAGE // 256)
    pairs = [connected(session) for _ in range(8)]
    failures = []

    def work(index):
        try:
            for turn in range(40):
                part = slice(index * PAGE, index * PAGE + 64 * (turn + 1))
                chain = [rnicd.Write(here[part], remote[part])] * (1 + turn % 9)
                pairs[index][0].post(chain).wait()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and session.data_path == "rings"
    for index in range(8):
        assert bytes(target[index * PAGE : index * PAGE + 2560]) == bytes(source[index * PAGE : index * PAGE + 2560])


def test_threads_wait_on_one_queue_each_for_its_own(session):
    region = session.allocate(PAGE).register(remote="rw")
    queue = session.completion_queue(64)
    ends = []
    for _ in range(4):
        one, other = session.queue_pair(completion_queue=queue), session.queue_pair()
        one.connect(other.address)
        other.connect(one.address)
        ends.append((one, other))
    waiting = [one.post([rnicd.Receive(region[0:16])]) for one, _ in ends]
    found = [0] * 4

    def wait(index):
        found[index] = waiting[index].wait()[0].bytes

    threads = [threading.Thread(target=wait, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for index in (3, 1, 0, 2):
        ends[index][1].send(b"x" * (index + 1))
    for thread in threads:
        thread.join(30)
    assert found == [1, 2, 3, 4]


def test_a_forked_child_has_neither_ring_nor_queue(daemon):
    program = """
    import gc, rnicd
    def shared():
        with open("/proc/self/maps", encoding="ascii") as maps:
            return sum("rnicd-ring" in line or "rnicd-cq" in line or "memfd" in line for line in maps)
    s = rnicd.connect(data_path="rings")
    m = s.allocate(4096)
    r = m.register(remote="rw")
    queue = s.completion_queue(8)
    one, other = s.queue_pair(completion_queue=queue), s.queue_pair(completion_queue=queue)
    one.connect(other.address); other.connect(one.address)
    pending = one.post([rnicd.Receive(r)])
    before = shared()
    child = os.fork()
    if child == 0:
        # The memory stays; the ring and the queue are gone.
        assert shared() == before - 2, (before, shared())
        for use in (pending.wait, queue.poll, lambda: one.write(b"x", r.remote), lambda: queue.arm()):
            try:
                use()
                os._exit(1)
            except rnicd.ForkedError:
                pass
        one.close(); queue.close(); s.close()
        del one, other, queue, pending, use, r, s
        gc.collect()
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    other.send(b"after")
    assert pending.wait()[0].bytes == 5 and bytes(m[0:5]) == b"after"
    s.close()
    """
    programs.run_well(program)


def test_a_daemon_that_is_killed_ends_all_waits(daemon):
    session = rnicd.connect(data_path="rings")
    region = session.allocate(PAGE).register(remote="rw")
    one, other = connected(session)
    one.write(b"x", region.remote)
    caught = []

    def wait(use):
        try:
            use()
        except rnicd.SessionLost as lost:
            caught.append(lost.cause)

    write = rnicd.Write(b"x", region.remote)
    uses = [lambda: one.receive(region), lambda: other.receive(region), lambda: one.post([write])]
    threads = [threading.Thread(target=wait, args=(use,)) for use in uses]
    # A stopped daemon leaves the last one without an outcome.
    daemon.pause()
    for thread in threads:
        thread.start()
    daemon.kill()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads) and caught == ["connection_lost"] * 3
    with pytest.raises(rnicd.SessionLost):
        one.write(b"x", region.remote)
    session.close()


def test_a_wait_for_an_outcome_times_out(daemon):
    session = rnicd.connect(data_path="rings")
    region = session.allocate(PAGE).register(remote="rw")
    one, _ = connected(session)
    usual = session._link.seconds
    session._link.seconds = 0.3
    daemon.pause()
    try:
        with pytest.raises(rnicd.TimedOut):
            one.write(b"late", region.remote)
    finally:
        daemon.resume()
    session._link.seconds = usual
    # The outcome that nobody waits for any more does no harm to the next.
    one.read(region[8:9], region.remote, timeout=30)
    session.close()


def run(story):
    async def limited():
        return await asyncio.wait_for(story, 60)

    return asyncio.run(limited())


def test_a_loop_is_not_blocked_by_a_daemon_that_does_not_answer(daemon):
    async def story():
        async with rnicd.aio.connect(data_path="rings") as session:
            region = await (await session.allocate(PAGE)).register(remote="rw")
            one, other = await session.queue_pair(), await session.queue_pair()
            await one.connect(other.address)
            await other.connect(one.address)
            daemon.pause()
            writing = asyncio.ensure_future(one.write(b"x", region.remote))
            receiving = asyncio.ensure_future(other.receive(region))
            turns = 0
            while turns < 1000:
                turns += 1
                await asyncio.sleep(0)
            assert not writing.done() and not receiving.done()
            daemon.resume()
            await writing
            await one.send(b"hi")
            assert await receiving == 2 and session.data_path == "rings"

    run(story())


def test_coroutines_share_a_tiny_ring(tiny, daemon):
    async def story():
        async with rnicd.aio.connect(data_path="rings") as session:
            memory = await session.allocate(PAGE)
            region = await memory.register(remote="rw")
            one, other = await session.queue_pair(), await session.queue_pair()
            await one.connect(other.address)
            await other.connect(one.address)
            await asyncio.gather(*(one.write(bytes([index]), region.remote, offset=index) for index in range(50)))
            assert bytes(memory[0:50]) == bytes(range(50))

    run(story())


def test_coroutines_that_wait_end_with_a_killed_daemon(daemon):
    async def story():
        session = await rnicd.aio.connect(data_path="rings")
        region = await (await session.allocate(PAGE)).register(remote="rw")
        one, other = await session.queue_pair(), await session.queue_pair()
        await one.connect(other.address)
        await other.connect(one.address)
        daemon.pause()
        tasks = [asyncio.ensure_future(one.write(b"x", region.remote)), asyncio.ensure_future(other.receive(region))]
        await asyncio.sleep(0)
        daemon.kill()
        for task in tasks:
            with pytest.raises(rnicd.SessionLost):
                await task
        await session.close()

    run(story())


def test_a_mapped_queue_has_room_to_grow_and_says_when_not(session):
    queue = session.completion_queue(4)
    assert queue._mapped is not None and queue._mapped.file.entries == _mapped_queue._ROOM_MIN
    queue.resize(256)
    with pytest.raises(rnicd.Refused) as caught:
        queue.resize(257)
    assert caught.value.reason == "ABOVE_MAPPED_DEPTH"


def test_a_wait_without_an_end_in_sight_sleeps(session):
    region = session.allocate(PAGE).register()
    _, other = connected(session)
    waiting = other.post([rnicd.Receive(region)])
    before = time.process_time()
    with pytest.raises(rnicd.TimedOut):
        waiting.wait(1.0)
    assert time.process_time() - before < 0.3
