"""Connections by name or address: listeners, and the connectors of both sides."""

from __future__ import annotations

import queue
import threading
from typing import Callable, Optional

from .. import _amounts, errors
from .._events import ENDED
from .._runner import SyncHandle
from ..queues import QueuePair
from . import _steps
from ._steps import Address, ConnectionData, ConnectorAddresses, Peer, offer_of


class Connector(SyncHandle, _steps.ConnectorBase):
    __doc__ = _steps.ConnectorBase.__doc__

    def __init__(self) -> None:
        self._told: threading.Event = threading.Event()

    def connect(
        self,
        peer: Peer,
        qp: QueuePair,
        *,
        private_data: bytes = b"",
        inbound_reads: Optional[int] = None,
        outbound_reads: Optional[int] = None,
        source: Optional[Address] = None,
        on_disconnected: Optional[Callable[[], None]] = None,
    ) -> None:
        """The first step of the active side; returns when the peer has accepted. Arguments as `Session.connect`.

        Errors: Refused; after CONNECTION_REFUSED, CONNECTION_TIMED_OUT and what is refused at once it may try again.
        """
        offer = offer_of(private_data, inbound_reads, outbound_reads)
        self._run(self._connect_steps(peer, qp, offer, source, on_disconnected))

    def complete(self) -> None:
        """The second: both queue pairs send. Errors: Refused (CONNECTION_ABORTED, CONNECTION_TIMED_OUT)."""
        self._run(self._complete_steps())

    def accept(
        self,
        qp: QueuePair,
        *,
        private_data: bytes = b"",
        inbound_reads: Optional[int] = None,
        outbound_reads: Optional[int] = None,
        on_disconnected: Optional[Callable[[], None]] = None,
    ) -> None:
        """Accepts the request; returns when the peer has completed the connection. Arguments as `Session.connect`.

        Errors: Refused (CONNECTION_ABORTED, CONNECTION_REFUSED, CONNECTION_TIMED_OUT, ...).
        """
        offer = offer_of(private_data, inbound_reads, outbound_reads)
        self._run(self._accept_steps(qp, offer, on_disconnected))

    def reject(self, private_data: bytes = b"") -> None:
        """Rejects the request, or, in place of `complete`, the peer's answer."""
        self._run(self._reject_steps(private_data))

    def connection_data(self) -> ConnectionData:
        """What the peer says: until `accept`; from `connect`, also a refused one, until `complete`; of
        `Session.connect` always.
        """
        return self._run(self._data_steps())

    def addresses(self) -> ConnectorAddresses:
        """Both ends; on the active side from `connect`."""
        return self._run(self._addresses_steps())

    def disconnect(self) -> None:
        """Flushes the queue pair, and ends when the peer disconnects too. Errors: Refused (CONNECTION_TIMED_OUT)."""
        self._run(self._disconnect_steps())

    def wait_for_disconnect(self, timeout: float) -> bool:
        """Waits for `peer_gone`; False after `timeout` seconds. Errors: SessionLost."""
        self._told.wait(_amounts.seconds(timeout))
        if not self.peer_gone:
            self._link.check()
        return self.peer_gone

    def close(self) -> None:
        """Ends the connection at once. Flushes nothing."""
        super().close()
        self._link.events.forget("connector", self._ident)


class Listener(SyncHandle, _steps.ListenerBase):
    __doc__ = _steps.ListenerBase.__doc__

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[int] = queue.SimpleQueue()

    def next_request(self, timeout: Optional[float] = None) -> Connector:
        """The oldest request, as a connector to accept or reject.

        `timeout` is in seconds; None means that of the session. Errors: TimedOut, SessionLost.
        """
        seconds = self._link.seconds if timeout is None else _amounts.seconds(timeout)
        try:
            ident = self._requests.get(timeout=seconds)
        except queue.Empty:
            self._link.check()
            raise errors.TimedOut("no request in time") from None
        if ident == ENDED:
            self._requests.put(ENDED)
            self._link.check()
            raise errors.SessionLost("closed")
        return _steps.adopt(self._link, Connector, ident)

    def pause(self) -> None:
        """Has requests refused as if nobody listened, until `resume`; those that came before stay."""
        self._run(self._control_steps(True))

    def resume(self) -> None:
        """Ends `pause`."""
        self._run(self._control_steps(False))


__all__ = ["ConnectionData", "Connector", "ConnectorAddresses", "Listener"]
