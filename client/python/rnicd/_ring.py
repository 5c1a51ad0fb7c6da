"""The client's end of a ring: submits requests to shared memory and reads their outcomes. Never waits."""

from __future__ import annotations

import collections
import os
import struct
from typing import Deque, List, NamedTuple, Optional, Tuple

from ._effects import Submit
from ._shared_file import INDEX_MASK, LINE_BYTES, SharedFile, Descriptor

MAGIC = b"RNIDRING"
HEADER_BYTES = 5 * LINE_BYTES
# Words of the header: offsets of docs/RINGS.md, in words.
SUBMISSION_TAIL, CLIENT_CPU = 128 // 4, 132 // 4
SUBMISSION_WAKEUP, DAEMON_CPU, END_REASON = 260 // 4, 264 // 4, 268 // 4
COMPLETION_TAIL, COMPLETION_WAKES = 384 // 4, 388 // 4
COMPLETION_HEAD, COMPLETION_WAKEUP = 512 // 4, 516 // 4
_SUBMISSION = struct.Struct("<QHHIQQIIIII12x")
_OUTCOME = struct.Struct("<QIIHHIIIIIQQQ")
_RING_ONCE = struct.pack("<Q", 1)
# Names of fields are shorter: "requests[1023].send_and_invalidate.sges[65535].length".
_FIELD_BYTES_MAX = 96


class Outcome(NamedTuple):
    """The daemon's outcome, in its own order, and what was in the result area."""

    user_data: int
    status: int
    reason: int
    opcode: int
    reserved: int
    field_bytes: int
    posted: int
    local_token: int
    remote_token: int
    reserved2: int
    base_or_limit: int
    length_or_used: int
    requested: int


class Reply(NamedTuple):
    """What became of a submission."""

    outcome: Outcome
    tokens: "tuple[int, ...]"
    """Of each request of a chain; 0 where none was issued."""
    field: str
    """Name of the field at fault, after a refusal."""


class Submission:
    """A request on its way."""

    __slots__ = ("tokens", "result_offset", "payload_end", "reply")

    def __init__(self, tokens: int, result_offset: int, payload_end: int) -> None:
        self.tokens = tokens
        self.result_offset = result_offset
        self.payload_end = payload_end
        self.reply: Optional[Reply] = None


