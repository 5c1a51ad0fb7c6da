"""Memory and its registrations: what the sync and the async classes have in common."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Optional, Sequence, Type, TypeVar, Union, overload

from . import _amounts, _buffer, _data_path, _failures, _mapping, errors
from ._amounts import Size
from ._effects import Call, Exchange, Steps, Work
from ._fields import message
from ._handle import Handle
from ._link import Link
from ._proto import memory_service_pb2 as messages
from ._proto import types_pb2
from .remote import RemoteRegion

_PAGE_SIZES = {
    "auto": types_pb2.PAGE_SIZE_AUTO,
    4096: types_pb2.PAGE_SIZE_4KIB,
    2 << 20: types_pb2.PAGE_SIZE_2MIB,
    1 << 30: types_pb2.PAGE_SIZE_1GIB,
}
AnyMemory = TypeVar("AnyMemory", bound="MemoryBase")


@dataclass(frozen=True)
class MemoryPart:
    """`length` bytes of a memory from byte `offset`; made by `Memory.part`."""

    memory: MemoryBase
    offset: int
    length: int

    @property
    def address(self) -> int:
        """Address of the first byte in this process."""
        return self.memory.address + self.offset


class MemoryBase(Handle, _buffer.Exporter):
    """Pages that can be registered, mapped into this process.

    It has the buffer protocol, writable and without a copy: `np.frombuffer(memory, np.float32)`,
    `torch.frombuffer(memory, dtype=...)`, `memoryview(memory)`. `memory[a:b]` is a memoryview of bytes, `memory[a]` an
    int; `memory[a:b] = data` copies bytes in. `len(memory)` is in bytes.

    `close` ends the mapping, or the last view of it that exists then does. At the session's end it stays, but is no
    longer registered.
    """

    _RANK = 9
    _address: int
    _length: int

    if TYPE_CHECKING:

        def __buffer__(self, flags: int, /) -> memoryview:
            """The bytes; at run time `_buffer.Exporter` provides them, in every version of Python."""

    @classmethod
    def _close_call(cls, ident: int) -> Call:
        return Call("Memory", "ReleaseMemory", messages.ReleaseMemoryRequest(memory_id=ident))

    @property
    def address(self) -> int:
        """Address of the first byte in this process, which is also its address for peers once it is registered."""
        return self._address

    @property
    def view(self) -> memoryview:
        """All bytes: writable, format "B", shape (len(memory),). Errors: Closed."""
        if self._exported is _buffer.NOTHING:
            raise errors.Closed(f"this {type(self).__name__} is closed")
        exporter: Any = self
        return memoryview(exporter).cast("B")

    def _map(self, descriptor: int, length: int) -> None:
        try:
            array = _mapping.map_file(descriptor, length)
        except OSError as failure:
            raise _failures.no_pages(f"this process cannot map {length} bytes: {failure.strerror}") from failure
        self._address, self._length = ctypes.addressof(array), length
        self._exported = _buffer.exported(array)

    def _let_go(self) -> None:
        self._exported = _buffer.NOTHING

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, key: int) -> int:
        ...

    @overload
    def __getitem__(self, key: slice) -> memoryview:
        ...

    def __getitem__(self, key: Union[int, slice]) -> Union[int, memoryview]:
        return self.view[key]

    def __setitem__(self, key: Union[int, slice], value: Any) -> None:
        if isinstance(key, slice):
            self.view[key] = memoryview(value).cast("B")
        else:
            self.view[key] = value

    def part(self, offset: int = 0, length: Optional[int] = None) -> MemoryPart:
        """A range of this memory for `register_chain` and `register_batch`. Errors: InvalidArgument outside it."""
        offset = _amounts.integer(offset, "offset", *_amounts.EDGES)
        count = self._length - offset if length is None else _amounts.integer(length, "length", *_amounts.EDGES)
        _amounts.check_range(offset, count, self._length, "part")
        return MemoryPart(self, offset, count)


@contextlib.contextmanager
def unmapping(*memories: MemoryBase) -> Iterator[None]:
    """Ends the mappings if the block fails: the failure's traceback, which users may keep, refers to the objects."""
    try:
        yield
    except BaseException:
        for memory in memories:
            memory._let_go()
        raise


def allocate_request(size: Size, page_size: Size, numa_node: Optional[int]) -> Any:
    """The AllocateMemoryRequest. Errors: InvalidArgument."""
    length = _amounts.parse_size(size)
    page = page_size if page_size == "auto" else _amounts.parse_size(page_size, "page_size")
    if page not in _PAGE_SIZES:
        raise _failures.invalid("FIELD_OUT_OF_RANGE", "page_size", 'a page has 4096 bytes, 2 MiB or 1 GiB, or "auto"')
    return message(messages.AllocateMemoryRequest, size=length, page_size=_PAGE_SIZES[page], numa_node=numa_node)


