"""Converts what comes over the wire into exceptions."""

from __future__ import annotations

import dataclasses
from typing import Any

import grpc

from . import errors
from ._proto import error_pb2
from ._proto.sentences import SENTENCES, STATUS_NAMES

_DETAILS_KEY = "grpc-status-details-bin"
_ENDED = ("SESSION_REQUIRED", "SESSION_ENDING")
_CAUSE_MARK = "its session ended: "
# Classes of the reasons whose gRPC code alone does not say it.
_CLASSES: dict[str, type[errors.Refused]] = {
    "MEMORY_IN_USE": errors.InUse,
    "REGION_BUSY": errors.InUse,
    "REGION_HAS_WINDOWS": errors.InUse,
    "RATE_LIMITED": errors.QuotaExceeded,
    "ADDRESS_NOT_PERMITTED": errors.Denied,
    "TENANT_REFUSED": errors.Denied,
    "GRANT_REFUSED": errors.Denied,
    "METHOD_NOT_PERMITTED": errors.Denied,
    "TICKET_UNKNOWN": errors.NotFound,
}
_INVALID_PARAMETER = 0xC000000D
_NOT_FOUND = 0xC0000225
_INVALID_DEVICE_STATE = 0xC0000184


def reason_name(number: int) -> str:
    """Name of a reason; "REASON_<number>" for one that only a newer daemon knows."""
    if number in error_pb2.ErrorReason.values():
        return str(error_pb2.ErrorReason.Name(number)).removeprefix("ERROR_REASON_")
    return f"REASON_{number}"


def ntstatus_name(status: int) -> str:
    """Name of an NTSTATUS; its digits for one that only a newer daemon knows."""
    signed = status - (1 << 32) if status >= 1 << 31 else status
    if signed in error_pb2.NtStatus.values():
        return str(error_pb2.NtStatus.Name(signed)).removeprefix("NT_")
    return f"{status:#010x}"


def sentence(number: int) -> str:
    """The sentence of a reason, as rnicctl prints it."""
    return SENTENCES.get(number, "the daemon gives a reason that is newer than this package")


def of_detail(wire: Any) -> errors.Error:
    """An ErrorDetail message as an exception."""
    detail = errors.ErrorDetail(
        reason=reason_name(wire.reason),
        ntstatus=wire.ntstatus,
        ntstatus_name=wire.ntstatus_name or ntstatus_name(wire.ntstatus),
        field=wire.field,
        message=wire.message or sentence(wire.reason),
        limit=wire.limit,
        used=wire.used,
        requested=wire.requested,
        retry_after=wire.retry_after_ms / 1000,
    )
    if detail.reason in _ENDED:
        return errors.SessionLost(_cause_in(detail))
    if detail.reason in ("DAEMON_DRAINING", "DAEMON_HANDED_OVER"):
        return errors.Unavailable(detail.message, detail)
    return _class_of(detail)(detail)


def _class_of(detail: errors.ErrorDetail) -> type[errors.Refused]:
    if detail.reason in _CLASSES:
        return _CLASSES[detail.reason]
    if detail.reason.startswith("QUOTA_"):
        return errors.QuotaExceeded
    return {_INVALID_PARAMETER: errors.InvalidArgument, _NOT_FOUND: errors.NotFound}.get(
        detail.ntstatus, errors.Refused
    )


def _cause_in(detail: errors.ErrorDetail) -> str:
    """The cause that the daemon gives beside the reason; "connection_lost" if the connection is a new one."""
    if _CAUSE_MARK in detail.message:
        return detail.message.partition(_CAUSE_MARK)[2].rstrip(")")
    return detail.field if detail.field and "." not in detail.field else "connection_lost"


def of_rpc_error(failure: Any) -> errors.Error:
    """An RpcError as an exception: the daemon's own from the trailer, or what gRPC says."""
    for key, value in failure.trailing_metadata() or ():
        if key == _DETAILS_KEY:
            wire = error_pb2.ErrorDetail()
            for packed in error_pb2.RpcStatus.FromString(value).details:
                if packed.Unpack(wire):
                    return of_detail(wire)
    if failure.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return errors.TimedOut("no answer from rnicd in time; the call may have been executed")
    return errors.Unavailable(f"no answer from rnicd: {failure.details() or failure.code().name}")


def invalid(reason: str, field: str, message: str, limit: int = 0, requested: int = 0) -> errors.InvalidArgument:
    """A refusal by this package, before any call."""
    return errors.InvalidArgument(_refusal(reason, field, message, limit, requested))


def wrong_type(field: str, wanted: str, value: Any) -> errors.WrongType:
    """As `invalid`, for a value that is not what is wanted ("a whole number")."""
    words = f"{field} is {wanted}, not {type(value).__name__}"
    return errors.WrongType(_refusal("FIELD_OUT_OF_RANGE", field, words, 0, 0))


def no_pages(words: str) -> errors.QuotaExceeded:
    """Memory that this process cannot map."""
    refused = of_reason("MEMORY_PAGES_UNAVAILABLE")
    assert isinstance(refused, errors.Refused)
    return errors.QuotaExceeded(dataclasses.replace(refused.detail, message=words))


def _refusal(reason: str, field: str, message: str, limit: int, requested: int) -> errors.ErrorDetail:
    return errors.ErrorDetail(
        reason=reason,
        ntstatus=_INVALID_PARAMETER,
        ntstatus_name=ntstatus_name(_INVALID_PARAMETER),
        field=field,
        message=message,
        limit=limit,
        requested=requested,
    )


def of_reason(name: str, field: str = "") -> errors.Error:
    """A refusal that is reported by an event, or in shared memory: without a detail."""
    return of_number(error_pb2.ErrorReason.Value(f"ERROR_REASON_{name}"), field)


def of_number(reason: Any, field: str = "") -> errors.Error:
    """As `of_reason`, for the number of a reason."""
    name = STATUS_NAMES.get(reason)
    status = _INVALID_DEVICE_STATE if name is None else error_pb2.NtStatus.Value(name) & 0xFFFFFFFF
    return of_detail(error_pb2.ErrorDetail(reason=reason, ntstatus=status, field=field))
