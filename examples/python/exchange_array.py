"""Two processes meet by a name: the worker reads the owner's array, doubles it, and writes it back, without a copy."""

import multiprocessing

import numpy as np
import rnicd

_FLOATS = 1 << 20


def worker() -> None:
    """Reads, doubles, writes. The owner's answer says where its array is."""
    with rnicd.connect(label="worker") as s, s.allocate(4 * _FLOATS) as m, m.register() as r, s.queue_pair() as pair:
        connection = s.connect("array", pair)
        remote = rnicd.RemoteRegion.from_bytes(connection.connection_data().private_data[:24])
        pair.read(r, remote)
        array = np.frombuffer(m, np.float32)
        array *= 2
        pair.write(r, remote)
        pair.send(b"done")
        connection.disconnect()


def owner() -> None:
    """Offers an array to the worker and prints what it became."""
    # Not forked: gRPC does not survive that, and the worker has a session of its own.
    process = multiprocessing.get_context("spawn").Process(target=worker)
    with rnicd.connect(label="owner") as s, s.allocate(4 * _FLOATS) as m, m.register(remote="rw") as r:
        array = np.frombuffer(m, np.float32)
        array[:] = np.arange(_FLOATS)
        with s.queue_pair() as pair, s.allocate(4096) as note, note.register() as received:
            with s.listen("array") as listener:
                process.start()
                request = listener.next_request()
            with request:
                message = pair.post([rnicd.Receive(received)])
                request.accept(pair, private_data=r.remote.to_bytes())
                length = message.wait()[0].bytes
                print(bytes(note[:length]).decode(), "- the last number is now", array[-1])
                request.disconnect()
    process.join()


if __name__ == "__main__":
    owner()
