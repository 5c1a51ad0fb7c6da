"""What users give as values: numpy's numbers are taken, and what does not fit is an rnicd.Error."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
import rnicd
import rnicd.aio

PAGE = 4096
NOT_NUMBERS = (-1, 1 << 64, 1.5, "many", True, b"1", [1])
"""What no field for a number takes. None often means the default."""


def test_numpys_integers_are_numbers(session, data_path):
    assert len(session.allocate(np.prod((64, 64)), page_size=np.int32(PAGE), numa_node=None)) == PAGE
    memory, regions = session.provision(
        np.uint32(2 * PAGE), [(np.int64(0), np.int16(PAGE)), np.array([PAGE, 8])], remote="w"
    )
    assert [len(region) for region in regions] == [PAGE, 8]
    region = memory.register(np.int64(0), np.uint16(PAGE), remote="rw")
    queue = session.completion_queue(np.int8(64))
    queue.resize(np.uint64(32))
    one = session.queue_pair(np.int32(8), completion_queue=queue, sges=np.int8(2), context=np.uint64(7))
    other = session.queue_pair()
    one.connect(other.address)
    other.connect(one.address)
    memory[np.int64(1)] = 77
    one.write(region[np.uint8(0) : np.int64(8)], region.remote, offset=np.int32(100), timeout=np.float32(60))
    assert memory[101] == 77
    one.post_raw([rnicd.Write(b"x", region.remote)], np.array([5], np.uint64))
    assert queue.poll(np.int64(9), timeout=60)[0].context == 5
    assert (
        rnicd.RemoteRegion(np.uint64(1), np.int64(2), np.int8(3)).to_bytes() == rnicd.RemoteRegion(1, 2, 3).to_bytes()
    )
    assert rnicd.Sge(np.int64(1), np.int64(2), np.int64(3)) == rnicd.Sge(1, 2, 3)
    assert session.fast_region(np.int64(4)).max_pages == 4


def test_numpys_integers_do_not_overflow():
    # numpy's own sum of these would be a float, or a wrong number.
    whole = rnicd.RemoteRegion(np.uint64(1 << 63), np.int64(1 << 40), np.uint8(1))
    part = whole[np.int8(100) : np.uint64(1 << 39)]
    assert (part.address, part.length) == ((1 << 63) + 100, (1 << 39) - 100) and type(part.address) is int


USES = {
    "allocate": lambda s, m, p, bad: s.allocate(bad),
    "page_size": lambda s, m, p, bad: s.allocate(PAGE, page_size=bad),
    "numa_node": lambda s, m, p, bad: s.allocate(PAGE, numa_node=bad),
    "allocate_batch": lambda s, m, p, bad: s.allocate_batch([PAGE, bad]),
    "provision offset": lambda s, m, p, bad: s.provision(PAGE, [(bad, 5)]),
    "provision length": lambda s, m, p, bad: m.provision([(0, bad)]),
    "provision range": lambda s, m, p, bad: m.provision([bad]),
    "memfd": lambda s, m, p, bad: rnicd.memfd(bad),
    "import size": lambda s, m, p, bad: s.import_memory(0, bad),
    "import": lambda s, m, p, bad: s.import_memory(bad, PAGE),
    "offset": lambda s, m, p, bad: m.register(bad),
    "length": lambda s, m, p, bad: m.register(0, bad),
    "parts": lambda s, m, p, bad: s.register_batch([m.part(), bad]),
    "chain": lambda s, m, p, bad: s.register_chain([bad]),
    "max_pages": lambda s, m, p, bad: s.fast_region(bad),
    "completion_queue": lambda s, m, p, bad: s.completion_queue(bad),
    "resize": lambda s, m, p, bad: p.completion_queue.resize(bad),
    "depth": lambda s, m, p, bad: s.queue_pair(bad),
    "sges": lambda s, m, p, bad: s.queue_pair(sges=bad),
    "inline_bytes": lambda s, m, p, bad: s.queue_pair(inline_bytes=bad),
    "context": lambda s, m, p, bad: s.queue_pair(context=bad),
    "context of post": lambda s, m, p, bad: p.post_raw([rnicd.Send(b"")], [bad]),
    "requests": lambda s, m, p, bad: p.post([bad]),
    "invalidate": lambda s, m, p, bad: p.post([rnicd.Send(b"", invalidate=bad)]),
    "sge": lambda s, m, p, bad: rnicd.Sge(0, 5, bad),
    "remote region": lambda s, m, p, bad: rnicd.RemoteRegion(bad, 5, 5),
    "local": lambda s, m, p, bad: p.read(bad, rnicd.RemoteRegion(0, 5, 5)),
    "remote": lambda s, m, p, bad: p.read(rnicd.Sge(0, 0, 0), bad),
    "offset of write": lambda s, m, p, bad: p.write(b"12345", rnicd.RemoteRegion(0, 5, 5), bad),
    "bind": lambda s, m, p, bad: p.bind(s.window(), bad),
    "invalidate target": lambda s, m, p, bad: p.invalidate(bad),
    "kind": lambda s, m, p, bad: p.completion_queue.arm(bad),
    "rights": lambda s, m, p, bad: m.register(remote=bad),
    "fast register": lambda s, m, p, bad: p.post([rnicd.FastRegister(s.fast_region(4), [bad], PAGE, 0)]),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_what_is_no_number_is_an_invalid_argument(session, use, data_path):
    memory, pair = session.allocate(PAGE), session.queue_pair()
    for bad in NOT_NUMBERS:
        with pytest.raises(rnicd.InvalidArgument):
            use(session, memory, pair, bad)
    assert session.usage().session["regions"].used <= len(NOT_NUMBERS)


TEXTS = {
    "label": lambda bad: rnicd.connect(label=bad),
    "grant": lambda bad: rnicd.connect(grant=bad),
    "adapter": lambda bad: rnicd.connect(adapter=bad),
    "data_path": lambda bad: rnicd.connect(data_path=bad),
    "timeout": lambda bad: rnicd.connect(timeout=bad),
    "spin": lambda bad: rnicd.connect(spin=bad),
    "from_bytes": rnicd.RemoteRegion.from_bytes,
}


@pytest.mark.parametrize("use", TEXTS.values(), ids=TEXTS.keys())
def test_what_is_no_text_is_an_invalid_argument(daemon, use):
    for bad in ("\ud800", [5], object()):
        with pytest.raises(rnicd.InvalidArgument):
            use(bad)
    daemon.wait_until_empty()


def test_the_socket_directory_is_a_path(daemon, folder):
    with rnicd.connect(folder / "s"), rnicd.connect(str(folder / "s").encode()):
        pass
    with pytest.raises(rnicd.InvalidArgument):
        rnicd.connect(5)


def test_times_are_numbers_of_any_length(session, pair):
    one, _ = pair
    assert one.completion_queue.poll(1, timeout=-5) == []
    for bad in ("soon", None, float("nan"), True, [1]):
        with pytest.raises(rnicd.InvalidArgument):
            one.completion_queue.wait_for_notification(bad)
    with rnicd.connect(timeout=1e300) as patient:
        assert len(patient.allocate(PAGE)) == PAGE


def test_a_part_that_is_closed_stops_a_batch_before_it_leaves_anything(session):
    memory, closed = session.allocate(PAGE), session.allocate(PAGE)
    parts = [memory.part(), closed.part()]
    closed.close()
    with pytest.raises(rnicd.Closed):
        session.register_batch(parts)
    assert session.usage().session["regions"].used == 0


def test_asyncio_takes_and_refuses_the_same(daemon):
    async def main():
        async with rnicd.aio.connect() as session:
            assert len(await session.allocate(np.prod((64, 64)))) == PAGE
            for bad in NOT_NUMBERS:
                for use in (
                    session.allocate,
                    session.completion_queue,
                    lambda bad: session.provision(PAGE, [(bad, 5)]),
                ):
                    with pytest.raises(rnicd.InvalidArgument):
                        await use(bad)

    asyncio.run(main())
