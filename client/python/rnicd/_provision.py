"""Memory that is ready: pages and their registered regions in two calls; many memories in two."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple, Type, Union

from . import _amounts, _failures, _memory, errors
from ._amounts import Size
from ._effects import Call, Steps
from ._fields import message
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
    ranges = _checked(ranges)
    made = yield Call("Memory", "AllocateMemory", request, link.seconds_for(request.size))
    try:
        memory = yield from _memory.fetch(kinds[0], made, request.size, populate)
        with _memory.unmapping(memory):
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
    ranges = _checked(ranges)
    answer = yield _call(link, memory.id, memory.address, ranges, flags)
    return _regions(link, kind, memory, ranges, flags, answer)


def _checked(ranges: Any) -> list[Range]:
    """The ranges as whole numbers. Errors: InvalidArgument."""
    checked = []
    for index, one in enumerate(_amounts.sequence(ranges, "ranges")):
        if len(_amounts.sequence(one, f"ranges[{index}]")) != 2:
            raise _failures.wrong_type(f"ranges[{index}]", "an offset and a length", one)
        offset, length = (_amounts.integer(edge, f"ranges[{index}]") for edge in one)
        checked.append((offset, length))
    return checked


def _call(link: Link, ident: int, address: int, ranges: Sequence[Range], flags: int) -> Call:
    items = [
        message(
            provision_pb2.ProvisionRange,
            byte_offset=offset,
            length=length,
            virtual_address=address + offset,
            flags=flags,
        )
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
    """A memory for each size: BatchAllocateMemory, the descriptors, the mappings, BatchSealMemory.

    In order; what is refused on the way has its refusal in its place.
    """
    yield from link.release_dropped()
    items = [_memory.allocate_request(size, page_size, numa_node) for size in _amounts.sequence(sizes, "sizes")]
    whole = sum(item.size for item in items)
    request = messages.BatchAllocateMemoryRequest(items=items)
    made = yield Call("Memory", "BatchAllocateMemory", request, link.seconds_for(whole))
    idents = [outcome.response.memory_id for outcome in made.outcomes]
    outcomes: list[Union[AnyMemory, errors.Error]] = []
    try:
        for item, outcome in zip(items, made.outcomes):
            outcomes.append((yield from _fetch(kind, outcome, item.size, populate)))
        yield from _seal(link, idents, outcomes, whole)
    except BaseException:
        for index, ident in enumerate(idents):
            _give_back(link, ident, outcomes[index] if index < len(outcomes) else None)
        raise
    for ident, one in zip(idents, outcomes):
        if isinstance(one, MemoryBase):
            one._adopt(link, ident)
        else:
            _give_back(link, ident)
    return outcomes


def _fetch(kind: Type[AnyMemory], made: Any, length: int, populate: bool) -> Steps[Union[AnyMemory, errors.Error]]:
    """The memory, which is not sealed yet, or why there is none."""
    if made.HasField("error"):
        return _failures.of_detail(made.error)
    try:
        return (yield from _memory.fetch(kind, made.response, length, populate))
    except errors.Refused as refused:
        # Without the frames, which refer to the memories of the others.
        return refused.with_traceback(None)


def _seal(link: Link, idents: Sequence[int], outcomes: list[Any], whole: int) -> Steps[None]:
    """Seals the memories; a refusal takes the place of its memory."""
    places = [place for place, one in enumerate(outcomes) if isinstance(one, MemoryBase)]
    if not places:
        return
    items = [messages.SealMemoryRequest(memory_id=idents[place]) for place in places]
    request = messages.BatchSealMemoryRequest(items=items)
    answer = yield Call("Memory", "BatchSealMemory", request, link.seconds_for(whole))
    for place, sealed in zip(places, answer.outcomes):
        if sealed.HasField("error"):
            outcomes[place] = _failures.of_detail(sealed.error)


def _give_back(link: Link, ident: int, memory: Any = None) -> None:
    """Unmaps the memory, if there is one, and has it released; `ident` is 0 for one that was not allocated."""
    if isinstance(memory, MemoryBase):
        memory._let_go()
    if ident:
        link.drop(MemoryBase._RANK, MemoryBase._close_call(ident))
