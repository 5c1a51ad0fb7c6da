"""Completion queues and queue pairs: what the sync and the async classes have in common."""

from __future__ import annotations

import collections
import itertools
import weakref
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Tuple, Type, TypeVar

from . import _amounts, _data_path, _failures, _mapped_queue, errors
from ._effects import Call, Steps
from ._fields import message
from ._handle import Handle
from ._link import Link
from ._proto import queue_service_pb2 as messages
from .completion import Completion
from .remote import RemoteRegion
from .work import Local, Payload, Read, Receive, Request, Send, Write, part_of

_NOTIFY = {
    "errors": messages.CQ_NOTIFY_TYPE_ERRORS,
    "any": messages.CQ_NOTIFY_TYPE_ANY,
    "solicited": messages.CQ_NOTIFY_TYPE_SOLICITED,
}
_STATES = {1: "init", 2: "ready", 3: "error"}
# Contexts of requests that a Pending waits for; users' own are below.
_CLAIMED = 1 << 63
_contexts = itertools.count(_CLAIMED)


def check_requests(requests: Any) -> None:
    """Raises InvalidArgument unless these are requests."""
    wanted = "a list of requests such as rnicd.Write"
    for one in _amounts.sequence(requests, "requests"):
        if not isinstance(one, Request):
            raise _failures.wrong_type("requests", wanted, one)


class PendingBase:
    """Requests that were posted together, until all of them are complete. It keeps the objects that they name."""

    def __init__(self, requests: Sequence[Request]) -> None:
        check_requests(requests)
        self._requests: Tuple[Request, ...] = tuple(requests)
        self._found: Dict[int, Completion] = {}
        self._open: Dict[QueueBase, int] = {}
        self.tokens: Dict[int, int] = {}
        """Remote tokens of FastRegister and Bind, by the request's place in the chain."""

    @property
    def done(self) -> bool:
        """Whether every request that reports its success is complete. Looks at what was collected; `wait` collects."""
        return not any(self._open.values())

    def _expect(self, queue: QueueBase, index: int, change: int) -> None:
        if self._requests[index].reports:
            self._open[queue] = self._open.get(queue, 0) + change

    def _take(self, queue: QueueBase, index: int, completion: Completion) -> None:
        self._expect(queue, index, -1)
        self._found[index] = completion

    def _open_on(self, queue: QueueBase) -> bool:
        return self._open.get(queue, 0) > 0

    def _result(self) -> List[Completion]:
        """The completions in the order of the requests. Errors: TransferFailed for the first that failed."""
        found = [self._found[index] for index in sorted(self._found)]
        for index in sorted(self._found):
            one = self._found[index]
            if not one.ok and one.reason != "REQUEST_FLUSHED":
                raise self._failure(index, one)
        for index in sorted(self._found):
            if not self._found[index].ok:
                raise self._failure(index, self._found[index])
        return found

    def _failure(self, index: int, one: Completion) -> errors.TransferFailed:
        return errors.TransferFailed(
            one.reason, one.ntstatus, one.ntstatus_name, self._requests[index].NAME, index, one.message
        )


