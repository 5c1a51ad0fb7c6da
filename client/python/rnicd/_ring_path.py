"""The requests that travel through the session's ring, and their outcomes as those of calls."""

from __future__ import annotations

import copy
import os
import time
from typing import Any, Callable, Optional, Tuple, TypeVar

from . import _failures, _futex, errors
from ._effects import Call, Exchange, Steps, Submit
from ._proto import error_pb2
from ._proto import ring_service_pb2 as messages
from ._ring import COMPLETION_TAIL, COMPLETION_WAKES, COMPLETION_WAKEUP, HEADER_BYTES, MAGIC
from ._ring import Outcome, Reply, Ring, Submission
from ._shared_file import SUPPORTED, WAKE_BY_FUTEX, WAKE_NOT, BadFile, Descriptor, SharedFile
from ._turns import Turns

SLEEP_MAX_SECONDS = 0.1
"""A daemon that was killed wakes nobody: no sleep on a futex is longer, and then its thread looks at the session."""
# Numbers of OpenRingRequest; 0 means the daemon's choice.
_ENTRIES, _PAYLOAD_BYTES = 0, 0
_FIRST_OF_CLOSES = 0
CANNOT_OPEN = (errors.Refused, errors.Unavailable, errors.TimedOut)
"""Failures of `open_ring` after which a session can go on by calls."""
End = TypeVar("End")


def open_ring(want_pipe: bool, drop: Callable[[int, Call], None]) -> Steps[Tuple[Ring, Optional[Descriptor]]]:
    """Opens a ring; with its pipe for an event loop. Errors: Refused (QUOTA_RINGS, RINGS_UNAVAILABLE, ...), ..."""
    if not SUPPORTED:
        raise _failures.of_reason("RINGS_UNAVAILABLE")
    opened = yield Call("Ring", "OpenRing", messages.OpenRingRequest(entries=_ENTRIES, payload_bytes=_PAYLOAD_BYTES))
    try:
        doorbell = Descriptor((yield Exchange(opened.doorbell_ticket)))
        pipe = Descriptor((yield Exchange(opened.pipe_ticket))) if want_pipe else None
        file = yield from map_file(opened.memory_ticket, opened.file_bytes, MAGIC, HEADER_BYTES)
        return open_end(lambda: Ring(file, doorbell)), pipe
    except BaseException:
        # It costs memory in the daemon.
        drop(_FIRST_OF_CLOSES, Call("Ring", "CloseRing", messages.CloseRingRequest(ring_id=opened.ring_id)))
        raise


def map_file(ticket: bytes, length: int, magic: bytes, header_bytes: int) -> Steps[SharedFile]:
    """Fetches and maps the memory of a ring or of a mapped queue. Errors: Unavailable, Refused."""
    descriptor = yield Exchange(ticket)
    try:
        return open_end(lambda: SharedFile(descriptor, length, magic, header_bytes))
    except OSError as failure:
        raise _failures.no_pages(f"this process cannot map {length} bytes: {failure.strerror}") from failure
    finally:
        os.close(descriptor)


def sleep_until_changed(file: SharedFile, wakeup: int, wakes: int, changed: Callable[[], bool], end: float) -> None:
    """Sleeps on the futex of the word `wakes`, unless `changed`; until the daemon wakes it, or before `end`."""
    words = file.words
    seconds = max(0.0, min(SLEEP_MAX_SECONDS, end - time.monotonic()))
    before = words[wakes]
    words[wakeup] = WAKE_BY_FUTEX
    file.fence()
    try:
        if not changed():
            _futex.wait(file.address + 4 * wakes, before, seconds)
    finally:
        words[wakeup] = WAKE_NOT


def open_end(make: Callable[[], End]) -> End:
    """What `make` makes of the daemon's memory. Errors: Unavailable for memory that this package cannot use."""
    try:
        return make()
    except BadFile as failure:
        raise errors.Unavailable(str(failure)) from None


