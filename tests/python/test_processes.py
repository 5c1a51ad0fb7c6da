"""Signals, exits, exceptions in the middle, garbage collection, threads."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import time

import pytest
import rnicd
from rnicd import _mapping
from rnicd._effects import Exchange
from rnicd._runner import SyncLink

import programs
from polling import wait_for

pytestmark = pytest.mark.usefixtures("data_path")
PAGE = 4096
_TIMEOUT_S = 60


def descriptors():
    return len(os.listdir("/proc/self/fd"))


# Says so when it waits.
_WAITING = """
import rnicd
import waits
deep = threading.Event()
def tell():
    if not deep.is_set():
        print("waiting", flush=True)
        deep.set()
for kind, name in waits.PLACES:
    setattr(kind, name, waits.announced(kind, name, tell))
s = rnicd.connect()
m = s.allocate(4096)
r = m.register()
one, other = s.queue_pair(), s.queue_pair()
one.connect(other.address); other.connect(one.address)
pending = one.post([rnicd.Receive(r)])
"""


def test_ctrl_c_ends_a_wait_and_loses_no_completion(daemon):
    program = (
        _WAITING
        + """
try:
    pending.wait(60)
    sys.exit(1)
except KeyboardInterrupt:
    pass
other.send(b"after")
assert pending.wait()[0].bytes == 5 and bytes(m[0:5]) == b"after"
s.close()
"""
    )
    child = programs.start(program)
    programs.wait_for_line(child, "waiting")
    child.send_signal(signal.SIGINT)
    status, out, err = programs.finish(child)
    assert (status, err) == (0, ""), out


def test_ctrl_c_that_nobody_catches_ends_the_program(daemon):
    child = programs.start(_WAITING + "pending.wait(60)\n")
    programs.wait_for_line(child, "waiting")
    child.send_signal(signal.SIGINT)
    status, _, err = programs.finish(child)
    assert status == -signal.SIGINT and "KeyboardInterrupt" in err
    daemon.wait_until_empty()


def test_sigterm_ends_a_waiting_program(daemon):
    child = programs.start(_WAITING + "pending.wait(60)\n")
    programs.wait_for_line(child, "waiting")
    child.terminate()
    assert programs.finish(child)[0] == -signal.SIGTERM
    daemon.wait_until_empty()


def test_a_handled_signal_does_not_end_a_wait(daemon):
    program = (
        _WAITING
        + """
