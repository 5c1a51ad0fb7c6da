"""Request messages from what users gave: the one place where a value that a field cannot hold is refused."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from . import _amounts
from ._failures import invalid, wrong_type

_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), 1 << 31),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), 1 << 63),
    FieldDescriptor.CPPTYPE_UINT32: (0, 1 << 32),
    FieldDescriptor.CPPTYPE_UINT64: (0, 1 << 64),
}


def message(kind: Any, **fields: Any) -> Any:
    """A message of `kind`; None leaves a field unset. Errors: InvalidArgument, with the name of the field."""
    by_name = kind.DESCRIPTOR.fields_by_name
    made = {name: _checked(by_name[name], name, value) for name, value in fields.items() if value is not None}
    return kind(**made)


def _checked(field: Any, name: str, value: Any) -> Any:
    if field.label == FieldDescriptor.LABEL_REPEATED and field.cpp_type in _RANGES:
        return [_integer(field, f"{name}[{index}]", one) for index, one in enumerate(value)]
    if field.cpp_type in _RANGES:
        return _integer(field, name, value)
    if field.type == FieldDescriptor.TYPE_BYTES:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise wrong_type(name, "bytes", value)
        return bytes(value)
    if field.type == FieldDescriptor.TYPE_STRING:
        return _text(name, value)
    return bool(value) if field.type == FieldDescriptor.TYPE_BOOL else value


def _integer(field: Any, name: str, value: Any) -> int:
    return _amounts.integer(value, name, *_RANGES[field.cpp_type])


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise wrong_type(name, "a text", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise invalid("FIELD_OUT_OF_RANGE", name, f"{name} is not valid Unicode") from None
    return value
