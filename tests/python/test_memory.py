"""Memory and its registrations."""

from __future__ import annotations

import asyncio
import copy
import ctypes
import gc
import os
import pickle

import numpy as np
import pytest
import rnicd
import rnicd.aio

PAGE = 4096


def test_the_first_lines_of_the_page_work(daemon):
    with rnicd.connect() as s, s.allocate("64KiB") as m, m.register(remote="rw") as r:
        a = np.frombuffer(m, np.float32)
        a[:] = 1.5
        assert a.ctypes.data == r.address == m.address
        assert len(r.remote.to_bytes()) == 24
        assert daemon.status()["device_regions"] == 1
    daemon.wait_until_empty()


def test_an_array_is_the_registered_bytes_and_is_writable(session):
    memory = session.allocate(2 * PAGE)
    array = np.frombuffer(memory, np.uint8)
    array[5] = 77
    assert memory[5] == 77 and len(memory) == 2 * PAGE and array.flags.writeable


def test_slices_read_and_write_bytes(session):
    memory = session.allocate(PAGE)
    memory[10:15] = b"hello"
    memory[0] = 1
    assert bytes(memory[10:15]) == b"hello" and memory[0] == 1
    with pytest.raises(ValueError):
        memory[0:3] = b"four"


def test_an_array_of_a_shape_begins_at_its_offset(session):
    memory = session.allocate(PAGE)
    array = rnicd.numpy_array(memory, (4, 8), np.float64, offset=64)
    array[0, 0] = 2.0
    assert np.frombuffer(memory[64:72], np.float64)[0] == 2.0
    with pytest.raises((TypeError, ValueError)):
        rnicd.numpy_array(memory, (PAGE, 2), np.float64)


def test_views_keep_the_mapping_after_close(session):
    memory = session.allocate(PAGE)
    array = np.frombuffer(memory, np.uint8)
    memory.close()
    memory.close()
    array[:] = 3
    del memory
    assert int(array.sum()) == 3 * PAGE


@pytest.fixture(autouse=True)
def only_this_test_unmaps():
    """What tests before this one left to the collector is not unmapped while this one counts."""
    gc.collect()


