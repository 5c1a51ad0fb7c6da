"""Completion queues in memory that the daemon shares with this process."""

from __future__ import annotations

import struct
from typing import Any, List, NamedTuple, Optional

from . import _failures, errors
from ._effects import Call, Exchange, Steps
from ._fields import message
from ._proto import error_pb2
from ._proto import queue_service_pb2 as messages
from ._ring_path import map_file
from ._shared_file import ENTRY_BYTES, INDEX_MASK, LINE_BYTES, Descriptor, SharedFile
from .completion import Completion

TAIL, STATUS, WAKES = 128 // 4, 136 // 4, 140 // 4
HEAD, WAKEUP = 256 // 4, 260 // 4
READ_MAX = 1024
"""Completions taken at a time."""
_MAGIC = b"RNIDCOM "
_HEADER_BYTES = 3 * LINE_BYTES
_RESULT = struct.Struct("<IIHHIQQI28x")
_OVERRUN = error_pb2.NT_STATUS_BUFFER_OVERFLOW & INDEX_MASK
_CLOSING = error_pb2.NT_STATUS_INVALID_DEVICE_STATE & INDEX_MASK
# Failures that a queue without mapping does not have.
_OF_MAPPING = (
    "MEMORY_PAGES_UNAVAILABLE",
    "QUOTA_HEAP_BYTES",
    "RATE_LIMITED",
    "RINGS_UNAVAILABLE",
    "TICKET_UNKNOWN",
)
# A mapped queue cannot grow above what it was made for. Room costs the daemon memory; little where the queue is small.
_GROWTH, _ROOM_MIN, _ROOM_MAX = 4, 256, 1 << 20


class MappedQueue:
    """Threads: one at a time; `changed` is safe."""

    def __init__(self, file: SharedFile, pipe: Optional[Descriptor]) -> None:
        self.file = file
        self.pipe = pipe
        """In which the daemon announces completions, for an event loop."""
        self._words = file.words
        self.head = self._words[HEAD]
        """Number of completions that were taken, modulo 2^32."""

    def take(self) -> List[Completion]:
        """Removes the oldest completions. Errors: Refused (CQ_OVERRUN, DEVICE_FAILED); Closing."""
        status = self._words[STATUS]
        if status:
            raise _failure(status)
        tail = self._words[TAIL]
        if tail == self.head:
            return []
        file, found = self.file, []
        for number in range(self.head, self.head + min(tail - self.head & INDEX_MASK, READ_MAX)):
            place = file.completion_offset + ENTRY_BYTES * (number & (file.entries - 1))
            found.append(_completion(_RESULT.unpack_from(file.bytes, place)))
        self.head = self.head + len(found) & INDEX_MASK
        self._words[HEAD] = self.head
        return found

    def changed(self, head: int) -> bool:
        """Whether there is a completion after the first `head`, or the queue has failed."""
        return self._words[TAIL] != head or self._words[STATUS] != 0


class Closing(Exception):
    """The queue was closed, or its session has ended: the event stream says why."""


class Made(NamedTuple):
    """A queue that was created."""

    cq_id: int
    mapped: Optional[MappedQueue]
    """None for a queue that is polled by calls."""


def create(link: Any, depth: int) -> Steps[Made]:
    """A queue: mapped where the session can have that, unless its program insists."""
    request = message(messages.CreateCqRequest, adapter_id=link.adapter_id, cq_depth=depth)
    if link.data_path == "calls":
        return Made((yield Call("Queue", "CreateCq", request)).cq_id, None)
    try:
        return (yield from _create_mapped(link, depth))
    except (errors.Refused, errors.Unavailable, errors.TimedOut) as failure:
        known = not isinstance(failure, errors.Refused) or failure.reason in _OF_MAPPING
        if link.data_path == "rings" or not known:
            raise
    return Made((yield Call("Queue", "CreateCq", request)).cq_id, None)


def _create_mapped(link: Any, depth: int) -> Steps[Made]:
    made = yield from _call_create(link, depth)
    if not made.HasField("mapped"):
        # A daemon that does not know the field. The queue works by calls.
        if link.data_path == "rings":
            link.drop(2, Call("Queue", "CloseCq", messages.CloseCqRequest(cq_id=made.cq_id)))
            raise _failures.of_reason("RINGS_UNAVAILABLE")
        return Made(made.cq_id, None)
    try:
        pipe = Descriptor((yield Exchange(made.mapped.pipe_ticket))) if link.WANTS_PIPES else None
        file = yield from map_file(made.mapped.memory_ticket, made.mapped.file_bytes, _MAGIC, _HEADER_BYTES)
    except BaseException:
        link.drop(2, Call("Queue", "CloseCq", messages.CloseCqRequest(cq_id=made.cq_id)))
        raise
    return Made(made.cq_id, MappedQueue(file, pipe))


def _call_create(link: Any, depth: int) -> Steps[Any]:
    """CreateCq, with room to grow where there may be that."""
    request = messages.CreateCqRequest(adapter_id=link.adapter_id, cq_depth=depth, mapped=True)
    request.mapped_depth_max = max(depth, min(max(_GROWTH * depth, _ROOM_MIN), _ROOM_MAX))
    try:
        return (yield Call("Queue", "CreateCq", request))
    except errors.Refused as refused:
        if refused.reason == "QUOTA_HEAP_BYTES":
            request.mapped_depth_max = depth
        elif refused.reason == "ABOVE_ADAPTER_LIMIT" and refused.limit >= depth:
            request.mapped_depth_max = refused.limit
        else:
            raise
    return (yield Call("Queue", "CreateCq", request))


def _failure(status: int) -> Exception:
    if status == _CLOSING:
        return Closing()
    return _failures.of_reason("CQ_OVERRUN" if status == _OVERRUN else "DEVICE_FAILED", "cq_id")


def _completion(result: "tuple[int, ...]") -> Completion:
    status, reason, kind, _, count, qp_context, context, token = result
    return Completion.of_numbers(status, reason, kind, count, qp_context, context, token)
