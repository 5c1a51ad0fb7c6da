"""Objects that work requests register and bind: fast regions, mappings of pages, windows."""

from __future__ import annotations

from typing import Sequence, Tuple, Type, TypeVar

from . import _amounts, _data_path
from ._effects import Call, Steps
from ._fields import message
from ._handle import Handle
from ._link import Link
from ._memory import MemoryBase, MemoryPart, chain
from ._proto import memory_service_pb2 as memory_messages
from ._proto import queue_service_pb2 as queue_messages


class FastRegionBase(Handle):
    """A region that work requests register again and again, each time with other pages (FastRegister, Invalidate).

    Between registrations it gives no access to any memory. Close the queue pairs that used it before.
    """

    _RANK = 4
    _local_token: int
    max_pages: int
    """Pages of 4096 bytes in one FastRegister, at most."""

    @classmethod
    def _close_call(cls, ident: int) -> Call:
        return Call("Memory", "CloseMr", memory_messages.CloseMrRequest(mr_id=ident))

    @property
    def local_token(self) -> int:
        """Token for this process's SGEs; constant, and valid while pages are registered. Errors: Closed."""
        return self._local_token if self.id else 0

    def _token_steps(self) -> Steps[int]:
        return (yield from _data_path.remote_token(self._link, self.id))


class LogicalMappingBase(Handle):
    """The pages behind a range of memory, as the card names them: for FastRegister, and for SGEs with the privileged
    token. Close it when no registration uses its pages any more."""

    _RANK = 5
    _memories: Tuple[MemoryBase, ...]
    pages: Tuple[int, ...]
    """The logical address of each page of 4096 bytes, in order; need not be consecutive."""
    fbo: int
    """Bytes into the first page at which the range begins."""
    length: int
    """Bytes."""
    address: int
    """Address of the first byte in this process."""

    @classmethod
    def _close_call(cls, ident: int) -> Call:
        return Call("Memory", "ReleaseLam", memory_messages.ReleaseLamRequest(lam_id=ident))


class WindowBase(Handle):
    """A second, narrower token for a part of a region, opened and closed by work requests (Bind, Invalidate). It works
    only through the queue pair it was bound on. Close it before the region."""

    _RANK = 3

    @classmethod
    def _close_call(cls, ident: int) -> Call:
        return Call("Queue", "CloseMw", queue_messages.CloseMwRequest(mw_id=ident))

    def _token_steps(self) -> Steps[int]:
        request = queue_messages.GetRemoteTokenFromMwRequest(mw_id=self.id)
        answer = yield Call("Queue", "GetRemoteTokenFromMw", request)
        return int(answer.remote_token)


AnyFast = TypeVar("AnyFast", bound=FastRegionBase)
AnyMapping = TypeVar("AnyMapping", bound=LogicalMappingBase)
AnyWindow = TypeVar("AnyWindow", bound=WindowBase)


def fast_region(link: Link, kind: Type[AnyFast], max_pages: int, remote: bool) -> Steps[AnyFast]:
    """A region of the fast kind, initialized."""
    yield from link.release_dropped()
    max_pages = _amounts.integer(max_pages, "max_pages")
    request = memory_messages.CreateMrRequest(pd_id=link.domain_id, fast_register=True)
    made = yield Call("Memory", "CreateMr", request)
    region = kind()
    region._adopt(link, made.mr_id)
    initialize = message(
        memory_messages.InitializeFastRegisterMrRequest,
        mr_id=made.mr_id,
        adapter_page_count=max_pages,
        remote_access=remote,
    )
    yield Call("Memory", "InitializeFastRegisterMr", initialize)
    token = yield Call("Memory", "GetLocalToken", memory_messages.GetLocalTokenRequest(mr_id=made.mr_id))
    region._local_token, region.max_pages = token.local_token, max_pages
    return region


def map_pages(link: Link, kind: Type[AnyMapping], parts: Sequence[MemoryPart]) -> Steps[AnyMapping]:
    """The pages of parts of memories."""
    yield from link.release_dropped()
    entries, length = chain(parts)
    request = memory_messages.BuildLamRequest(adapter_id=link.adapter_id, mdl_chain=entries, length=length)
    made = yield Call("Memory", "BuildLam", request, link.seconds_for(length))
    mapping = kind()
    mapping.pages, mapping.fbo = tuple(made.adapter_page_array), made.fbo
    mapping.length, mapping.address = length, parts[0].address
    mapping._memories = tuple(part.memory for part in parts)
    mapping._adopt(link, made.lam_id)
    return mapping


def window(link: Link, kind: Type[AnyWindow]) -> Steps[AnyWindow]:
    """An unbound window."""
    yield from link.release_dropped()
    made = yield Call("Queue", "CreateMw", queue_messages.CreateMwRequest(pd_id=link.domain_id))
    created = kind()
    created._adopt(link, made.mw_id)
    return created


def privileged_token(link: Link) -> Steps[int]:
    """The token with which SGEs name logical addresses."""
    request = queue_messages.GetPrivilegedMemoryRegionTokenRequest(pd_id=link.domain_id)
    answer = yield Call("Queue", "GetPrivilegedMemoryRegionToken", request)
    return int(answer.privileged_token)