handled = []
sender = threading.Thread(target=other.send, args=[b"x"])
def handle(*_):
    handled.append(deep.is_set())
    if handled.count(True) == 5:
        sender.start()
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
assert pending.wait(60)[0].bytes == 1
signal.setitimer(signal.ITIMER_REAL, 0)
sender.join()
s.close()
"""
    )
    programs.run_well(program)


@pytest.mark.parametrize(
    "end,status", [("pass", 0), ("sys.exit(3)", 3), ("raise SystemExit(4)", 4), ("os._exit(5)", 5)]
)
def test_an_exit_with_live_buffers_is_clean(daemon, end, status):
    program = f"""
    import rnicd
    import numpy as np
    s = rnicd.connect()
    m = s.allocate("1MiB")
    a = np.frombuffer(m, np.float32)
    r = m.register(remote="rw")
    pair = s.queue_pair()
    keep = [a, memoryview(m), m[0:5], r.remote, pair.post([rnicd.Receive(r)])]
    keep.append(keep)
    {end}
    """
    assert programs.run(program) == (status, "", "")
    daemon.wait_until_empty()


def test_an_exit_while_a_thread_waits_is_clean(daemon):
    program = _WAITING + "threading.Thread(target=pending.wait, args=(60,), daemon=True).start()\ndeep.wait()\n"
    assert programs.run(program) == (0, "waiting\n", "")
    daemon.wait_until_empty()


def test_garbage_is_collected_in_any_order(daemon):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    order = random.Random(seed)
    for _ in range(10):
        session = rnicd.connect()
        memory = session.allocate(PAGE)
        region, fast = memory.register(remote="rw"), session.fast_region(1)
        pair, mapping, window = session.queue_pair(), memory.map_pages(), session.window()
        pending = pair.post([rnicd.Receive(region)])
        things = [session, memory, region, fast, pair, mapping, window, pending, memory[0:1]]
        things[order.randrange(8)].__dict__["cycle"] = things
        del session, memory, region, fast, pair, mapping, window, pending
        order.shuffle(things)
        while things and order.random() < 0.8:
            things.pop()
        del things
        gc.collect()
    daemon.wait_until_empty()


def test_sessions_leave_no_descriptor_and_no_thread(daemon):
    rnicd.connect().close()
    before = descriptors()
    for _ in range(5):
        with rnicd.connect() as session, session.allocate(PAGE) as memory, memory.register():
            session.queue_pair().close()
    dropped = [rnicd.connect() for _ in range(5)]
    assert descriptors() >= before + 5
    del dropped
    gc.collect()
    # gRPC may keep one or two more of its own.
    wait_for("the descriptors", lambda: descriptors() < before + 3)
    wait_for("the threads", lambda: not [one for one in threading.enumerate() if one.name == "rnicd-events"])
    daemon.wait_until_empty()


def test_a_failed_connect_leaves_no_descriptor(daemon):
    before = descriptors()
    for _ in range(5):
        with pytest.raises(rnicd.NotFound):
            rnicd.connect(adapter="none")
    gc.collect()
    wait_for("the descriptors", lambda: descriptors() < before + 3)


def test_an_exception_in_the_block_closes_everything(daemon):
    with pytest.raises(KeyError):
        with rnicd.connect() as s, s.allocate(PAGE) as m, m.register() as r, s.queue_pair() as p:
            p.post([rnicd.Receive(r)])
            raise KeyError
    assert r.closed and m.closed and p.closed
    daemon.wait_until_empty()


@pytest.mark.parametrize("method", ["SealMemory", "CreateMr", "RegisterMr"])
def test_an_interrupt_between_two_calls_leaves_nothing(session, monkeypatch, method):
    def interrupted(link, wanted):
        if getattr(wanted, "method", "RegisterMr") == method and not isinstance(wanted, Exchange):
            raise KeyboardInterrupt
        return perform(link, wanted)

    perform = SyncLink._perform
    monkeypatch.setattr(SyncLink, "_perform", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.allocate(PAGE).register(remote="rw")
    monkeypatch.undo()
    gc.collect()
    kept = session.allocate(PAGE)
    use = session.usage().session
    assert (use["regions"].used, use["memory_objects"].used, len(kept)) == (0, 1, PAGE)


def test_an_object_made_by_one_thread_is_closed_once_by_many(session):
    for _ in range(10):
        region = session.allocate(PAGE).register()
        failures = []

        def close(region=region, failures=failures):
            try:
                region.close()
            except rnicd.Error as failure:
                failures.append(failure)

        threads = [threading.Thread(target=close) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures and region.closed


@pytest.fixture
def no_forced_switch():
    """A thread keeps the interpreter's lock until it lets it go itself, in a call that does so."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(10 * _TIMEOUT_S)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("no_forced_switch")
@pytest.mark.parametrize("data_path", ["calls"], indirect=True)
def test_populating_lets_other_threads_run(session):
    memory = session.allocate("64MiB")
    ticks, stop = [0], threading.Event()

    def tick():
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0)

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    wait_for("the other thread", lambda: ticks[0] > 0)
    # In this loop only `populate` lets the other thread run. When it does is up to the kernel, so again and again.
    end = time.monotonic() + _TIMEOUT_S
    before = ticks[0]
    while ticks[0] == before and time.monotonic() < end:
        _mapping.populate(memory.address, len(memory))
    after = ticks[0]
    stop.set()
    ticker.join()
    assert after > before
