"""Sizes and rights as users write them."""

from __future__ import annotations

import math
import operator
import re
from typing import Any, SupportsIndex, Union

from ._failures import invalid, wrong_type

Size = Union[SupportsIndex, str]
"""Bytes as a number, or a text such as "4096", "64KiB", "64MiB" or "1GiB"."""
LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE, READ_SINK = 1, 2, 5, 8
"""NDK_MR_FLAG_ values."""
_UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
# The longest that poll(2) can wait is 24 days.
_LONGEST_SECONDS = 2e6
EDGES = (-(1 << 64), 1 << 64)
_TEXT = re.compile(r"\s*(\d{1,20})\s*([A-Za-z]*)\s*")


def parse_size(size: Size, field: str = "size") -> int:
    """Bytes of a size. Errors: InvalidArgument."""
    if isinstance(size, str):
        found = _TEXT.fullmatch(size)
        if found is None or found[2].upper() not in _UNITS:
            raise invalid("FIELD_OUT_OF_RANGE", field, f'"{size}" is not a size; write bytes, or "64MiB"')
        size = int(found[1]) * _UNITS[found[2].upper()]
    return integer(size, field)


def integer(value: Any, field: str, low: int = 0, end: int = 1 << 64) -> int:
    """A whole number, also numpy's, from `low` to below `end`. Errors: InvalidArgument."""
    if type(value) is not int:
        # True is an int for Python, but no number for people.
        if isinstance(value, bool):
            raise wrong_type(field, "a whole number", value)
        try:
            value = operator.index(value)
        except TypeError:
            raise wrong_type(field, "a whole number", value) from None
    if not low <= value < end:
        raise invalid("FIELD_OUT_OF_RANGE", field, f"{field} is from {low} to {end - 1}")
    return int(value)


def make_integers(holder: Any, **bits: int) -> None:
    """Makes whole numbers of these attributes of a frozen dataclass, each of so many bits. Errors: InvalidArgument."""
    for name, size in bits.items():
        value = getattr(holder, name)
        checked = integer(value, name, 0, 1 << size)
        if checked is not value:
            object.__setattr__(holder, name, checked)


def sequence(value: Any, field: str) -> Any:
    """The value, which has places and an order. Errors: InvalidArgument."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__getitem__") or not hasattr(value, "__len__"):
        raise wrong_type(field, "a list", value)
    return value


def seconds(value: Any, field: str = "timeout") -> float:
    """A time in seconds; what is longer than the system's longest wait is that. Errors: InvalidArgument."""
    try:
        number = float(value) if hasattr(value, "__float__") or hasattr(value, "__index__") else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number) or isinstance(value, bool):
        raise wrong_type(field, "a number of seconds", value)
    return min(max(number, 0.0), _LONGEST_SECONDS)


def parse_rights(rights: str, field: str) -> tuple[bool, bool]:
    """(read, write) of "", "r", "w" or "rw". Errors: InvalidArgument."""
    if not isinstance(rights, str) or rights not in ("", "r", "w", "rw"):
        raise invalid("FIELD_OUT_OF_RANGE", field, f'{field} is "", "r", "w" or "rw", not {rights!r}')
    return "r" in rights, "w" in rights


def region_flags(remote: str, local_write: bool) -> int:
    """NDK_MR_FLAG_ bits of a registration. Remote write includes local write."""
    read, write = parse_rights(remote, "remote")
    flags = (REMOTE_READ if read else 0) | (REMOTE_WRITE if write else 0)
    return flags | (LOCAL_WRITE | READ_SINK if local_write else 0)


def bounds(part: slice, length: int, field: str) -> tuple[int, int]:
    """(offset, bytes) of a slice of `length` bytes. Errors: InvalidArgument outside it; steps are refused."""
    if part.step not in (None, 1):
        raise invalid("FIELD_OUT_OF_RANGE", field, "a slice of registered bytes has no step")
    start = 0 if part.start is None else integer(part.start, field, *EDGES)
    stop = length if part.stop is None else integer(part.stop, field, *EDGES)
    start, stop = (edge + length if edge < 0 else edge for edge in (start, stop))
    check_range(start, stop - start, length, field)
    return start, stop - start


def check_range(offset: int, count: int, length: int, field: str) -> None:
    """Raises InvalidArgument unless `count` bytes from `offset` are inside `length` bytes."""
    if offset < 0 or count < 0 or offset + count > length:
        raise invalid(
            "MDL_RANGE_OUTSIDE_MEMORY",
            field,
            f"bytes {offset} to {offset + count} are not inside the {length} bytes",
            limit=length,
            requested=max(0, offset + count),
        )
