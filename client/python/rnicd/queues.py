"""Queue pairs, completion queues, and the transfers that run on them."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from . import _amounts, _data_path, _failures, _fork, _queues, errors
from ._call_queue import CallSource
from ._mapped_source import MappedSource
from ._memory import RegionBase, RegionPart
from ._pages import FastRegionBase, LogicalMappingBase, WindowBase
from ._runner import SyncHandle
from ._turns import Turns
from .completion import Completion
from .remote import RemoteRegion
from .work import Bind, FastRegister, Invalidate, Local, Payload, Read, Receive, Request, Send, Write, part_of


class Pending(_queues.PendingBase):
    """Requests that were posted together. `wait` collects their completions."""

    def wait(self, timeout: Optional[float] = None) -> List[Completion]:
        """Waits until all are complete and returns their completions, in the order of the requests.

        `timeout` is in seconds; None means that of the session. May be called again after TimedOut, and from several
        threads. Requests with `silent` have no completion, so a chain should not end with one.
        Errors: TransferFailed for the first that failed, TimedOut, SessionLost.
        """
        for queue in list(self._open):
            assert isinstance(queue, CompletionQueue)
            queue._wait_until(lambda queue=queue: not self._open_on(queue), timeout)  # type: ignore[misc]
        return self._result()


class CompletionQueue(SyncHandle, _queues.QueueBase):
    __doc__ = _queues.QueueBase.__doc__

    def __init__(self) -> None:
        self._source: Union[CallSource, MappedSource]
        self._turns = Turns()
        self._notified: threading.Event = threading.Event()
        self._overrun = False

    def poll(self, most: int = _data_path.RESULTS_MAX, timeout: float = 0.0) -> List[Completion]:
        """Completions of requests posted with `post_raw`, oldest first; waits up to `timeout` seconds for the first.

        Errors: Refused (CQ_OVERRUN, OBJECT_NOT_FOUND), SessionLost.
        """
        try:
            self._wait_until(lambda: bool(self._unclaimed), timeout)
        except errors.TimedOut:
            return []
        with self._turns.lock:
            return self._take_unclaimed(most)

    def arm(self, kind: str = "any") -> None:
        """Requests one notification: for "any" completion, "solicited" ones, or "errors" of the queue itself."""
        self._run(self._arm_steps(kind))

    def wait_for_notification(self, timeout: float) -> bool:
        """Waits for a notification newer than the last one waited for; False after `timeout` seconds.

        Errors: Refused (CQ_OVERRUN), SessionLost.
        """
        came = self._notified.wait(_amounts.seconds(timeout))
        self._notified.clear()
        self._link.check()
        if self._overrun:
            raise _failures.of_reason("CQ_OVERRUN")
        return came

    def resize(self, depth: int) -> None:
        """Changes the depth; queued completions stay. Errors: Refused (CQ_BACKLOG, DEVICE_NOT_CAPABLE)."""
        self._run(self._resize_steps(depth))

    def close(self) -> None:
        """Ends the queue. Queue pairs that report to it are closed before."""
        self._link.events.forget("cq", self._ident)
        super().close()

    def _wait_until(self, met: Callable[[], bool], timeout: Optional[float]) -> None:
        """Collects completions until `met`."""
        _fork.check_same_process(self._link.generation)
        if met():
            return
        self._link.check()
        end = time.monotonic() + (self._link.seconds if timeout is None else _amounts.seconds(timeout))
        try:
            if self._turns.wait_until(self._source, met, end):
                return
        except errors.SessionLost as lost:
            raise self._link.explain(lost) from None
        words = "no completion in time; the transfer may still end"
        if self._source.torn:
            words += ", or a signal interrupted the call that brought its completion"
        raise errors.TimedOut(words)

    def _start(self, link: Any, made: Any, depth: int) -> None:
        super()._start(link, made, depth)
        proxy = weakref.proxy(self)
        self._source = CallSource(proxy) if made.mapped is None else MappedSource(proxy, made.mapped)


class Batch(_queues.BatchBase):
    __doc__ = _queues.BatchBase.__doc__

    def __init__(self, pair: QueuePair) -> None:
        super().__init__()
        self._pair = pair
        self.pending: Optional[Pending] = None

    def wait(self, timeout: Optional[float] = None) -> List[Completion]:
        """`Pending.wait`; an empty batch has no completions."""
        return [] if self.pending is None else self.pending.wait(timeout)

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None and self._requests:
            self.pending = self._pair.post(self._requests)


class QueuePair(SyncHandle, _queues.PairBase):
    __doc__ = _queues.PairBase.__doc__

    def __init__(self) -> None:
        self._own_queue: Optional[CompletionQueue] = None
        self._gone: threading.Event = threading.Event()

    @property
    def completion_queue(self) -> _queues.QueueBase:
        """The queue of everything but receives."""
        return self._initiator_queue

    @property
    def peer_gone(self) -> bool:
        """Whether the peer has disconnected or died. Requests are not flushed by that; those that need it fail."""
        return self._gone.is_set()

    def state(self) -> str:
        """ "init" before `connect`, "ready", or "error"."""
        return self._run(self._state_steps())

    def connect(self, peer_address: bytes) -> None:
        """Connects to the pair with this `address`; both sides do, in any order. Once in a pair's life."""
        self._run(self._connect_steps(peer_address))

    def disconnect(self) -> None:
        """Ends the connection: no transfer is in progress afterwards, and the peer is notified."""
        self._run(self._disconnect_steps())

    def flush(self) -> None:
        """Ends every posted request with STATUS_CANCELLED. The pair cannot be used afterwards."""
        self._run(self._flush_steps())

    def post(self, requests: Sequence[Request]) -> Pending:
        """Posts 1 to 1024 requests in one call, and does not wait for them.

        Errors: Refused, with `pending` set if the first requests were posted; InvalidArgument before anything is.
        """
        pending = Pending(requests)
        self._run(self._post_steps(requests, pending))
        return pending

    def post_raw(self, requests: Sequence[Request], contexts: Sequence[int]) -> Dict[int, int]:
        """Posts as `post`, but leaves the completions to `CompletionQueue.poll`, with these contexts (below 2^63).

        Returns the remote tokens of FastRegister and Bind, by place. Errors: Refused, with `posted` set.
        """
        return self._run(self._post_raw_steps(requests, contexts))

    def batch(self) -> Batch:
        """`with pair.batch() as b: b.write(...); b.send(...)` posts both in one call at the end of the block."""
        return Batch(self)

    def write(self, payload: Payload, remote: RemoteRegion, offset: int = 0, timeout: Optional[float] = None) -> None:
        """Copies `payload` to byte `offset` of `remote`, and waits for it.

        Errors: InvalidArgument where it does not fit, TransferFailed, Refused, TimedOut, SessionLost.
        """
        self.post([Write(payload, part_of(remote, offset))]).wait(timeout)

    def read(self, local: Local, remote: RemoteRegion, offset: int = 0, timeout: Optional[float] = None) -> None:
        """Fills `local` from byte `offset` of `remote`, and waits for it. Errors: as `write`."""
        self.post([Read(local, part_of(remote, offset))]).wait(timeout)

    def send(self, payload: Payload = (), timeout: Optional[float] = None) -> None:
        """Sends a message, and waits until the peer's receive has taken it. Errors: as `write`."""
        self.post([Send(payload)]).wait(timeout)

    def receive(self, local: Local = (), timeout: Optional[float] = None) -> int:
        """Posts a receive, and waits for a message. Returns its bytes. Errors: as `write`."""
        return self.post([Receive(local)]).wait(timeout)[0].bytes

    def fast_register(
        self,
        region: FastRegionBase,
        mapping: LogicalMappingBase,
        remote: str = "rw",
        timeout: Optional[float] = None,
    ) -> RemoteRegion:
        """Registers the pages of a mapping with a fast region; returns what a peer needs. Errors: as `write`."""
        pending = self.post([FastRegister.of(region, mapping, remote)])
        pending.wait(timeout)
        return RemoteRegion(mapping.address, mapping.length, pending.tokens[0])

    def bind(
        self,
        window: WindowBase,
        part: Union[RegionBase, RegionPart],
        remote: str = "rw",
        timeout: Optional[float] = None,
    ) -> RemoteRegion:
        """Opens a window on a part of a region for this pair's peer; returns what it needs. Errors: as `write`."""
        pending = self.post([Bind(window, part, remote)])
        pending.wait(timeout)
        return RemoteRegion(part.address, len(part), pending.tokens[0])

    def invalidate(self, target: Union[FastRegionBase, WindowBase], timeout: Optional[float] = None) -> None:
        """Ends a fast registration or a binding: its token opens nothing afterwards. Errors: as `write`."""
        self.post([Invalidate(target)]).wait(timeout)

    def close(self) -> None:
        """Flushes and ends the pair, and its connector, and its queue if it was made with it."""
        if self._connector is not None:
            self._connector.close()
        self._link.events.forget("qp", self._ident)
        super().close()
        if self._own_queue is not None:
            self._own_queue.close()
