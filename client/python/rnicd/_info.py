"""What the daemon says about cards and sessions, as plain values."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Dict, List

from ._effects import Call, Steps
from ._link import Link
from ._proto import adapter_service_pb2 as adapter_messages
from ._proto import session_service_pb2 as session_messages


@dataclass(frozen=True)
class AdapterInfo:
    """Limits of a card: NDK_ADAPTER_INFO. Units are in the comments of adapter_service.proto."""

    vendor_id: int
    device_id: int
    max_registration_size: int
    """Bytes in one registration."""
    max_window_size: int
    """Bytes in one window."""
    frmr_page_count: int
    max_initiator_request_sge: int
    max_receive_request_sge: int
    max_read_request_sge: int
    max_transfer_length: int
    """Bytes of one transfer."""
    max_inline_data_size: int
    max_inbound_read_limit: int
    max_outbound_read_limit: int
    max_receive_queue_depth: int
    max_initiator_queue_depth: int
    max_srq_depth: int
    max_cq_depth: int
    large_request_threshold: int
    max_caller_data: int
    max_callee_data: int
    adapter_flags: int
    rdma_technology: int

    @classmethod
    def of_wire(cls, wire: Any) -> AdapterInfo:
        """Of an NdkAdapterInfo message."""
        return cls(**{field.name: getattr(wire, field.name) for field in dataclasses.fields(cls)})


@dataclass(frozen=True)
class AdapterSummary:
    """One card of the node."""

    name: str
    """Stable across restarts; for `connect(adapter=...)`."""
    provider: str
    """"soft", "verbs" or, of a daemon on Windows, "networkdirect"."""
    numa_node: int
    """-1 if none."""
    info: AdapterInfo


@dataclass(frozen=True)
class ResourceUse:
    """Use and limit of one resource; 0 means no limit."""

    used: int
    limit: int


@dataclass(frozen=True)
class SessionUse:
    """What the session, and its tenant over all its sessions, use now: by name, for example "pinned_bytes"."""

    session: Dict[str, ResourceUse]
    tenant: Dict[str, ResourceUse]


@dataclass(frozen=True)
class Reclaimed:
    """What the session still held when it was closed."""

    regions: int
    pinned_bytes: int
    memory_bytes: int


def list_adapters(_: Link) -> Steps[List[AdapterSummary]]:
    """Every card of the node."""
    answer = yield Call("Adapter", "ListAdapters", adapter_messages.ListAdaptersRequest())
    return [
        AdapterSummary(one.name, one.provider, one.numa_node, AdapterInfo.of_wire(one.info)) for one in answer.adapters
    ]


def adapter_info(link: Link) -> Steps[AdapterInfo]:
    """The limits of the session's card."""
    request = adapter_messages.QueryAdapterInfoRequest(adapter_id=link.adapter_id)
    answer = yield Call("Adapter", "QueryAdapterInfo", request)
    return AdapterInfo.of_wire(answer.info)


def usage(_: Link) -> Steps[SessionUse]:
    """Use and limits now."""
    answer = yield Call("Session", "GetSession", session_messages.GetSessionRequest())
    return SessionUse(_by_name(answer.resources), _by_name(answer.tenant_resources))


def reclaimed(answer: Any) -> Reclaimed:
    """A CloseSessionResponse as a value."""
    return Reclaimed(answer.reclaimed_regions, answer.reclaimed_pinned_bytes, answer.reclaimed_memory_bytes)


def _by_name(resources: Any) -> Dict[str, ResourceUse]:
    return {one.name: ResourceUse(one.used, one.limit) for one in resources}
