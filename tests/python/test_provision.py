"""Memory that is ready: pages and regions in two calls, many memories in two, page tables that are filled."""

from __future__ import annotations

import asyncio
import resource

import numpy as np
import rnicd
import rnicd.aio

from polling import wait_for

PAGE = 4096
MIB = 1 << 20


def faults_of_first_access(memory) -> int:
    """Page faults of this thread while it writes into each page."""
    array = np.frombuffer(memory, np.uint8)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    array[::PAGE] = 1
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before


def test_memory_and_regions_in_two_calls(session, daemon):
    memory, regions = session.provision(4 * PAGE, [(index * PAGE, PAGE) for index in range(4)], remote="rw")
    assert len(memory) == 4 * PAGE and daemon.status()["device_regions"] == 4
    assert len({region.local_token for region in regions} | {region.remote.token for region in regions}) == 8
    for index, region in enumerate(regions):
        assert region.address == memory.address + index * PAGE and len(region) == PAGE
    session.close_batch(regions)
    memory.close()
    assert session.usage().session["regions"].used == 0


def test_memory_that_is_there_is_provisioned_in_one_call(session):
    memory = session.allocate(2 * PAGE)
    first, refused, second = memory.provision([(0, PAGE), (2 * PAGE, PAGE), (PAGE, 8)])
    assert isinstance(first, rnicd.Region) and isinstance(second, rnicd.Region)
    assert isinstance(refused, rnicd.InvalidArgument) and refused.field == "items[1].length"
    assert session.usage().session["regions"].used == 2


def test_provisioning_nothing_is_refused_and_leaves_no_memory(session):
    try:
        session.provision(PAGE, [])
    except rnicd.InvalidArgument as failure:
        reason = failure.reason
    assert reason == "BATCH_SIZE"
    # The next object's making releases what is dropped.
    memory = session.allocate(PAGE)
    wait_for("the release", lambda: session.usage().session["memory_objects"].used == 1)
    memory.close()


def test_a_batch_of_memory_has_an_outcome_for_each(session):
    first, refused, third = session.allocate_batch([PAGE, 1, "8KiB"])
    assert isinstance(refused, rnicd.InvalidArgument) and refused.field == "items[1].size"
    assert len(first) == PAGE and len(third) == 2 * PAGE
    with first.register(remote="r"), third.register(remote="r"):
        assert session.usage().session["regions"].used == 2


def test_first_access_is_no_page_fault(session):
    assert faults_of_first_access(session.allocate(4 * MIB)) < 64


def test_the_page_table_is_left_to_the_first_access_if_asked(session):
    assert faults_of_first_access(session.allocate(4 * MIB, populate=False)) >= 64


def test_asyncio_has_the_same_calls(daemon):
    async def main():
        async with rnicd.aio.connect() as session:
            memory, regions = await session.provision(2 * PAGE, [(0, PAGE), (PAGE, PAGE)], remote="r")
            assert [len(region) for region in regions] == [PAGE, PAGE]
            more = await memory.provision([(0, 2 * PAGE)])
            assert more[0].address == memory.address
            batch = await session.allocate_batch([PAGE, PAGE])
            assert [len(one) for one in batch] == [PAGE, PAGE]
            usage = await session.usage()
            assert usage.session["regions"].used == 3 and usage.session["memory_objects"].used == 3

    asyncio.run(main())
    daemon.wait_until_empty()