def mapped():
    """Number of mappings of memory files in this process."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        return maps.read().count("memfd")


def test_memory_is_unmapped_with_its_last_view(session):
    before = mapped()
    memory = session.allocate(PAGE)
    view = memory[0:1]
    assert mapped() == before + 1
    del memory
    gc.collect()
    assert mapped() == before + 1
    del view
    gc.collect()
    assert mapped() == before


VIEWS = {
    "frombuffer": lambda memory: np.frombuffer(memory, np.uint8),
    "asarray": np.asarray,
    "memoryview": memoryview,
    "slice": lambda memory: memory[1:3],
    "shaped": lambda memory: rnicd.numpy_array(memory, 4, np.uint8, offset=8),
    "derived": lambda memory: np.frombuffer(memory, np.uint8).reshape(64, -1)[1:].T,
    "bytes of ctypes": lambda memory: (ctypes.c_char * 8).from_buffer(memory),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_a_closed_memory_is_unmapped_with_its_last_view_though_it_is_not_forgotten(session, view):
    memory = session.allocate(PAGE)
    before, seen = mapped(), view(memory)
    memory.close()
    assert mapped() == before
    del seen
    assert mapped() == before - 1 and memory.closed


def test_close_unmaps_what_nobody_views(session):
    memory = session.allocate(PAGE)
    array = np.frombuffer(memory, np.uint8)
    del array
    part = memory.part(0, PAGE)
    with memory.register(remote="rw") as region:
        pass
    before = mapped()
    memory.close()
    assert mapped() == before - 1
    # All of them refer to it.
    assert region.closed and part.memory is memory and len(memory) == PAGE


def test_imported_memory_is_unmapped_as_well(session):
    file = rnicd.memfd(PAGE)
    try:
        memory = session.import_memory(file)
    finally:
        os.close(file)
    before = mapped()
    memory.close()
    assert mapped() == before - 1


def test_closed_memory_has_no_bytes(session):
    memory = session.allocate(PAGE)
    memory.close()
    for use in (lambda: memory[0], lambda: memory[0:1], lambda: memory.view, lambda: rnicd.numpy_array(memory, 1)):
        with pytest.raises(rnicd.Closed):
            use()
    assert len(memoryview(memory)) == 0


def test_memory_in_use_stays_mapped(session):
    memory = session.allocate(PAGE)
    with memory.register():
        with pytest.raises(rnicd.InUse):
            memory.close()
        memory[0] = 5
        assert memory[0] == 5 and not memory.closed


def test_memory_of_a_lost_session_is_unmapped_by_close(session, daemon):
    memory = session.allocate(PAGE)
    daemon.ask("evict", str(session.id))
    with pytest.raises(rnicd.SessionLost):
        session.usage()
    before = mapped()
    memory.close()
    assert mapped() == before - 1


def test_a_failure_that_is_kept_keeps_no_memory(session):
    before, kept = mapped(), []
    for _ in range(3):
        try:
            session.provision(PAGE, [])
        except rnicd.InvalidArgument as failure:
            kept.append(failure)
    assert mapped() == before and len(kept) == 3


@pytest.fixture
def exact_grant(daemon, monkeypatch):
    """Sessions have a grant for 1 MiB."""
    made = daemon.ask("grant", "create", "--name=exact", "--memory=1MiB", "--pinned=1MiB", "--secret-only")
    assert made.returncode == 0, made.stderr
    monkeypatch.setenv("RNICD_GRANT", made.stdout.strip())


def test_the_first_lines_work_in_a_loop_under_an_exact_grant(exact_grant):
    kept = []
    with rnicd.connect() as s:
        for _ in range(3):
            with s.allocate("1MiB") as m, m.register(remote="rw") as r:
                a = np.frombuffer(m, np.float32)
                a[:] = 1.5
                del a
            kept += [m, r]


def test_a_block_that_raises_leaves_nothing_charged(exact_grant):
    with rnicd.connect() as s:
        for _ in range(3):
            with pytest.raises(KeyError):
                with s.allocate("1MiB") as m, m.register():
                    raise KeyError


def test_asyncio_unmaps_too(exact_grant):
    async def main():
        async with rnicd.aio.connect() as s:
            for _ in range(3):
                async with s.allocate("1MiB") as m, m.register(remote="rw"):
                    m[0] = 1

    asyncio.run(main())


def test_twenty_memories_leave_no_descriptor(session):
    before = len(os.listdir("/proc/self/fd"))
    memories = [session.allocate(PAGE) for _ in range(20)]
    regions = [memory.register(remote="r") for memory in memories]
    # gRPC may keep one or two more of its own.
    assert len(os.listdir("/proc/self/fd")) < before + 5 and len(regions) == 20


def test_dropped_objects_are_released_before_the_next_is_made(session, daemon):
    for _ in range(3):
        memory = session.allocate(PAGE)
        memory.register(remote="rw")
    del memory
    gc.collect()
    session.allocate(PAGE)
    use = session.usage().session
    assert use["regions"].used == 0 and use["memory_objects"].used <= 1
    assert use["memory_objects"].used == 0 or use["memory_bytes"].used == PAGE


def test_memory_of_a_region_stays(session):
    region = session.allocate(PAGE).register(remote="rw")
    gc.collect()
    assert session.usage().session["memory_objects"].used == 1
    region.close()


def test_memory_in_use_is_not_released(session):
    memory = session.allocate(PAGE)
    region = memory.register()
    with pytest.raises(rnicd.InUse) as caught:
        memory.close()
    assert caught.value.reason == "MEMORY_IN_USE" and not memory.closed
    region.close()
    memory.close()
    assert memory.closed


def test_a_closed_object_has_no_id_and_no_token(session):
    memory = session.allocate(PAGE)
    region = memory.register(remote="rw")
    region.close()
    memory.close()
    for use in (lambda: region.remote, lambda: region.local_token, lambda: memory.id, lambda: memory.register()):
        with pytest.raises(rnicd.Closed):
            use()


def test_a_part_is_registered_at_its_own_address(session):
    memory = session.allocate(4 * PAGE)
    region = memory.register(100, PAGE, remote="r")
    assert (region.address, len(region)) == (memory.address + 100, PAGE)
    assert region[10:20].address == memory.address + 110 and len(region[-5:]) == 5
    for outside in (lambda: memory.register(PAGE, 4 * PAGE), lambda: region[0 : PAGE + 1], lambda: region[::2]):
        with pytest.raises(rnicd.InvalidArgument):
            outside()


def test_a_chain_is_one_region(session):
    one, other = session.allocate(2 * PAGE), session.allocate(PAGE)
    region = session.register_chain([one.part(PAGE), other.part()], remote="rw")
    assert len(region) == 2 * PAGE and region.address == one.address + PAGE


def test_a_batch_tells_each_part_its_own_outcome(session):
    memory = session.allocate(4 * PAGE)
    parts = [memory.part(0, PAGE), memory.part(PAGE, 0), memory.part(2 * PAGE)]
    first, second, third = session.register_batch(parts, remote="r")
    assert isinstance(first, rnicd.Region) and isinstance(third, rnicd.Region)
    assert isinstance(second, rnicd.InvalidArgument)
    session.close_batch([first, third])
    assert first.closed and third.closed
    session.allocate(PAGE)
    assert session.usage().session["regions"].used == 0


def test_a_memfd_is_imported(session):
    file = rnicd.memfd(2 * PAGE)
    try:
        os.pwrite(file, b"mine", 0)
        memory = session.import_memory(file)
        assert bytes(memory[0:4]) == b"mine" and len(memory) == 2 * PAGE
        memory[0:4] = b"ours"
        assert os.pread(file, 4, 0) == b"ours"
        with memory.register(remote="rw") as region:
            assert len(region) == 2 * PAGE
    finally:
        os.close(file)


def test_other_memory_is_refused_in_words(session):
    with pytest.raises(TypeError, match="memfd"):
        session.import_memory(np.zeros(10))


def test_a_file_that_is_no_memfd_is_refused(session):
    # Never on a tmpfs, whose files are made of the same pages as memfds.
    with open("/proc/self/status", "rb") as file:
        with pytest.raises(rnicd.InvalidArgument) as caught:
            session.import_memory(file, PAGE)
    assert caught.value.reason == "MEMORY_NOT_MEMORY"


def test_objects_are_not_sent_to_other_processes(session):
    memory = session.allocate(PAGE)
    for thing in (session, memory, memory.register()):
        for way in (pickle.dumps, copy.copy):
            with pytest.raises(TypeError):
                way(thing)


def test_a_remote_region_travels_as_bytes():
    region = rnicd.RemoteRegion(1 << 40, 100, 7)
    assert rnicd.RemoteRegion.from_bytes(region.to_bytes()) == region
    assert region[10:20] == rnicd.RemoteRegion((1 << 40) + 10, 10, 7)
    assert "7" not in repr(region).replace("1099511627776", "")
    for wrong in (b"", b"x" * 24):
        with pytest.raises(rnicd.InvalidArgument):
            rnicd.RemoteRegion.from_bytes(wrong)


def test_sizes_are_numbers_or_texts(session):
    assert len(session.allocate("8KiB")) == 8192
    for wrong in ("64 apples", "-1", "", -1):
        with pytest.raises(rnicd.InvalidArgument):
            session.allocate(wrong)
    assert len(session.allocate(np.prod((64, 64)))) == PAGE
    with pytest.raises(TypeError):
        session.allocate(4096.0)


def test_rights_are_letters(session):
    memory = session.allocate(PAGE)
    with pytest.raises(rnicd.InvalidArgument):
        memory.register(remote="wr")


def test_populated_memory_is_zero(session):
    memory = session.allocate("1MiB", populate=True)
    assert not np.frombuffer(memory, np.uint64).any()
