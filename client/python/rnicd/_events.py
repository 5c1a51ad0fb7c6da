"""The session's events: its end, notifications of queues, requests for connections, peers and cards that are gone."""

from __future__ import annotations

import collections
import queue
import threading
import traceback
import weakref
from typing import Any, Callable, Deque, Dict, List, Optional

from . import errors
from ._proto import session_service_pb2 as messages

_SUCCESS = 0
ENDED = -1
"""In place of an event of a listener or connector: the session has ended, and none will come."""
_TOLD_OF_THE_END = ("listener", "connector")


def call_back(callback: Callable[[Any], None], argument: Any) -> None:
    """Calls a user's function. What it raises is printed: it must not end the reading of events."""
    try:
        callback(argument)
    except Exception:
        traceback.print_exc()


def _tell(callback: Callable[[], None]) -> None:
    callback()


class Router:
    """Hands events to those who wait for them. Threads: safe. Callbacks run on the session's event thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: Dict[tuple[str, int], Callable[[int], None]] = {}
        self._on_end: Optional[Callable[[errors.SessionLost], None]] = None
        self._lost: Optional[errors.SessionLost] = None
        self._on_removed: List[Callable[[], None]] = []
        self._removed = False
        self._ended = threading.Event()
        self.strays: Deque[int] = collections.deque()
        """Connectors of requests whose listener is gone: to be closed with the next object that is dropped."""

    def watch(self, kind: str, ident: int, callback: Callable[[int], None]) -> None:
        """Calls `callback` with the NTSTATUS of each event of this object; `kind` is "cq", "qp" or "connector".

        With "listener" each event is a request, and `callback` gets the id of its connector. Those of a listener and a
        connector also get ENDED.
        """
        with self._lock:
            self._watched[kind, ident] = callback
            ended = self._lost is not None and kind in _TOLD_OF_THE_END
        if ended:
            callback(ENDED)

    def forget(self, kind: str, ident: int) -> None:
        """Ends `watch`."""
        with self._lock:
            self._watched.pop((kind, ident), None)

    def on_end(self, callback: Callable[[errors.SessionLost], None]) -> None:
        """Calls `callback` once, when the session has ended; at once if it has."""
        with self._lock:
            self._on_end = callback
            lost = self._lost
        if lost is not None:
            callback(lost)

    def on_adapter_removed(self, callback: Callable[[], None]) -> None:
        """Calls `callback` once, when the card of the session's adapter is gone; at once if it is."""
        with self._lock:
            removed = self._removed
            if not removed:
                self._on_removed.append(callback)
        if removed:
            callback()

    def dispatch(self, event: Any) -> None:
        """Handles one event of the stream."""
        kind = event.WhichOneof("event")
        if kind == "cq_notification":
            self._notify("cq", event.cq_notification.cq_id, event.cq_notification.ntstatus)
        elif kind == "qp_disconnected":
            self._notify("qp", event.qp_disconnected.qp_id, _SUCCESS)
        elif kind == "disconnect_event":
            self._notify("connector", event.disconnect_event.connector_id, _SUCCESS)
        elif kind == "connect_event":
            if not self._notify("listener", event.connect_event.listener_id, event.connect_event.connector_id):
                self.strays.append(event.connect_event.connector_id)
        elif kind == "adapter_removed":
            with self._lock:
                self._removed, told, self._on_removed = True, self._on_removed, []
            for one in told:
                call_back(_tell, one)
        elif kind == "session_ending":
            self.end(errors.SessionLost(event.session_ending.cause))

    def end(self, lost: errors.SessionLost) -> None:
        """The session has ended; later causes do not count."""
        with self._lock:
            if self._lost is not None:
                return
            self._lost = lost
            callback, self._on_end = self._on_end, None
            waiting = [one for (kind, _), one in self._watched.items() if kind in _TOLD_OF_THE_END]
        if callback is not None:
            callback(lost)
        for one in waiting:
            call_back(one, ENDED)
        self._ended.set()

    def wait_for_end(self, seconds: float) -> None:
        """Waits until the session has ended, at most that long."""
        self._ended.wait(seconds)

    def _notify(self, kind: str, ident: int, status: int) -> bool:
        """False if the object is not watched."""
        with self._lock:
            callback = self._watched.get((kind, ident))
        if callback is not None:
            call_back(callback, status)
        return callback is not None


def read(stream: Any, router: Router) -> None:
    """Dispatches the stream's events until it ends."""
    try:
        for event in stream:
            router.dispatch(event)
    except Exception:
        # However the stream ended: the session is gone with its connection.
        pass
    router.end(errors.SessionLost("connection_lost"))


def start(channel: Any, router: Router) -> Any:
    """Reads the session's events on a thread of their own; returns the stream, which `cancel` ends."""
    stream = channel.stream("Session", "WatchEvents", messages.WatchEventsRequest())
    threading.Thread(target=read, args=(stream, router), name="rnicd-events", daemon=True).start()
    return stream


class _Reaper:
    """Closes the channels of sessions that were dropped without `close`.

    A finalizer may run inside gRPC, with its locks held, so it only leaves the channel here.
    """

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._running = False

    def start(self) -> None:
        """Starts the thread, once in a process."""
        with self._lock:
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="rnicd-reaper", daemon=True).start()

    def leave(self, end: Callable[[], None]) -> None:
        """Has `end` called soon. May be called by finalizers: put is reentrant."""
        self._waiting.put(end)

    def _run(self) -> None:
        while True:
            self._waiting.get()()


_reapers: Dict[int, _Reaper] = {}


def end_when_dropped(owner: Any, generation: int, stream: Any, channel: Any) -> Any:
    """Ends stream and channel when nothing refers to `owner` any more. Returns the finalizer."""
    reaper = _reapers.setdefault(generation, _Reaper())
    reaper.start()

    def end() -> None:
        stream.cancel()
        channel.close()

    finalizer = weakref.finalize(owner, reaper.leave, end)
    finalizer.atexit = False
    return finalizer