def fetch(kind: Type[AnyMemory], made: Any, length: int, populate: bool) -> Steps[AnyMemory]:
    """Maps what was allocated. It must be before the seal: no writable mapping can be made after it."""
    descriptor = yield Exchange(made.fd_ticket)
    memory = kind()
    try:
        memory._map(descriptor, length)
    finally:
        os.close(descriptor)
    if populate:
        with unmapping(memory):
            yield Work(functools.partial(_mapping.populate, memory.address, length))
    return memory


def allocate(
    link: Link, kind: Type[AnyMemory], size: Size, page_size: Size, numa_node: Optional[int], populate: bool
) -> Steps[AnyMemory]:
    """Pages of the daemon: ticket, descriptor, mapping, seal."""
    yield from link.release_dropped()
    request = allocate_request(size, page_size, numa_node)
    made = yield Call("Memory", "AllocateMemory", request, link.seconds_for(request.size))
    mapping: Steps[AnyMemory] = fetch(kind, made, request.size, populate)
    return (yield from _seal(link, made.memory_id, request.size, mapping))


def import_file(link: Link, kind: Type[AnyMemory], descriptor: int, size: Optional[Size]) -> Steps[AnyMemory]:
    """The caller's memfd: mapping, ticket, descriptor, seal."""
    yield from link.release_dropped()
    try:
        length = os.fstat(descriptor).st_size if size is None else _amounts.parse_size(size)
    except OSError as failure:
        words = f"the descriptor {descriptor} cannot be used: {failure.strerror}"
        raise _failures.invalid("FIELD_OUT_OF_RANGE", "file", words) from failure
    made = yield Call("Memory", "ImportMemory", messages.ImportMemoryRequest(size=length))
    mapping: Steps[AnyMemory] = _send(kind, made, descriptor, length)
    return (yield from _seal(link, made.memory_id, length, mapping))


def _send(kind: Type[AnyMemory], made: Any, descriptor: int, length: int) -> Steps[AnyMemory]:
    yield Exchange(made.fd_ticket, descriptor)
    memory = kind()
    memory._map(descriptor, length)
    return memory


def _seal(link: Link, ident: int, length: int, mapping: Steps[AnyMemory]) -> Steps[AnyMemory]:
    """Maps and then seals, or releases."""
    try:
        memory = yield from mapping
        with unmapping(memory):
            yield Call("Memory", "SealMemory", messages.SealMemoryRequest(memory_id=ident), link.seconds_for(length))
    except BaseException:
        link.drop(MemoryBase._RANK, MemoryBase._close_call(ident))
        raise
    memory._adopt(link, ident)
    return memory


class RegionBase(Handle):
    """Registered bytes: the card's right to use a range of memory.

    `region[a:b]` is a part of it for transfers. The memory stays as long as the region does. Both tokens are invalid
    when `close` returns.
    """

    _RANK = 4
    _memories: tuple[MemoryBase, ...]
    _base: int
    _length: int
    _local_token: int
    _remote: RemoteRegion
    _flags: int

    @classmethod
    def _close_call(cls, ident: int) -> Call:
        return Call("Memory", "CloseMr", messages.CloseMrRequest(mr_id=ident))

    @property
    def address(self) -> int:
        """Address of the first byte, for peers and in this process."""
        return self._base

    @property
    def local_token(self) -> int:
        """Token for this process's own requests. Errors: Closed."""
        return self._local_token if self.id else 0

    @property
    def remote(self) -> RemoteRegion:
        """What a peer needs. Without remote rights the token opens nothing. Errors: Closed."""
        return self._remote if self.id else self._remote

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part: slice) -> RegionPart:
        if not isinstance(part, slice):
            raise _failures.wrong_type("region", "cut by slices, region[a:b]", part)
        offset, count = _amounts.bounds(part, self._length, "region")
        return RegionPart(self, offset, count)

    def _fill(
        self,
        link: Link,
        ident: int,
        memories: tuple[MemoryBase, ...],
        base: int,
        length: int,
        tokens: tuple[int, int],
        flags: int,
    ) -> None:
        self._memories, self._flags = memories, flags
        self._base, self._length = base, length
        self._local_token = tokens[0]
        self._remote = RemoteRegion(base, length, tokens[1])
        self._adopt(link, ident)

    def _fill_from(self, link: Link, ident: int, memories: tuple[MemoryBase, ...], wire: Any, flags: int) -> None:
        """From a Registration message."""
        tokens = (wire.local_token, wire.remote_token)
        self._fill(link, ident, memories, wire.base_virtual_address, wire.length, tokens, flags)