class Ring:
    """Threads: `submit` and `collect` one at a time; all else is safe."""

    def __init__(self, file: SharedFile, doorbell: Descriptor) -> None:
        """Errors: BadFile."""
        file.check_inside(file.submission_offset, file.entries * 64, HEADER_BYTES)
        file.check_inside(file.payload_offset, file.payload_bytes, HEADER_BYTES)
        self.file = file
        self._words = file.words
        self._doorbell = doorbell
        self._slots: List[Optional[Submission]] = [None] * file.entries
        # Submissions in order, until they and all before them are complete: what they hold of the payload area.
        self._window: Deque[Submission] = collections.deque()
        self._next = self._words[SUBMISSION_TAIL]
        self.read = self._words[COMPLETION_TAIL]
        """Number of outcomes that were read, modulo 2^32."""
        # Bytes of the payload area that were given out and freed since it was last empty.
        self._reserved = self._freed = 0

    def fits(self, wanted: Submit) -> bool:
        """Whether the ring is large enough for the request."""
        return len(wanted.payload) + _result_bytes(wanted.tokens) <= self.file.payload_bytes

    def has_room(self, wanted: Submit) -> bool:
        """Whether `submit` would succeed now."""
        return self._place(len(wanted.payload) + _result_bytes(wanted.tokens)) is not None

    def submit(self, wanted: Submit) -> Optional[Submission]:
        """Hands the request to the daemon; `wake` follows. None when there is no room until outcomes are read."""
        payload, result = len(wanted.payload), _result_bytes(wanted.tokens)
        place = self._place(payload + result)
        if place is None:
            return None
        offset, self._reserved = place
        file, number = self.file, self._next
        submission = Submission(wanted.tokens, offset + payload, self._reserved)
        self._slots[number & (file.entries - 1)] = submission
        self._window.append(submission)
        begin = file.payload_offset + offset
        # A token that the daemon does not issue is 0.
        file.bytes[begin : begin + payload + 4 * wanted.tokens] = wanted.payload + bytes(4 * wanted.tokens)
        _SUBMISSION.pack_into(
            file.bytes,
            file.submission_offset + 64 * (number & (file.entries - 1)),
            number,
            wanted.opcode,
            0,
            wanted.records,
            wanted.target,
            wanted.length,
            wanted.argument,
            offset,
            payload,
            offset + payload,
            result,
        )
        self._next = number + 1 & INDEX_MASK
        # After payload and entry: x86 keeps the order of stores.
        self._words[SUBMISSION_TAIL] = self._next
        return submission

    def wake(self) -> None:
        """Rings the doorbell if the daemon sleeps. Follows each `submit`; without a lock that others need."""
        self.file.fence()
        if self._words[SUBMISSION_WAKEUP]:
            self.ring_doorbell()

    def ring_doorbell(self) -> None:
        """Wakes the daemon. Once too often does no harm."""
        os.write(self._doorbell.number, _RING_ONCE)

    def collect(self) -> bool:
        """Reads the outcomes that have come, into their submissions. False when there was none."""
        tail = self._words[COMPLETION_TAIL]
        if tail == self.read:
            return False
        file = self.file
        while self.read != tail:
            place = file.completion_offset + 64 * (self.read & (file.entries - 1))
            outcome = Outcome._make(_OUTCOME.unpack_from(file.bytes, place))
            slot = outcome.user_data & (file.entries - 1)
            submission = self._slots[slot]
            self._slots[slot] = None
            if submission is not None:
                submission.reply = self._reply(submission, outcome)
            self.read = self.read + 1 & INDEX_MASK
            self._words[COMPLETION_HEAD] = self.read
        while self._window and self._window[0].reply is not None:
            self._freed = self._window.popleft().payload_end
        return True

    def changed(self, read: int) -> bool:
        """Whether there is an outcome after the first `read`, or the ring has ended."""
        return bool(self._words[COMPLETION_TAIL] != read or self._words[END_REASON] != 0)

    @property
    def end_reason(self) -> int:
        """0, or the ErrorReason for which the ring has ended. Outcomes that are read afterwards came before the end."""
        return self._words[END_REASON]

    @property
    def daemon_cpu(self) -> int:
        """The processor that serves the ring, plus 1; 0 if unknown."""
        return self._words[DAEMON_CPU]

    def set_cpu(self, cpu: int) -> None:
        """Tells the daemon this thread's processor, plus 1: it looks for no entries of a client that needs its own."""
        self._words[CLIENT_CPU] = cpu

    def _place(self, count: int) -> Optional[Tuple[int, int]]:
        """Offset of so many free bytes in a row, and what is reserved with them.

        What does not fit before the end of the area begins at its start again. So does what follows when nothing is in
        use: otherwise bytes that fit nowhere but at the start would never be free.
        """
        if len(self._window) >= self.file.entries:
            return None
        if not self._window:
            self._reserved = self._freed = 0
        reserved, freed = self._reserved, self._freed
        size = self.file.payload_bytes
        offset = reserved % size
        skipped = size - offset if offset + count > size else 0
        if reserved + skipped + count - freed > size:
            return None
        return 0 if skipped else offset, reserved + skipped + count

    def _reply(self, submission: Submission, outcome: Outcome) -> Reply:
        """Copies the result area: the next request may overwrite it."""
        begin = self.file.payload_offset + submission.result_offset
        tokens = struct.unpack_from(f"<{submission.tokens}I", self.file.bytes, begin) if submission.tokens else ()
        field = ""
        if outcome.field_bytes:
            behind = begin + 4 * submission.tokens
            named = self.file.bytes[behind : behind + min(outcome.field_bytes, _FIELD_BYTES_MAX)]
            field = str(named, "utf-8", "replace")
        return Reply(outcome, tokens, field)


def _result_bytes(tokens: int) -> int:
    """Size of the result area: tokens and the name of a field, in whole units of 8 bytes."""
    return (4 * tokens + _FIELD_BYTES_MAX + 7) // 8 * 8
