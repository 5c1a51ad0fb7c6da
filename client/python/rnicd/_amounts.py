"""Sizes and rights as users write them."""

from __future__ import annotations

import re
from typing import Union

from ._failures import invalid

Size = Union[int, str]
"""Bytes as a number, or a text such as "4096", "64KiB", "64MiB" or "1GiB"."""
LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE, READ_SINK = 1, 2, 5, 8
"""NDK_MR_FLAG_ values."""
_UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
_TEXT = re.compile(r"\s*(\d+)\s*([A-Za-z]*)\s*")


def parse_size(size: Size, field: str = "size") -> int:
    """Bytes of a size. Errors: InvalidArgument."""
    if isinstance(size, str):
        found = _TEXT.fullmatch(size)
        if found is None or found[2].upper() not in _UNITS:
            raise invalid("FIELD_OUT_OF_RANGE", field, f'"{size}" is not a size; write bytes, or "64MiB"')
        size = int(found[1]) * _UNITS[found[2].upper()]
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"{field} is a number of bytes or a text, not {type(size).__name__}")
    if not 0 <= size < 1 << 64:
        raise invalid("FIELD_OUT_OF_RANGE", field, "the size is outside 0 to 2^64-1")
    return size


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
    start = 0 if part.start is None else part.start
    stop = length if part.stop is None else part.stop
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
