"""rnicd's calls over rpc.sock: protoc generates the messages, gRPC carries them, an error becomes an exception."""

import importlib
import pathlib
import subprocess
import sys
import tempfile

import grpc

_CHANNEL_OPTIONS = [
    # Two channels to one path would share a connection, and a connection carries one session.
    ("grpc.use_local_subchannel_pool", 1),
    # If gRPC dropped an idle connection, the session would end with it.
    ("grpc.client_idle_timeout_ms", 2**31 - 1),
    # A call that is retried could be executed twice.
    ("grpc.enable_retries", 0),
    # Responses to large batches are above gRPC's 4 MiB.
    ("grpc.max_receive_message_length", -1),
]
_TIMEOUT_SECONDS = 30


class Refused(Exception):
    """The daemon refused. `detail` is an ErrorDetail; switch on its reason, never on text."""

    def __init__(self, detail, reason):
        super().__init__(f"{detail.message} ({reason}, {detail.ntstatus_name}, field {detail.field or '-'})")
        self.detail = detail
        self.reason = reason


class Failed(Exception):
    """A work request failed after it was posted. Its queue pair executes nothing any more."""


class Messages:
    """The message classes of proto/rnicd/v1, generated at start. A real program generates them at build time."""

    def __init__(self, proto_folder):
        proto_folder = pathlib.Path(proto_folder)
        sources = [str(path) for path in sorted((proto_folder / "rnicd" / "v1").glob("*.proto"))]
        with tempfile.TemporaryDirectory() as made:
            subprocess.run(["protoc", f"--proto_path={proto_folder}", f"--python_out={made}", *sources], check=True)
            sys.path.insert(0, made)
            self._modules = {path: importlib.import_module(f"rnicd.v1.{path}_pb2")
                             for path in ("session_service", "adapter_service", "memory_service", "queue_service",
                                          "ring_service", "work_request", "types", "fd_channel", "error")}
            sys.path.remove(made)

    def __getattr__(self, name):
        return self._modules[name]

    def refusal(self, detail):
        """An ErrorDetail as an exception, with the name of its reason as in docs/ERRORS.md."""
        return Refused(detail, _name(self.error.ErrorReason, detail.reason).removeprefix("ERROR_REASON_"))

    def failed(self, completion):
        """A CqResult that is not a success as an exception, with the names of its reason and its NTSTATUS."""
        # Enums are signed, the field is not.
        status = _name(self.error.NtStatus, completion.ntstatus - (1 << 32)).removeprefix("NT_")
        return Failed(f"{_name(self.error.ErrorReason, completion.reason).removeprefix('ERROR_REASON_')}, {status}")


def _name(enum, number):
    """The name of a number; "?" for one that only a newer daemon knows."""
    return enum.Name(number) if number in enum.values() else "?"


class Connection:
    """One connection to the daemon, and with OpenSession one session. The session ends with the connection."""

    def __init__(self, socket_dir, messages):
        self.messages = messages
        self._channel = grpc.insecure_channel(f"unix:{socket_dir}/rpc.sock", options=_CHANNEL_OPTIONS)

    def close(self):
        self._channel.close()

    def call(self, service, method, **fields):
        request, make = self._prepare(service, method, fields, self._channel.unary_unary)
        try:
            return make(request, timeout=_TIMEOUT_SECONDS)
        except grpc.RpcError as failure:
            raise self._refusal(failure) from failure

    def stream(self, service, method, **fields):
        """The responses of a stream, one after another; it has no deadline."""
        request, make = self._prepare(service, method, fields, self._channel.unary_stream)
        return make(request)

    def _prepare(self, service, method, fields, kind):
        module = getattr(self.messages, f"{service.lower()}_service")
        request, response = getattr(module, f"{method}Request"), getattr(module, f"{method}Response")
        return request(**fields), kind(f"/rnicd.v1.{service}Service/{method}",
                                       request_serializer=request.SerializeToString,
                                       response_deserializer=response.FromString)

    def _refusal(self, failure):
        """The error in the trailer; a failure without it is gRPC's own: no daemon listens, or a timeout."""
        error = self.messages.error
        for key, value in failure.trailing_metadata() or ():
            if key == "grpc-status-details-bin":
                detail = error.ErrorDetail()
                for packed in error.RpcStatus.FromString(value).details:
                    if packed.Unpack(detail):
                        return self.messages.refusal(detail)
        return failure
