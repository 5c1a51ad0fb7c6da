"""gRPC over rpc.sock: options, method paths, and the channel that performs the sync client's steps."""

from __future__ import annotations

import importlib
import os
import urllib.parse
from typing import Any

import grpc

from . import _failures, _fork, errors
from ._effects import Call
from ._failures import invalid

_PATH_BYTES_MAX = 107
OPTIONS = [
    # Two channels to one path would share a connection, and a connection carries one session.
    ("grpc.use_local_subchannel_pool", 1),
    # If gRPC dropped an idle connection, the session would end with it.
    ("grpc.client_idle_timeout_ms", 2**31 - 1),
    # A call that is retried could be executed twice.
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    # Responses to large batches are above gRPC's 4 MiB.
    ("grpc.max_receive_message_length", -1),
    # A restarted daemon is back within a second; gRPC's default would wait for up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]


def target(socket_dir: str) -> str:
    """gRPC's name of the socket in this directory, a URI. Errors: InvalidArgument for a path that is too long."""
    path = os.path.join(socket_dir, "rpc.sock")
    if len(os.fsencode(path)) > _PATH_BYTES_MAX:
        message = f"the path of a Unix socket has at most {_PATH_BYTES_MAX} bytes"
        raise invalid("FIELD_OUT_OF_RANGE", "socket_dir", message)
    return f"unix:{urllib.parse.quote(os.fsencode(path))}"


def method_of(kind: Any, service: str, method: str) -> Any:
    """A callable for the method; `kind` is the channel's unary_unary or unary_stream."""
    services = _messages(f"{service.lower()}_service").DESCRIPTOR.services_by_name
    found = services[f"{service}Service"].methods_by_name[method]
    return kind(
        f"/rnicd.v1.{service}Service/{method}",
        request_serializer=_class_of(found.input_type).SerializeToString,
        response_deserializer=_class_of(found.output_type).FromString,
    )


def _messages(name: str) -> Any:
    """The generated module of a file of rnicd.v1."""
    return importlib.import_module(f".{name}_pb2", f"{__package__}._proto")


def _class_of(message: Any) -> Any:
    """The class of a message of rnicd.v1, whichever file it is in."""
    return getattr(_messages(os.path.basename(message.file.name).removesuffix(".proto")), message.name)


class Channel:
    """One connection to the daemon, and with OpenSession one session. Threads: safe."""

    def __init__(self, socket_dir: str) -> None:
        self._channel = grpc.insecure_channel(target(socket_dir), options=OPTIONS)
        _fork.keep_in_children(self._channel)
        self._methods: dict[tuple[str, str], Any] = {}

    def perform(self, call: Call, seconds: float) -> Any:
        """Makes the call, waits, and returns its response. Errors: Error."""
        try:
            return self._method(call)(call.request, timeout=call.seconds or seconds)
        except grpc.RpcError as failure:
            raise _failures.of_rpc_error(failure) from None
        except ValueError as failure:
            raise _closed(failure) from None

    def begin(self, call: Call, seconds: float) -> Any:
        """Makes the call and returns its gRPC future at once."""
        try:
            return self._method(call).future(call.request, timeout=call.seconds or seconds)
        except ValueError as failure:
            raise _closed(failure) from None

    def stream(self, service: str, method: str, request: Any) -> Any:
        """The responses of a stream, one after another; it has no timeout."""
        return method_of(self._channel.unary_stream, service, method)(request)

    def close(self) -> None:
        """Ends the connection. Calls in progress fail with SessionLost."""
        self._channel.close()

    def _method(self, call: Call) -> Any:
        key = (call.service, call.method)
        found = self._methods.get(key)
        if found is None:
            found = self._methods[key] = method_of(self._channel.unary_unary, *key)
        return found


def _closed(failure: ValueError) -> Exception:
    """gRPC reports a call on a closed channel as a ValueError."""
    return errors.SessionLost("closed") if "closed channel" in str(failure) else failure
