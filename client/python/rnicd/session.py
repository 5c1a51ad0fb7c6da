"""The session: where everything begins."""

from __future__ import annotations

from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple, Union

from . import _amounts, _failures, _info, _memory, _pages, _provision, _queues, errors
from ._amounts import Size
from ._link import SessionBase
from ._memory import MemoryPart
from ._runner import SyncLink
from .connections import Connector, Listener, _steps
from .connections._steps import Address, Peer
from .memory import FastRegion, LogicalMapping, Memory, MemoryWindow, Region
from .queues import CompletionQueue, QueuePair


class Session(SessionBase):
    """This process's session with the daemon: `with rnicd.connect() as session`.

    Everything made from it ends with it, in any order. Memory stays readable and writable afterwards, but is not
    registered any more. Threads: safe. A forked child cannot use it: it opens one of its own, or only touches memory.
    """

    _link: SyncLink

    def __init__(
        self,
        socket_dir: Optional[str] = None,
        *,
        label: str = "",
        grant: Optional[str] = None,
        adapter: str = "",
        timeout: float = 30.0,
        data_path: str = "automatic",
        spin: float = 20e-6,
    ) -> None:
        """Opens a session.

        `socket_dir` is the directory of rpc.sock: by default $RNICD_SOCKET_DIR, or /run/rnicd. `label` is shown to
        operators, up to 64 characters. `grant` is the secret of a grant, by default $RNICD_GRANT. `adapter` is the name
        of a card, by default the node's first. `timeout` is that of one call, in seconds.

        `data_path` is how posts, completions and registrations travel: "calls", "rings" (shared memory, and where the
        daemon serves none the reason as an error), or "automatic": what $RNICD_DATA_PATH says, else shared memory where
        the daemon serves it. `spin` is the longest busy wait, in seconds, before a thread sleeps; 0 never does.
        Errors: Unavailable, Denied, QuotaExceeded, NotFound (no such card), InvalidArgument, ForkedError.
        """
        self._link = SyncLink(socket_dir, timeout, data_path, _amounts.seconds(spin, "spin"))
        self._link.start(label, grant, adapter)

    def on_lost(self, callback: Callable[[errors.SessionLost], None]) -> None:
        """Calls `callback` once when the session ends without `close`. It runs on the event thread: do not block."""
        self._link.call_when_lost(callback)

    def on_adapter_removed(self, callback: Callable[[], None]) -> None:
        """Calls `callback` once when the card is gone: what was made on it has ended, memory stays. As `on_lost`."""
        self._link.events.on_adapter_removed(callback)

    def list_adapters(self) -> List[_info.AdapterSummary]:
        """Every card of the node."""
        return self._link.run(_info.list_adapters(self._link))

    def adapter_info(self) -> _info.AdapterInfo:
        """The limits of the session's card."""
        return self._link.run(_info.adapter_info(self._link))

    def usage(self) -> _info.SessionUse:
        """Use and limits of the session and its tenant now, by name of the resource."""
        return self._link.run(_info.usage(self._link))

    def allocate(
        self, size: Size, *, page_size: Size = "auto", numa_node: Optional[int] = None, populate: bool = True
    ) -> Memory:
        """Allocates memory in the daemon and maps it here.

        `size` is in bytes, or a text like "64MiB"; whole pages of `page_size`, which is 4096, "2MiB" or "1GiB", or
        "auto": the largest that the daemon has ready and that divide the size, else 4096 bytes. `populate` fills this
        process's page table too, at 60 ms for a GiB; without it first accesses cost page faults, 250 ms for a GiB in
        all. Errors: InvalidArgument, QuotaExceeded, Refused (MEMORY_PAGES_UNAVAILABLE).
        """
        return self._link.run(_memory.allocate(self._link, Memory, size, page_size, numa_node, populate))

    def allocate_batch(
        self, sizes: Sequence[Size], *, page_size: Size = "auto", numa_node: Optional[int] = None, populate: bool = True
    ) -> List[Union[Memory, errors.Error]]:
        """Allocates a memory of each size, in two calls. A refused one does not stop the others."""
        return self._link.run(_provision.allocate_batch(self._link, Memory, sizes, page_size, numa_node, populate))

    def provision(
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
        """Allocates a memory and registers ranges of it, (offset, length) in bytes, as a region each: in two calls.

        Returns the memory, and for each range its region or its error. Rights as for `Memory.register`; they are those
        of every region. Errors: as `allocate`; if all fails, nothing is left.
        """
        request = _memory.allocate_request(size, page_size, numa_node)
        flags = _amounts.region_flags(remote, local_write)
        return self._link.run(_provision.allocate(self._link, (Memory, Region), request, ranges, flags, populate))

    def import_memory(self, file: Union[int, Any], size: Optional[Size] = None) -> Memory:
        """Registers memory of your own: a memfd (see `rnicd.memfd`), as a descriptor or an object with `fileno`.

        `size` is in bytes, by default all of the file. The descriptor stays yours; the file is sealed, so that no new
        writable mapping of it can be made, and existing ones keep working. Other memory, such as a numpy array of your
        own, cannot be registered: allocate here and copy.
        A dma-buf is imported in the same way, whole, if it can be mapped; it gets no seal. Whether it can be registered
        is up to the card and the kernel (DEVICE_NOT_CAPABLE).
        Errors: InvalidArgument, QuotaExceeded, Refused (MEMORY_NOT_SEALABLE, MEMORY_WRITE_SEALED, ...).
        """
        return self._link.run(_memory.import_file(self._link, Memory, _descriptor(file), size))

    def register_chain(self, parts: Sequence[MemoryPart], *, remote: str = "", local_write: bool = True) -> Region:
        """One region over several parts (`memory.part(offset, length)`), at the address of the first.

        Seams between parts are at page boundaries. Rights and errors as `Memory.register`.
        """
        flags = _amounts.region_flags(remote, local_write)
        return self._link.run(_memory.register(self._link, Region, parts, flags))

    def register_batch(
        self, parts: Sequence[MemoryPart], *, remote: str = "", local_write: bool = True
    ) -> List[Union[Region, errors.Error]]:
        """A region for each of up to 16384 parts, in two calls: for each part the region, or why there is none."""
        flags = _amounts.region_flags(remote, local_write)
        return self._link.run(_memory.register_batch(self._link, Region, parts, flags))

    def close_batch(self, regions: Iterable[Region]) -> None:
        """Closes the regions in one call."""
        if self._link.usable():
            self._link.run(_memory.close_batch(self._link, regions))

    def map_chain(self, parts: Sequence[MemoryPart]) -> LogicalMapping:
        """The pages behind several parts, which follow one another at page boundaries. Errors: as `map_pages`."""
        return self._link.run(_pages.map_pages(self._link, LogicalMapping, parts))

    def fast_region(self, max_pages: int, *, remote: bool = True) -> FastRegion:
        """A region that work requests register, with at most `max_pages` pages of 4096 bytes at a time."""
        return self._link.run(_pages.fast_region(self._link, FastRegion, max_pages, remote))

    def window(self) -> MemoryWindow:
        """An unbound memory window."""
        return self._link.run(_pages.window(self._link, MemoryWindow))

    def privileged_token(self) -> int:
        """The token with which an Sge names logical addresses; constant, and never for a peer."""
        return self._link.run(_pages.privileged_token(self._link))

    def completion_queue(self, depth: int = 256) -> CompletionQueue:
        """A queue for `depth` completions. `queue_pair` makes its own if it is not given one."""
        queue = self._link.run(_queues.completion_queue(self._link, CompletionQueue, depth))
        _queues.watch_queue(queue)
        return queue

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
    ) -> QueuePair:
        """A queue pair for `depth` receives and `depth` other requests at a time, each of up to `sges` pieces.

        Without `completion_queue` it has one of its own, which fits them all; `receive_queue` is that of receives, by
        default the same. `on_disconnected` runs on the event thread when the peer is gone.
        Errors: InvalidArgument (ABOVE_ADAPTER_LIMIT), QuotaExceeded, Refused.
        """
        limits = _queues.pair_limits(depth, sges, inline_bytes, context)
        initiator = completion_queue or self.completion_queue(2 * limits["initiator_queue_depth"])
        steps = _queues.queue_pair(self._link, QueuePair, receive_queue or initiator, initiator, limits)
        pair = self._link.run(steps)
        pair._own_queue = initiator if completion_queue is None else None
        _queues.watch_pair(pair, on_disconnected)
        return pair

    def listen(self, name: str = "", *, address: str = "", port: int = 0) -> Listener:
        """Listens for connections: `with session.listen("array") as l, l.next_request() as c: c.accept(pair)`.

        `name` is what sessions on this node find it by, 1 to 63 printable characters. `address` is one of the card's,
        by default its first; port 0 is a free one. Errors: Denied, Refused (NAME_TAKEN, ADDRESS_IN_USE, ...).
        """
        return self._link.run(_steps.listen(self._link, Listener, name, address, port))

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
    ) -> Connector:
        """Connects a queue pair with a listener, by its name or (address, port), and keeps the peer's answer.

        A name without "/" is one of this process's own namespace or tenant. The peer may read `private_data`, at most
        `AdapterInfo.max_caller_data` bytes. `inbound_reads` is how many of the peer's reads this side lets happen at a
        time, `outbound_reads` how many of its own; by default what the cards can. `on_disconnected` runs on the event
        thread. Errors: NotFound (NAME_NOT_FOUND), Denied, Refused (CONNECTION_REFUSED, CONNECTION_TIMED_OUT, ...).
        """
        offer = _steps.offer_of(private_data, inbound_reads, outbound_reads)
        made = self.connector()
        try:
            self._link.run(made._establish_steps(peer, qp, offer, source, on_disconnected))
        except BaseException:
            made.close()
            raise
        return made

    def connector(self) -> Connector:
        """For `connect` in steps, with a look at the peer's answer, or at the words of a rejection."""
        return self._link.run(_steps.connector(self._link, Connector))

    def close(self) -> Optional[_info.Reclaimed]:
        """Ends the session: all its tokens are invalid when this returns. Returns what it still held.

        A second time, after the session was lost, and in a forked child it does nothing and returns None.
        """
        if not self._link.usable():
            self._link.finish()
            return None
        try:
            return _info.reclaimed(self._link.run(self._link.close()))
        except errors.SessionLost:
            return None
        finally:
            self._link.finish()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<rnicd.Session {self.id} of {self.tenant}, {'open' if self.lost is None else self.lost.cause}>"

    def __reduce__(self) -> Any:
        raise TypeError("a session belongs to its process: open one in the other process")


connect = Session


def _descriptor(file: Any) -> int:
    """The descriptor of a file; words for what has none."""
    if hasattr(file, "fileno"):
        try:
            file = file.fileno()
        except (OSError, ValueError) as failure:
            raise _failures.invalid("FIELD_OUT_OF_RANGE", "file", f"the file has no descriptor: {failure}") from failure
    try:
        return _amounts.integer(file, "file", 0, 1 << 31)
    except errors.WrongType:
        wanted = (
            "a memfd, for the pages of other memory could move or go away; allocate memory here and copy, or make a "
            "memfd with rnicd.memfd(size) and put the data there"
        )
        raise _failures.wrong_type("file", wanted, file) from None
