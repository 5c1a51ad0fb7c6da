"""The asyncio client."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import os

import numpy as np
import pytest
import rnicd
import rnicd.aio

from polling import wait_for

pytestmark = pytest.mark.usefixtures("data_path")
PAGE = 4096


def run(story):
    """Runs the story, which must not hang."""

    async def limited():
        return await asyncio.wait_for(story, 60)

    return asyncio.run(limited())


async def connected(session):
    one, other = await session.queue_pair(), await session.queue_pair()
    await one.connect(other.address)
    await other.connect(one.address)
    return one, other


def test_memory_is_registered_and_everything_ends_with_the_block(daemon):
    async def story():
        async with rnicd.aio.connect() as s, s.allocate("64KiB") as m, m.register(remote="rw") as r:
            np.frombuffer(m, np.float32)[:] = 1
            assert len(r.remote.to_bytes()) == 24 and (await s.usage()).session["regions"].used == 1
        assert r.closed and m.closed

    run(story())
    daemon.wait_until_empty()


@pytest.mark.essential
def test_transfers_are_awaited(daemon):
    async def story():
        async with rnicd.aio.connect() as s:
            here, there = await s.allocate(PAGE), await s.allocate(PAGE)
            source, target = await here.register(), await there.register(remote="rw")
            one, other = await connected(s)
            here[0:4] = b"data"
            await one.write(source, target.remote)
            await one.read(source[8:12], target.remote)
            assert bytes(there[0:4]) == b"data" and bytes(here[8:12]) == b"data"
            received, _ = await asyncio.gather(other.receive(source), one.send(b"msg"))
            assert received == 3
            async with one.batch() as batch:
                batch.write(b"1", target.remote)
                batch.write(b"2", target.remote, offset=1)
            assert len(await batch.wait()) == 2 and bytes(there[0:2]) == b"12"
            readonly = await there.register(remote="r")
            with pytest.raises(rnicd.TransferFailed) as caught:
                await one.write(b"no", readonly.remote)
            assert caught.value.reason == "REMOTE_ACCESS_REFUSED"

    run(story())


def test_many_transfers_at_once(daemon):
    async def story():
        async with rnicd.aio.connect() as s:
            here, there = await s.allocate(64 * PAGE), await s.allocate(64 * PAGE)
            source, target = await here.register(), await there.register(remote="rw")
            np.frombuffer(here, np.uint8)[:] = np.arange(64).repeat(PAGE)
            one, _ = await connected(s)
            parts = [slice(index * PAGE, (index + 1) * PAGE) for index in range(64)]
            await asyncio.gather(*(one.write(source[part], target.remote[part]) for part in parts))
            assert bytes(there[:]) == bytes(here[:])

    run(story())


def test_a_cancelled_wait_loses_no_completion(daemon):
    async def story():
        async with rnicd.aio.connect() as s:
            memory = await s.allocate(PAGE)
            region = await memory.register()
            one, other = await connected(s)
            pending = await other.post([rnicd.Receive(region)])
            for _ in range(3):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(pending.wait(), 0.05)
            with pytest.raises(rnicd.TimedOut):
                await pending.wait(0.05)
            await one.send(b"late")
            (completion,) = await pending
            assert completion.bytes == 4

    run(story())


def test_fast_regions_windows_and_raw_requests(daemon):
    async def story():
        async with rnicd.aio.connect() as s:
            memory = await s.allocate(2 * PAGE)
            region = await memory.register(remote="rw")
            one, other = await connected(s)
            async with memory.map_pages() as mapping, s.fast_region(2) as fast, s.window() as window:
                remote = await one.fast_register(fast, mapping)
                await other.write(b"fast", remote)
                assert bytes(memory[0:4]) == b"fast" and remote.token == await fast.remote_token()
                await one.invalidate(fast)
                bound = await one.bind(window, region[PAGE:])
                await other.write(b"win", bound)
                assert bytes(memory[PAGE : PAGE + 3]) == b"win" and bound.token == await window.remote_token()
                await one.invalidate(window)
            queue = await s.completion_queue(8)
            raw, peer = await s.queue_pair(completion_queue=queue), await s.queue_pair()
            await raw.connect(peer.address)
            await peer.connect(raw.address)
            assert await queue.poll() == []
            await queue.arm()
            await raw.post_raw([rnicd.Write(b"x", region.remote)], [5])
            assert await queue.wait_for_notification(30)
            assert [one.context for one in await queue.poll(timeout=30)] == [5]

    run(story())


def test_an_eviction_says_so(daemon):
    async def story():
        causes = []
        s = await rnicd.aio.connect()
        s.on_lost(lambda lost: causes.append(lost.cause))
        posted = asyncio.Event()
        waiting = asyncio.ensure_future(_receive(s, posted))
        await posted.wait()
        await asyncio.get_running_loop().run_in_executor(None, daemon.ask, "evict", str(s.id))
        with pytest.raises(rnicd.Error):
            await waiting
        with pytest.raises(rnicd.SessionLost) as caught:
            await s.usage()
        assert caught.value.cause == "evicted" and causes == ["evicted"]
        await s.close()

    run(story())


async def _receive(session, posted):
    region = await (await session.allocate(PAGE)).register()
    pair = await session.queue_pair()
    pending = await pair.post([rnicd.Receive(region)])
    posted.set()
    await pending


def test_refusals_are_the_same_exceptions(daemon):
    async def story():
        async with rnicd.aio.connect() as s:
            with pytest.raises(rnicd.InvalidArgument) as caught:
                await s.allocate(5)
            assert caught.value.reason == "MEMORY_SIZE_UNALIGNED"
            memory = await s.allocate(PAGE)
            region = await memory.register()
            with pytest.raises(rnicd.InUse):
                await memory.close()
            await region.close()
            await memory.close()
            await memory.close()

    run(story())


def test_sync_and_async_sessions_live_side_by_side(session):
    async def story():
        async with rnicd.aio.connect() as s:
            assert s.id != session.id
            session.allocate(PAGE).close()
            await (await s.allocate(PAGE)).close()

    run(story())


def test_dropped_sessions_leave_nothing(daemon):
    async def story():
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            s = await rnicd.aio.connect()
            memory = await s.allocate(PAGE)
            del s, memory
            gc.collect()
        # In another thread: the loop goes on.
        met = functools.partial(wait_for, "the descriptors", lambda: len(os.listdir("/proc/self/fd")) < before + 3)
        await asyncio.get_running_loop().run_in_executor(None, met)

    run(story())
    daemon.wait_until_empty()


@pytest.mark.parametrize("name", rnicd.aio.__all__)
def test_the_async_classes_have_the_same_names(name):
    sync, asynchronous = getattr(rnicd, name), getattr(rnicd.aio, name)
    if not inspect.isclass(asynchronous):
        return
    here = {one for one in dir(sync) if not one.startswith("_")}
    there = {one for one in dir(asynchronous) if not one.startswith("_")}
    assert here == there
