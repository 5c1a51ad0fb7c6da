"""Memory that is ready: pages and their registered regions in two calls; many memories in two."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple, Type, Union

from . import _failures, _memory, errors
from ._amounts import Size
from ._effects import Call, Steps
from ._link import Link
from ._memory import AnyMemory, AnyRegion, MemoryBase
from ._proto import memory_service_pb2 as messages
from ._proto import provision_pb2

Range = Tuple[int, int]
"""(offset in the memory, length), in bytes."""


def allocate(
    link: Link,
    kinds: Tuple[Type[AnyMemory], Type[AnyRegion]],
    request: Any,
    ranges: Sequence[Range],
    flags: int,
    populate: bool,
) -> Steps[Tuple[AnyMemory, list[Union[AnyRegion, errors.Error]]]]:
    """Pages of the daemon, and a region for each range: ticket, descriptor, mapping, ProvisionMemory."""
    yield from link.release_dropped()
    made = yield Call("Memory", "AllocateMemory", request, link.seconds_for(request.size))
    try:
        memory = yield from _memory.fetch(kinds[0], made, request.size, populate)
        answer = yield _call(link, made.memory_id, memory.address, ranges, flags)
    except BaseException:
        link.drop(MemoryBase._RANK, MemoryBase._close_call(made.memory_id))
        raise
    memory._adopt(link, made.memory_id)
    return memory, _regions(link, kinds[1], memory, ranges, flags, answer)


def register(
    link: Link, kind: Type[AnyRegion], memory: MemoryBase, ranges: Sequence[Range], flags: int
) -> Steps[list[Union[AnyRegion, errors.Error]]]:
    """A region for each range of a memory, in one call."""
    yield from link.release_dropped()
    answer = yield _call(link, memory.id, memory.address, ranges, flags)
    return _regions(link, kind, memory, ranges, flags, answer)


def _call(link: Link, ident: int, address: int, ranges: Sequence[Range], flags: int) -> Call:
    items = [
        provision_pb2.ProvisionRange(byte_offset=offset, length=length, virtual_address=address + offset, flags=flags)
        for offset, length in ranges
    ]
    request = provision_pb2.ProvisionMemoryRequest(memory_id=ident, pd_id=link.domain_id, items=items)
    return Call("Memory", "ProvisionMemory", request, link.seconds_for(sum(length for _, length in ranges)))


def _regions(
    link: Link, kind: Type[AnyRegion], memory: MemoryBase, ranges: Sequence[Range], flags: int, answer: Any
) -> list[Union[AnyRegion, errors.Error]]:
    regions: list[Union[AnyRegion, errors.Error]] = []
    for (offset, length), outcome in zip(ranges, answer.outcomes):
        if not outcome.mr_id:
            regions.append(_failures.of_detail(outcome.error))
            continue
        region = kind()
        tokens = (outcome.local_token, outcome.remote_token)
        region._fill(link, outcome.mr_id, (memory,), memory.address + offset, length, tokens, flags)
        regions.append(region)
    return regions


def allocate_batch(
    link: Link, kind: Type[AnyMemory], sizes: Sequence[Size], page_size: Size, numa_node: Optional[int], populate: bool
) -> Steps[list[Union[AnyMemory, errors.Error]]]:
    """A memory for each size: BatchAllocateMemory, the descriptors, the mappings, BatchSealMemory."""
    yield from link.release_dropped()
    items = [_memory.allocate_request(size, page_size, numa_node) for size in sizes]
    whole = sum(item.size for item in items)
    request = messages.BatchAllocateMemoryRequest(items=items)
    made = yield Call("Memory", "BatchAllocateMemory", request, link.seconds_for(whole))
    idents = [outcome.response.memory_id for outcome in made.outcomes if outcome.HasField("response")]
    try:
        memories = []
        for item, outcome in zip(items, made.outcomes):
            if outcome.HasField("response"):
                memories.append((yield from _memory.fetch(kind, outcome.response, item.size, populate)))
        sealed = yield from _seal(link, idents, whole)
    except BaseException:
        for ident in idents:
            link.drop(MemoryBase._RANK, MemoryBase._close_call(ident))
        raise
    ready = iter([_adopted(link, *each) for each in zip(memories, idents, sealed)])
    return [_failures.of_detail(o.error) if o.HasField("error") else next(ready) for o in made.outcomes]


def _seal(link: Link, idents: Sequence[int], whole: int) -> Steps[Sequence[Any]]:
    if not idents:
        return ()
    items = [messages.SealMemoryRequest(memory_id=ident) for ident in idents]
    request = messages.BatchSealMemoryRequest(items=items)
    answer = yield Call("Memory", "BatchSealMemory", request, link.seconds_for(whole))
    return tuple(answer.outcomes)


def _adopted(link: Link, memory: AnyMemory, ident: int, sealed: Any) -> Union[AnyMemory, errors.Error]:
    if sealed.HasField("error"):
        link.drop(MemoryBase._RANK, MemoryBase._close_call(ident))
        return _failures.of_detail(sealed.error)
    memory._adopt(link, ident)
    return memory