class QueueBase(Handle):
    """A completion queue: the ends of the requests of its queue pairs.

    Requests that were posted with `QueuePair.post` and its blocking methods are claimed by their Pending; `poll` gives
    all others.
    """

    _RANK = 2
    _claims: Dict[int, Tuple[PendingBase, int]]
    _unclaimed: Deque[Completion]
    _mapped: Optional[_mapped_queue.MappedQueue]
    _notified: Any
    """An Event of the client's own kind."""
    _overrun: bool
    depth: int
    """Completions that fit; one more, and the queue and its queue pairs fail (CQ_OVERRUN)."""

    @classmethod
    def _close_call(cls, ident: int) -> Call:
        return Call("Queue", "CloseCq", messages.CloseCqRequest(cq_id=ident))

    def _start(self, link: Link, made: _mapped_queue.Made, depth: int) -> None:
        self._claims, self._unclaimed = {}, collections.deque()
        self.depth, self._mapped = depth, made.mapped
        self._adopt(link, made.cq_id)

    def _dispatch(self, completions: List[Completion]) -> None:
        for one in completions:
            claim = self._claims.pop(one.context, None)
            if claim is None:
                self._unclaimed.append(one)
            else:
                claim[0]._take(self, claim[1], one)

    def _notify(self, status: int) -> None:
        self._overrun = self._overrun or status != 0
        self._notified.set()

    def _take_unclaimed(self, most: int) -> List[Completion]:
        return [self._unclaimed.popleft() for _ in range(min(_amounts.integer(most, "most"), len(self._unclaimed)))]

    def _arm_steps(self, kind: str) -> Steps[None]:
        if not isinstance(kind, str) or kind not in _NOTIFY:
            raise _failures.invalid("FIELD_OUT_OF_RANGE", "kind", 'a queue is armed for "errors", "any" or "solicited"')
        yield from _data_path.arm(self._link, self.id, _NOTIFY[kind])

    def _resize_steps(self, depth: int) -> Steps[None]:
        request = message(messages.ResizeCqRequest, cq_id=self.id, cq_depth=depth)
        yield Call("Queue", "ResizeCq", request)
        self.depth = request.cq_depth


class BatchBase:
    """Requests that are posted together, in one call, when the `with` block of `QueuePair.batch` ends.

    After the block `pending` is their Pending and `wait` waits for it. A block that raises posts nothing.
    """

    def __init__(self) -> None:
        self._requests: List[Request] = []

    def add(self, request: Request) -> None:
        """Adds any request."""
        self._requests.append(request)

    def write(self, payload: Payload, remote: RemoteRegion, offset: int = 0) -> None:
        """Adds a write to byte `offset` of `remote`."""
        self.add(Write(payload, part_of(remote, offset)))

    def read(self, local: Local, remote: RemoteRegion, offset: int = 0) -> None:
        """Adds a read from byte `offset` of `remote`."""
        self.add(Read(local, part_of(remote, offset)))

    def send(self, payload: Payload) -> None:
        """Adds a send."""
        self.add(Send(payload))

    def receive(self, local: Local) -> None:
        """Adds a receive."""
        self.add(Receive(local))


class PairBase(Handle):
    """One end of a connection between two sessions, or within one: executes work requests in order.

    Exchange `address` with the peer, then `connect` on both sides. After a failed transfer, a flush or a disconnect it
    executes nothing any more: close it and make a new one.
    """

    _RANK = 1
    address: bytes
    """What the peer passes to `connect`: opaque, at most 64 bytes."""
    inline_bytes: int
    """Largest payload given as `bytes`."""
    _receive_queue: QueueBase
    _initiator_queue: QueueBase
    _gone: Any
    """An Event of the client's own kind, set when the peer has disconnected or died."""
    _connector: Any = None
    """Its connector, which is closed first: the daemon closes no pair before it."""

    @classmethod
    def _close_call(cls, ident: int) -> Call:
        return Call("Queue", "CloseQp", messages.CloseQpRequest(qp_id=ident))

    def _connect_steps(self, peer_address: bytes) -> Steps[None]:
        request = message(messages.ConnectQpRequest, qp_id=self.id, peer_address=peer_address)
        yield Call("Queue", "ConnectQp", request)

    def _disconnect_steps(self) -> Steps[None]:
        yield Call("Queue", "DisconnectQp", messages.DisconnectQpRequest(qp_id=self.id))

    def _flush_steps(self) -> Steps[None]:
        yield Call("Queue", "Flush", messages.FlushRequest(qp_id=self.id))

    def _state_steps(self) -> Steps[str]:
        answer = yield Call("Queue", "QueryQp", messages.QueryQpRequest(qp_id=self.id))
        return _STATES.get(answer.state, "unknown")

    def _queue_of(self, request: Request) -> QueueBase:
        return self._receive_queue if request.NAME == "receive" else self._initiator_queue

    def _post_steps(self, requests: Sequence[Request], pending: PendingBase) -> Steps[None]:
        """Posts, with claims made before: another thread may collect the completions at once."""
        encoded, claimed = [request.encode() for request in requests], []
        for index, request in enumerate(requests):
            claimed.append((self._queue_of(request), next(_contexts), index))
        for queue, context, index in claimed:
            pending._expect(queue, index, 1)
            queue._claims[context] = (pending, index)
        try:
            posted = yield from _data_path.post(self._link, self.id, encoded, [claim[1] for claim in claimed])
        except errors.Refused:
            _withdraw(claimed, pending)
            raise
        pending.tokens = posted.tokens
        if posted.refusal is not None:
            _withdraw(claimed[posted.accepted :], pending)
            posted.refusal.posted = posted.accepted
            posted.refusal.pending = pending if posted.accepted else None
            raise posted.refusal

    def _post_raw_steps(self, requests: Sequence[Request], contexts: Sequence[int]) -> Steps[Dict[int, int]]:
        check_requests(requests)
        contexts = [_amounts.integer(one, "contexts", 0, _CLAIMED) for one in _amounts.sequence(contexts, "contexts")]
        if len(requests) != len(contexts):
            raise _failures.invalid("FIELD_OUT_OF_RANGE", "contexts", "every request has a context")
        encoded = [request.encode() for request in requests]
        posted = yield from _data_path.post(self._link, self.id, encoded, contexts)
        if posted.refusal is not None:
            posted.refusal.posted = posted.accepted
            raise posted.refusal
        return posted.tokens