AnyRegion = TypeVar("AnyRegion", bound=RegionBase)


@dataclass(frozen=True)
class RegionPart:
    """`length` bytes of a region from byte `offset`; made by `region[a:b]`."""

    region: RegionBase
    offset: int
    length: int

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return self.region.address + self.offset

    def __len__(self) -> int:
        return self.length


def check_parts(parts: Any) -> Sequence[MemoryPart]:
    """The parts. Errors: InvalidArgument where one is something else."""
    for one in _amounts.sequence(parts, "parts"):
        if not isinstance(one, MemoryPart):
            raise _failures.wrong_type("parts", "a list of memory.part(offset, length)", one)
    return parts  # type: ignore[no-any-return]


def chain(parts: Sequence[MemoryPart]) -> tuple[list[Any], int]:
    """The parts as an MDL chain, contiguous from the first part's address, and its length in bytes."""
    if not check_parts(parts):
        raise _failures.invalid("MDL_CHAIN_EMPTY", "parts", "a region needs at least one part")
    entries, address = [], parts[0].address
    for part in parts:
        entries.append(
            types_pb2.MdlEntry(
                memory_id=part.memory.id, byte_offset=part.offset, byte_count=part.length, virtual_address=address
            )
        )
        address += part.length
    return entries, sum(part.length for part in parts)


def register(link: Link, kind: Type[AnyRegion], parts: Sequence[MemoryPart], flags: int) -> Steps[AnyRegion]:
    """One region over the parts."""
    yield from link.release_dropped()
    entries, length = chain(parts)
    made = yield Call("Memory", "CreateMr", messages.CreateMrRequest(pd_id=link.domain_id))
    request = messages.RegisterMrRequest(mr_id=made.mr_id, mdl_chain=entries, length=length, flags=flags)
    try:
        answer = yield from _data_path.register(link, request, link.seconds_for(length))
    except BaseException:
        link.drop(RegionBase._RANK, RegionBase._close_call(made.mr_id))
        raise
    region = kind()
    region._fill_from(link, made.mr_id, tuple(part.memory for part in parts), answer.registration, flags)
    return region


def register_batch(
    link: Link, kind: Type[AnyRegion], parts: Sequence[MemoryPart], flags: int
) -> Steps[list[Union[AnyRegion, errors.Error]]]:
    """A region for each part, in two calls."""
    yield from link.release_dropped()
    chains = [chain([part]) for part in check_parts(parts)]
    create = [messages.CreateMrRequest(pd_id=link.domain_id) for _ in parts]
    created = yield Call("Memory", "BatchCreateMr", messages.BatchCreateMrRequest(items=create))
    items = []
    for (entries, length), outcome in zip(chains, created.outcomes):
        items.append(
            messages.RegisterMrRequest(mr_id=outcome.response.mr_id, mdl_chain=entries, length=length, flags=flags)
        )
    whole = sum(part.length for part in parts)
    try:
        request = messages.BatchRegisterMrRequest(items=items)
        answer = yield Call("Memory", "BatchRegisterMr", request, link.seconds_for(whole))
    except BaseException:
        for item in items:
            link.drop(RegionBase._RANK, RegionBase._close_call(item.mr_id))
        raise
    return [
        _outcome(link, kind, part, made, registered, flags)
        for part, made, registered in zip(parts, created.outcomes, answer.outcomes)
    ]


def _outcome(
    link: Link, kind: Type[AnyRegion], part: MemoryPart, made: Any, registered: Any, flags: int
) -> Union[AnyRegion, errors.Error]:
    """The region of one part, or why there is none."""
    if made.HasField("error"):
        return _failures.of_detail(made.error)
    if registered.HasField("error"):
        link.drop(RegionBase._RANK, RegionBase._close_call(made.response.mr_id))
        return _failures.of_detail(registered.error)
    region = kind()
    region._fill_from(link, made.response.mr_id, (part.memory,), registered.response.registration, flags)
    return region


def close_batch(link: Link, regions: Iterable[RegionBase]) -> Steps[None]:
    """Closes the regions in one call; those that are refused stay open. Errors: that of the first."""
    owned = [region for region in regions if region._finalizer.detach() is not None]
    if not owned or not link.usable():
        return
    items = [messages.CloseMrRequest(mr_id=region._ident) for region in owned]
    try:
        answer = yield Call("Memory", "BatchCloseMr", messages.BatchCloseMrRequest(items=items))
    except BaseException:
        for region in owned:
            region._guard()
        raise
    refused = [(region, one.error) for region, one in zip(owned, answer.outcomes) if one.HasField("error")]
    for region, _ in refused:
        region._guard()
    if refused:
        raise _failures.of_detail(refused[0][1])
