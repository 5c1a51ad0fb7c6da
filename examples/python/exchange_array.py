"""Two processes exchange an array: the worker reads the owner's, doubles it, and writes it back. No copy on the way."""

import multiprocessing
from multiprocessing.connection import Connection

import numpy as np
import rnicd

_FLOATS = 1 << 20


def worker(channel: Connection) -> None:
    """Reads, doubles, writes. The pipe carries addresses only."""
    with rnicd.connect(label="worker") as s, s.allocate(4 * _FLOATS) as m, m.register() as r, s.queue_pair() as pair:
        channel.send(pair.address)
        address, packed = channel.recv()
        pair.connect(address)
        remote = rnicd.RemoteRegion.from_bytes(packed)
        pair.read(r, remote)
        array = np.frombuffer(m, np.float32)
        array *= 2
        pair.write(r, remote)
        pair.send(b"done")


def owner() -> None:
    """Offers an array to the worker and prints what it became."""
    here, there = multiprocessing.Pipe()
    # Not forked: gRPC does not survive that, and the worker has a session of its own.
    process = multiprocessing.get_context("spawn").Process(target=worker, args=(there,))
    with rnicd.connect(label="owner") as s, s.allocate(4 * _FLOATS) as m, m.register(remote="rw") as r:
        array = np.frombuffer(m, np.float32)
        array[:] = np.arange(_FLOATS)
        process.start()
        with s.queue_pair() as pair, s.allocate(4096) as note, note.register() as received:
            pair.connect(here.recv())
            here.send((pair.address, r.remote.to_bytes()))
            length = pair.receive(received)
            print(bytes(note[:length]).decode(), "- the last number is now", array[-1])
    process.join()


if __name__ == "__main__":
    owner()