def _withdraw(claimed: List[Tuple[QueueBase, int, int]], pending: PendingBase) -> None:
    for queue, context, index in claimed:
        if queue._claims.pop(context, None) is not None:
            pending._expect(queue, index, -1)


AnyQueue = TypeVar("AnyQueue", bound=QueueBase)
AnyPair = TypeVar("AnyPair", bound=PairBase)


def completion_queue(link: Link, kind: Type[AnyQueue], depth: int) -> Steps[AnyQueue]:
    """A completion queue on the session's card."""
    yield from link.release_dropped()
    depth = _amounts.integer(depth, "depth", 0, 1 << 32)
    made = yield from _mapped_queue.create(link, depth)
    queue = kind()
    queue._start(link, made, depth)
    return queue


def queue_pair(
    link: Link, kind: Type[AnyPair], receive: QueueBase, initiator: QueueBase, limits: Dict[str, Any]
) -> Steps[AnyPair]:
    """A queue pair that reports to these queues."""
    yield from link.release_dropped()
    for queue in (receive, initiator):
        if not isinstance(queue, QueueBase):
            raise _failures.wrong_type("completion_queue", "a CompletionQueue", queue)
    request = message(
        messages.CreateQpRequest,
        pd_id=link.domain_id,
        receive_cq_id=receive.id,
        initiator_cq_id=initiator.id,
        **limits,
    )
    made = yield Call("Queue", "CreateQp", request)
    pair = kind()
    pair.address, pair.inline_bytes = made.address, limits["inline_data_size"]
    pair._receive_queue, pair._initiator_queue = receive, initiator
    pair._adopt(link, made.qp_id)
    return pair


def pair_limits(depth: int, sges: int, inline_bytes: int, context: int) -> Dict[str, Any]:
    """The limits of a CreateQpRequest: `depth` for each of the two queues. Errors: InvalidArgument."""
    depth = _amounts.integer(depth, "depth", 0, 1 << 32)
    return {
        "receive_queue_depth": depth,
        "initiator_queue_depth": depth,
        "max_receive_request_sge": sges,
        "max_initiator_request_sge": sges,
        "inline_data_size": _amounts.integer(inline_bytes, "inline_bytes", 0, 1 << 32),
        "qp_context": context,
    }


def watch_queue(queue: QueueBase) -> None:
    """Routes the queue's notifications to it for as long as it lives."""
    weak = weakref.ref(queue)

    def notify(status: int) -> None:
        alive = weak()
        if alive is not None:
            alive._notify(status)

    queue._link.events.watch("cq", queue.id, notify)


def watch_pair(pair: PairBase, on_disconnected: Optional[Callable[[], None]]) -> None:
    """Routes the peer's disconnection to the pair for as long as it lives."""
    gone = pair._gone

    def notify(_: int) -> None:
        gone.set()
        if on_disconnected is not None:
            on_disconnected()

    pair._link.events.watch("qp", pair.id, notify)
