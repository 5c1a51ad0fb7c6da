"""The session, for asyncio."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from .. import _amounts, _info, _memory, _pages, _provision, _queues, errors
from .._amounts import Size
from .._link import SessionBase
from .._memory import MemoryPart
from ..connections import _steps
from ..connections._steps import Address, Peer
from ..session import _descriptor
from ._runner import AsyncLink, Opening
from .connections import Connector, Listener
from .memory import FastRegion, LogicalMapping, Memory, MemoryWindow, Region
from .queues import CompletionQueue, QueuePair


class Session(SessionBase):
    """As `rnicd.Session`; made by `connect`."""

    _link: AsyncLink

    def __init__(self, link: AsyncLink) -> None:
        self._link = link

    def on_lost(self, callback: Callable[[errors.SessionLost], None]) -> None:
        """Calls `callback` once when the session ends without `close`, in the event loop."""
        self._link.call_when_lost(callback)

    def on_adapter_removed(self, callback: Callable[[], None]) -> None:
        """As `rnicd.Session.on_adapter_removed`, in the event loop."""
        self._link.events.on_adapter_removed(callback)

    async def list_adapters(self) -> List[_info.AdapterSummary]:
        """As `rnicd.Session.list_adapters`."""
        return await self._link.run(_info.list_adapters(self._link))

    async def adapter_info(self) -> _info.AdapterInfo:
        """As `rnicd.Session.adapter_info`."""
        return await self._link.run(_info.adapter_info(self._link))

    async def usage(self) -> _info.SessionUse:
        """As `rnicd.Session.usage`."""
        return await self._link.run(_info.usage(self._link))

    def allocate(
        self, size: Size, *, page_size: Size = "auto", numa_node: Optional[int] = None, populate: bool = True
    ) -> Opening[Memory]:
        """As `rnicd.Session.allocate`."""
        steps = _memory.allocate(self._link, Memory, size, page_size, numa_node, populate)
        return Opening(self._link.run(steps))

    async def allocate_batch(
        self, sizes: Sequence[Size], *, page_size: Size = "auto", numa_node: Optional[int] = None, populate: bool = True
    ) -> List[Union[Memory, errors.Error]]:
        """As `rnicd.Session.allocate_batch`."""
        return await self._link.run(
            _provision.allocate_batch(self._link, Memory, sizes, page_size, numa_node, populate)
        )

    async def provision(
        self,
        size: Size,
        ranges: Sequence[Tuple[int, int]],
        *,
        remote: str = "",
        local_write: bool = True,
        page_size: Size = "auto",
        numa_node: Optional[int] = None,
        populate: bool = True,
    ) -> Tuple[Memory, List[Union[Region, errors.Error]]]:
        """As `rnicd.Session.provision`."""
        request = _memory.allocate_request(size, page_size, numa_node)
        flags = _amounts.region_flags(remote, local_write)
        return await self._link.run(_provision.allocate(self._link, (Memory, Region), request, ranges, flags, populate))

    def import_memory(self, file: Union[int, Any], size: Optional[Size] = None) -> Opening[Memory]:
        """As `rnicd.Session.import_memory`."""
        return Opening(self._link.run(_memory.import_file(self._link, Memory, _descriptor(file), size)))

    def register_chain(
        self, parts: Sequence[MemoryPart], *, remote: str = "", local_write: bool = True
    ) -> Opening[Region]:
        """As `rnicd.Session.register_chain`."""
        flags = _amounts.region_flags(remote, local_write)
        return Opening(self._link.run(_memory.register(self._link, Region, parts, flags)))

    async def register_batch(
        self, parts: Sequence[MemoryPart], *, remote: str = "", local_write: bool = True
    ) -> List[Union[Region, errors.Error]]:
        """As `rnicd.Session.register_batch`."""
        flags = _amounts.region_flags(remote, local_write)
        return await self._link.run(_memory.register_batch(self._link, Region, parts, flags))

    async def close_batch(self, regions: Iterable[Region]) -> None:
        """As `rnicd.Session.close_batch`."""
        if self._link.usable():
            await self._link.run(_memory.close_batch(self._link, regions))

    def map_chain(self, parts: Sequence[MemoryPart]) -> Opening[LogicalMapping]:
        """As `rnicd.Session.map_chain`."""
        return Opening(self._link.run(_pages.map_pages(self._link, LogicalMapping, parts)))

    def fast_region(self, max_pages: int, *, remote: bool = True) -> Opening[FastRegion]:
        """As `rnicd.Session.fast_region`."""
        return Opening(self._link.run(_pages.fast_region(self._link, FastRegion, max_pages, remote)))

    def window(self) -> Opening[MemoryWindow]:
        """As `rnicd.Session.window`."""
        return Opening(self._link.run(_pages.window(self._link, MemoryWindow)))

    async def privileged_token(self) -> int:
        """As `rnicd.Session.privileged_token`."""
        return await self._link.run(_pages.privileged_token(self._link))

    def completion_queue(self, depth: int = 256) -> Opening[CompletionQueue]:
        """As `rnicd.Session.completion_queue`."""
        return Opening(self._make_queue(depth))

    def queue_pair(
        self,
        depth: int = 64,
        *,
        completion_queue: Optional[CompletionQueue] = None,
        receive_queue: Optional[CompletionQueue] = None,
        sges: int = 4,
        inline_bytes: int = 256,
        context: int = 0,
        on_disconnected: Optional[Callable[[], None]] = None,
    ) -> Opening[QueuePair]:
        """As `rnicd.Session.queue_pair`; `on_disconnected` runs in the event loop."""
        limits = _queues.pair_limits(depth, sges, inline_bytes, context)
        own_depth = 2 * limits["initiator_queue_depth"]
        return Opening(self._make_pair(own_depth, completion_queue, receive_queue, limits, on_disconnected))

    def listen(self, name: str = "", *, address: str = "", port: int = 0) -> Opening[Listener]:
        """As `rnicd.Session.listen`."""
        return Opening(self._link.run(_steps.listen(self._link, Listener, name, address, port)))

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
    ) -> Opening[Connector]:
        """As `rnicd.Session.connect`; `on_disconnected` runs in the event loop."""
        offer = _steps.offer_of(private_data, inbound_reads, outbound_reads)
        return Opening(self._establish(peer, qp, offer, source, on_disconnected))

    def connector(self) -> Opening[Connector]:
        """As `rnicd.Session.connector`."""
        return Opening(self._link.run(_steps.connector(self._link, Connector)))

    async def close(self) -> Optional[_info.Reclaimed]:
        """As `rnicd.Session.close`."""
        if not self._link.usable():
            await self._link.finish()
            return None
        try:
            return _info.reclaimed(await self._link.run(self._link.close()))
        except errors.SessionLost:
            return None
        finally:
            await self._link.finish()

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<rnicd.aio.Session {self.id} of {self.tenant}, {'open' if self.lost is None else self.lost.cause}>"

    async def _establish(
        self,
        peer: Peer,
        qp: QueuePair,
        offer: Dict[str, Any],
        source: Optional[Address],
        on_disconnected: Optional[Callable[[], None]],
    ) -> Connector:
        made = await self.connector()
        try:
            await made._run(made._establish_steps(peer, qp, offer, source, on_disconnected))
        except BaseException:
            await made.close()
            raise
        return made

    async def _make_queue(self, depth: int) -> CompletionQueue:
        queue = await self._link.run(_queues.completion_queue(self._link, CompletionQueue, depth))
        _queues.watch_queue(queue)
        return queue

    async def _make_pair(
        self,
        own_depth: int,
        given: Optional[CompletionQueue],
        receive: Optional[CompletionQueue],
        limits: Any,
        on_disconnected: Optional[Callable[[], None]],
    ) -> QueuePair:
        initiator = given or await self._make_queue(own_depth)
        steps = _queues.queue_pair(self._link, QueuePair, receive or initiator, initiator, limits)
        pair = await self._link.run(steps)
        pair._own_queue = initiator if given is None else None
        _queues.watch_pair(pair, on_disconnected)
        return pair


def connect(
    socket_dir: Optional[str] = None,
    *,
    label: str = "",
    grant: Optional[str] = None,
    adapter: str = "",
    timeout: float = 30.0,
    data_path: str = "automatic",
) -> Opening[Session]:
    """As `rnicd.connect`: `async with rnicd.aio.connect() as s`, or `s = await rnicd.aio.connect()`.

    Nothing waits busily here.
    """
    return Opening(_open(socket_dir, label, grant, adapter, timeout, data_path))


async def _open(
    socket_dir: Optional[str], label: str, grant: Optional[str], adapter: str, timeout: float, data_path: str
) -> Session:
    link = AsyncLink(socket_dir, timeout, data_path)
    await link.start(label, grant, adapter)
    return Session(link)