def failure_of(reply: Reply) -> Optional[errors.Error]:
    """The failure that a call would have had; None for success."""
    outcome: Any = reply.outcome
    if outcome.status == 0 and outcome.reason == 0:
        return None
    detail = error_pb2.ErrorDetail(
        reason=outcome.reason,
        ntstatus=outcome.status,
        field=reply.field,
        limit=outcome.base_or_limit,
        used=outcome.length_or_used,
        requested=outcome.requested,
    )
    return _failures.of_detail(detail)


def checked(reply: Reply) -> Outcome:
    """The outcome of a request that is not a chain. Errors: those of the call."""
    failure = failure_of(reply)
    if failure is not None:
        raise failure
    return reply.outcome


def of_end(reason: Any) -> errors.Error:
    """Why a ring has ended, from the ErrorReason in its header."""
    return _failures.of_number(reason)


def timed_out() -> errors.TimedOut:
    """An outcome that did not come in time."""
    return errors.TimedOut("the ring had no outcome in time; the request may have been executed")


class SyncRing:
    """A ring that the threads of a session share. Threads: safe."""

    def __init__(self, ring: Ring, spin_seconds: float) -> None:
        self._ring = ring
        self._spin = _futex.Spin(spin_seconds)
        self._turns = Turns()
        self.ended: Optional[errors.Error] = None
        """Why the ring takes nothing any more."""

    @property
    def daemon_cpu(self) -> int:
        """The processor that serves the ring, plus 1; 0 if unknown."""
        return self._ring.daemon_cpu

    def end(self, why: errors.Error) -> None:
        """The session has ended: what is under way fails. The first cause counts."""
        with self._turns.lock:
            self.ended = self.ended or why
            self._turns.notify()

    def execute(self, wanted: Submit, seconds: float) -> Optional[Reply]:
        """Submits the request and waits for its outcome. None where the call is to be made instead.

        Errors: TimedOut; why the ring has ended meanwhile.
        """
        if not self._ring.fits(wanted):
            return None
        end = time.monotonic() + seconds
        with self._turns.lock:
            if self.ended is not None:
                return None
            submission = self._ring.submit(wanted)
        if submission is None:
            submission = self._submit_later(wanted, end)
            if submission is None:
                return None
        self._ring.wake()
        sent = submission
        if not self._turns.wait_until(self, lambda: sent.reply is not None or self.ended is not None, end):
            raise timed_out()
        if sent.reply is None:
            # A copy, because each raise adds to the traceback.
            raise copy.copy(self.ended)  # type: ignore[misc]
        return sent.reply

    def _submit_later(self, wanted: Submit, end: float) -> Optional[Submission]:
        """Waits for room."""
        sent: list[Submission] = []

        def submit() -> bool:
            submission = None if self.ended else self._ring.submit(wanted)
            if submission is not None:
                sent.append(submission)
            return bool(sent) or self.ended is not None

        if not self._turns.wait_until(self, submit, end):
            raise timed_out()
        return sent[0] if sent else None

    # The source of its turns.

    def position(self) -> int:
        return self._ring.read

    def read(self) -> bool:
        # The reason first: outcomes that are read after it came before the end.
        reason = self._ring.end_reason
        found = self._ring.collect()
        if reason and self.ended is None:
            self.ended = of_end(reason)
            return True
        return found

    def wait(self, position: int, end: float) -> None:
        ring, words = self._ring, self._ring.file.words
        if words[COMPLETION_TAIL] != position:
            return
        began = time.monotonic()
        here = _futex.processor()
        ring.set_cpu(here)
        if self._spin.until_changed(words, COMPLETION_TAIL, position, here, ring.daemon_cpu):
            return
        sleep_until_changed(ring.file, COMPLETION_WAKEUP, COMPLETION_WAKES, lambda: ring.changed(position), end)
        waited = time.monotonic() - began
        self._spin.record(waited)
        if waited >= SLEEP_MAX_SECONDS:
            # For a daemon that was about to sleep when it was needed. It costs nothing.
            ring.ring_doorbell()
