"""Listeners and connectors: what the sync and the async classes have in common."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple, Type, TypeVar, Union

from .. import _failures
from .._effects import Call, Steps
from .._events import ENDED
from .._fields import message
from .._handle import Handle
from .._link import Link
from .._proto import connection_service_pb2 as messages
from .._queues import PairBase

Address = Tuple[str, int]
"""An address such as "10.98.0.1", and a port."""
Peer = Union[str, Address]
"""The name of a listener on this node, or its address."""
# What the daemon makes the adapter's limit.
_MOST_READS = (1 << 32) - 1
# Beyond the session's timeout, for calls that wait for the peer: twice the daemon's default --connection_timeout_ms.
_PEER_SECONDS = 60.0


@dataclass(frozen=True)
class ConnectionData:
    """What the peer has said, and what both sides have agreed on."""

    private_data: bytes
    """May be longer than what the peer sent: RoCE pads with zeros, so the data should carry their own length."""
    inbound_reads: int
    """Reads of the peer at a time; before `accept` its offer, as far as the card goes."""
    outbound_reads: int
    """Own reads at a time."""


@dataclass(frozen=True)
class ConnectorAddresses:
    """The two ends of a connection."""

    local: Address
    peer: Address


def _call(method: str, request: Any, waits: Optional[Link] = None) -> Call:
    """A call; one that `waits` for the peer of this session has a minute more."""
    return Call("Connection", method, request, waits.seconds + _PEER_SECONDS if waits is not None else None)


def close_request(ident: int) -> Call:
    """The call that ends a connector: an undecided request is rejected."""
    return _call("CloseConnector", messages.CloseConnectorRequest(connector_id=ident))


def _drop(link: Link, requests: Any, call: Call) -> None:
    """For the finalizer of a listener: also rejects what nobody took."""
    link.drop(ListenerBase._RANK, call)
    for ident in _waiting(requests):
        link.drop(ConnectorBase._RANK, close_request(ident))


def _waiting(requests: Any) -> List[int]:
    found = []
    while not requests.empty():
        found.append(requests.get_nowait())
    return [ident for ident in found if ident != ENDED]


class ListenerBase(Handle):
    """Takes requests for connections at an address.

    Closing it rejects requests that `next_request` has not returned. The address stays taken until all connectors
    accepted over it are closed.
    """

    _RANK = 1
    address: Address
    """Where it listens."""
    full_name: str
    """ "namespace/name", by which other tenants find it; empty without a name."""
    _requests: Any
    """A queue of the client's own kind, of connectors' ids; ENDED behind the last."""

    @classmethod
    def _close_call(cls, ident: int) -> Call:
        # Pending is fine: it ends with the last of its connectors, and nothing waits for that.
        return _call("CloseListener", messages.CloseListenerRequest(listener_id=ident, allow_pending=True))

    def _guard(self) -> None:
        call = self._close_call(self._ident)
        self._finalizer = weakref.finalize(self, _drop, self._link, self._requests, call)
        self._finalizer.atexit = False

    def _close_steps(self) -> Steps[None]:
        yield from super()._close_steps()
        self._link.events.forget("listener", self._ident)
        for ident in _waiting(self._requests):
            yield close_request(ident)

    def _control_steps(self, pause: bool) -> Steps[None]:
        yield _call("ControlConnectEvents", messages.ControlConnectEventsRequest(listener_id=self.id, pause=pause))


class ConnectorBase(Handle):
    """One end of a connection that was made by name or address, for one queue pair.

    Post receives before `connect` and `accept`. Both sides `disconnect`; closing ends the connection at once, and
    rejects a request that is not decided. It is closed with its queue pair.
    """

    _RANK = 0
    peer_gone: bool = False
    """Whether the peer has disconnected, or the connection broke. Requests are not flushed by that."""
    _told: Any
    """An Event of the client's own kind, set with `peer_gone` and at the session's end."""
    _pair: Optional[PairBase] = None
    _on_disconnected: Optional[Callable[[], None]] = None
    _answer: Optional[ConnectionData] = None
    """Of a connector that was completed before anyone could ask."""

    @classmethod
    def _close_call(cls, ident: int) -> Call:
        return close_request(ident)

    def _take_disconnection(self, status: int) -> None:
        self.peer_gone = self.peer_gone or status != ENDED
        self._told.set()
        if status != ENDED and self._on_disconnected is not None:
            self._on_disconnected()

    def _attach(self, qp: PairBase, on_disconnected: Optional[Callable[[], None]]) -> int:
        """The id of the queue pair. Errors: InvalidArgument."""
        if not isinstance(qp, PairBase):
            raise _failures.wrong_type("qp", "a QueuePair", qp)
        ident = qp.id
        # Each keeps the other: closed apart, the pair would wait for the connector.
        self._pair, qp._connector, self._on_disconnected = qp, self, on_disconnected
        return ident

    def _connect_steps(
        self,
        peer: Peer,
        qp: PairBase,
        offer: Dict[str, Any],
        source: Optional[Address],
        on_disconnected: Optional[Callable[[], None]],
    ) -> Steps[None]:
        request = message(
            messages.ConnectRequest,
            connector_id=self.id,
            qp_id=self._attach(qp, on_disconnected),
            local=None if source is None else _address_of(source, "source"),
            **_peer_of(peer),
            **offer,
        )
        yield _call("Connect", request, self._link)

    def _complete_steps(self) -> Steps[None]:
        yield _call("CompleteConnect", messages.CompleteConnectRequest(connector_id=self.id), self._link)

    def _accept_steps(
        self, qp: PairBase, offer: Dict[str, Any], on_disconnected: Optional[Callable[[], None]]
    ) -> Steps[None]:
        pair = self._attach(qp, on_disconnected)
        request = message(messages.AcceptRequest, connector_id=self.id, qp_id=pair, **offer)
        yield _call("Accept", request, self._link)

    def _reject_steps(self, private_data: bytes) -> Steps[None]:
        yield _call("Reject", message(messages.RejectRequest, connector_id=self.id, private_data=private_data))

    def _disconnect_steps(self) -> Steps[None]:
        yield _call("Disconnect", messages.DisconnectRequest(connector_id=self.id), self._link)

    def _establish_steps(
        self,
        peer: Peer,
        qp: PairBase,
        offer: Dict[str, Any],
        source: Optional[Address],
        on_disconnected: Optional[Callable[[], None]],
    ) -> Steps[None]:
        yield from self._connect_steps(peer, qp, offer, source, on_disconnected)
        self._answer = yield from self._data_steps()
        yield from self._complete_steps()

    def _data_steps(self) -> Steps[ConnectionData]:
        if self._answer is not None:
            return self._answer
        found = yield _call("GetConnectionData", messages.GetConnectionDataRequest(connector_id=self.id))
        return ConnectionData(found.private_data, found.inbound_read_limit, found.outbound_read_limit)

    def _addresses_steps(self) -> Steps[ConnectorAddresses]:
        found = yield _call("GetConnectorAddresses", messages.GetConnectorAddressesRequest(connector_id=self.id))
        return ConnectorAddresses(_address_from(found.local), _address_from(found.peer))


AnyListener = TypeVar("AnyListener", bound=ListenerBase)
AnyConnector = TypeVar("AnyConnector", bound=ConnectorBase)


def offer_of(private_data: bytes, inbound_reads: Optional[int], outbound_reads: Optional[int]) -> Dict[str, Any]:
    """The fields that a connect and an accept have in common."""
    return {
        "inbound_read_limit": _MOST_READS if inbound_reads is None else inbound_reads,
        "outbound_read_limit": _MOST_READS if outbound_reads is None else outbound_reads,
        "private_data": private_data,
    }


def listen(link: Link, kind: Type[AnyListener], name: str, address: str, port: int) -> Steps[AnyListener]:
    """A listener that listens."""
    yield from link.release_dropped()
    request = message(messages.ListenRequest, name=name)
    if address != "" or port != 0:
        request.local.CopyFrom(message(messages.NetworkAddress, address=address, port=port))
    made = yield _call("CreateListener", messages.CreateListenerRequest(adapter_id=link.adapter_id))
    listener = kind()
    listener._adopt(link, made.listener_id)
    _watch_listener(listener)
    request.listener_id = made.listener_id
    try:
        found = yield _call("Listen", request)
    except BaseException:
        yield from listener._close_steps()
        raise
    listener.address, listener.full_name = _address_from(found.local), found.full_name
    return listener


def connector(link: Link, kind: Type[AnyConnector]) -> Steps[AnyConnector]:
    """A connector for the active side."""
    yield from link.release_dropped()
    made = yield _call("CreateConnector", messages.CreateConnectorRequest(adapter_id=link.adapter_id))
    return adopt(link, kind, made.connector_id)


def adopt(link: Link, kind: Type[AnyConnector], ident: int) -> AnyConnector:
    """The connector with this id of the session."""
    made = kind()
    made._adopt(link, ident)
    weak = weakref.ref(made)

    def take(status: int) -> None:
        alive = weak()
        if alive is not None:
            alive._take_disconnection(status)

    link.events.watch("connector", ident, take)
    return made


def _watch_listener(listener: ListenerBase) -> None:
    """Routes requests to the listener; those that come when nothing refers to it any more are for nobody."""
    weak, strays = weakref.ref(listener), listener._link.events.strays

    def take(ident: int) -> None:
        alive = weak()
        if alive is not None:
            alive._requests.put_nowait(ident)
        elif ident != ENDED:
            strays.append(ident)

    listener._link.events.watch("listener", listener._ident, take)


def _peer_of(peer: Peer) -> Dict[str, Any]:
    return {"peer_name": peer} if isinstance(peer, str) else {"peer": _address_of(peer, "peer")}


def _address_of(address: Any, field: str) -> Any:
    """A NetworkAddress message. Errors: InvalidArgument."""
    if not isinstance(address, tuple) or len(address) != 2:
        raise _failures.wrong_type(field, "an (address, port)", address)
    return message(messages.NetworkAddress, address=address[0], port=address[1])


def _address_from(found: Any) -> Address:
    return found.address, found.port
