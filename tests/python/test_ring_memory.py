"""The client's end of a ring, in a file whose other end is the test."""

from __future__ import annotations

import os
import struct

import pytest
from rnicd import _ring
from rnicd._effects import Submit
from rnicd._shared_file import BadFile, Descriptor, SharedFile

PAGE = 4096


class FakeDaemon:
    """The daemon's half of a ring in a file of the test: takes entries when told, with indices of its choice."""

    def __init__(self, begin, entries=2, payload=4096, magic=b"RNIDRING", version=1, size=None):
        submissions, completions = 640, 640 + 64 * entries
        area = completions + 64 * entries
        self.size = area + payload
        self.file = os.memfd_create("ring")
        os.truncate(self.file, self.size if size is None else size)
        description = struct.pack("<8sIIIIIII4x", magic, version, 640, submissions, completions, entries, area, payload)
        os.pwrite(self.file, description, 0)
        for offset in (128, 256, 384, 512):
            os.pwrite(self.file, struct.pack("<I", begin), offset)
        self._completions, self._entries, self._done = completions, entries, begin

    def open(self):
        bell = os.eventfd(0)
        return _ring.Ring(SharedFile(self.file, self.size, b"RNIDRING", _ring.HEADER_BYTES), Descriptor(bell))

    def complete(self, user_data, **fields):
        place = self._completions + 64 * (self._done & (self._entries - 1))
        reason = fields.get("reason", 0)
        os.pwrite(self.file, struct.pack("<QIIHHIIIIIQQQ", user_data, 0, reason, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0), place)
        self._done = self._done + 1 & 0xFFFFFFFF
        os.pwrite(self.file, struct.pack("<I", self._done), 384)


def test_indices_run_over_the_end_of_32_bits():
    fake = FakeDaemon(begin=0xFFFFFFFE)
    ring = fake.open()
    for number in (0xFFFFFFFE, 0xFFFFFFFF, 0, 1):
        sent = ring.submit(Submit(0, 7))
        assert sent is not None and not ring.collect() and sent.reply is None
        assert ring.file.words[_ring.SUBMISSION_TAIL] == number + 1 & 0xFFFFFFFF
        fake.complete(number)
        assert ring.collect() and sent.reply.outcome.user_data == number
        assert ring.file.words[_ring.COMPLETION_HEAD] == number + 1 & 0xFFFFFFFF


def test_a_full_ring_takes_nothing_until_the_oldest_is_complete():
    fake = FakeDaemon(begin=0)
    ring = fake.open()
    first, second = ring.submit(Submit(0, 1)), ring.submit(Submit(0, 2))
    assert first and second and ring.submit(Submit(0, 3)) is None
    fake.complete(1)
    assert ring.collect() and second.reply and not first.reply
    # The slot of the second is free, but its outcome came out of order.
    assert ring.submit(Submit(0, 3)) is None
    fake.complete(0)
    assert ring.collect() and first.reply and ring.submit(Submit(0, 3))


def test_payload_is_not_given_out_twice():
    fake = FakeDaemon(begin=0, entries=8)
    ring = fake.open()
    big = Submit(1, 1, 1, payload=bytes(1400), tokens=1)
    assert ring.submit(big) and ring.submit(big) and not ring.has_room(big)
    fake.complete(0)
    assert ring.collect() and ring.has_room(big)
    third = ring.submit(big)
    assert third and third.result_offset == 1400, "it begins where the first was"
    assert not ring.fits(Submit(1, 1, payload=bytes(4096)))


def test_files_of_another_kind_are_refused():
    for wrong in ({"magic": b"RNIDCOM "}, {"version": 2}, {"entries": 3}, {"size": PAGE // 2}):
        with pytest.raises(BadFile):
            FakeDaemon(begin=0, **wrong).open()
