"""Connections by name or address, for asyncio."""

from __future__ import annotations

import asyncio
from typing import Callable, Optional

from .. import _amounts, errors
from .._events import ENDED
from ..connections import _steps
from ..connections._steps import Address, ConnectionData, ConnectorAddresses, Peer, offer_of
from ._runner import AsyncHandle
from .queues import QueuePair


class Connector(AsyncHandle, _steps.ConnectorBase):
    __doc__ = _steps.ConnectorBase.__doc__

    def __init__(self) -> None:
        self._told: asyncio.Event = asyncio.Event()

    async def connect(
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
        """As `rnicd.Connector.connect`."""
        offer = offer_of(private_data, inbound_reads, outbound_reads)
        await self._run(self._connect_steps(peer, qp, offer, source, on_disconnected))

    async def complete(self) -> None:
        """As `rnicd.Connector.complete`."""
        await self._run(self._complete_steps())

    async def accept(
        self,
        qp: QueuePair,
        *,
        private_data: bytes = b"",
        inbound_reads: Optional[int] = None,
        outbound_reads: Optional[int] = None,
        on_disconnected: Optional[Callable[[], None]] = None,
    ) -> None:
        """As `rnicd.Connector.accept`."""
        offer = offer_of(private_data, inbound_reads, outbound_reads)
        await self._run(self._accept_steps(qp, offer, on_disconnected))

    async def reject(self, private_data: bytes = b"") -> None:
        """As `rnicd.Connector.reject`."""
        await self._run(self._reject_steps(private_data))

    async def connection_data(self) -> ConnectionData:
        """As `rnicd.Connector.connection_data`."""
        return await self._run(self._data_steps())

    async def addresses(self) -> ConnectorAddresses:
        """As `rnicd.Connector.addresses`."""
        return await self._run(self._addresses_steps())

    async def disconnect(self) -> None:
        """As `rnicd.Connector.disconnect`."""
        await self._run(self._disconnect_steps())

    async def wait_for_disconnect(self, timeout: float) -> bool:
        """As `rnicd.Connector.wait_for_disconnect`."""
        try:
            await asyncio.wait_for(self._told.wait(), _amounts.seconds(timeout))
        except asyncio.TimeoutError:
            pass
        if not self.peer_gone:
            self._link.check()
        return self.peer_gone

    async def close(self) -> None:
        """Ends the connection at once. Flushes nothing."""
        await super().close()
        self._link.events.forget("connector", self._ident)


class Listener(AsyncHandle, _steps.ListenerBase):
    __doc__ = _steps.ListenerBase.__doc__

    def __init__(self) -> None:
        self._requests: asyncio.Queue[int] = asyncio.Queue()

    async def next_request(self, timeout: Optional[float] = None) -> Connector:
        """As `rnicd.Listener.next_request`."""
        seconds = self._link.seconds if timeout is None else _amounts.seconds(timeout)
        try:
            ident = await asyncio.wait_for(self._requests.get(), seconds)
        except asyncio.TimeoutError:
            self._link.check()
            raise errors.TimedOut("no request in time") from None
        if ident == ENDED:
            self._requests.put_nowait(ENDED)
            self._link.check()
            raise errors.SessionLost("closed")
        return _steps.adopt(self._link, Connector, ident)

    async def pause(self) -> None:
        """As `rnicd.Listener.pause`."""
        await self._run(self._control_steps(True))

    async def resume(self) -> None:
        """As `rnicd.Listener.resume`."""
        await self._run(self._control_steps(False))
