"""A parameter server: workers read the weights and write their gradients straight into the server's memory."""

import multiprocessing
from multiprocessing.connection import Connection

import numpy as np
import rnicd

_FEATURES, _WORKERS, _STEPS, _RATE = 64, 2, 200, 0.1
_BYTES = 8 * _FEATURES
_TRUTH = np.linspace(-1.0, 1.0, _FEATURES)


def worker(index: int, channel: Connection) -> None:
    """Each step: read the weights, write the gradient of made-up samples, report, wait for the next."""
    random = np.random.default_rng(index)
    with rnicd.connect() as s, s.allocate("4KiB") as m, m.register() as r, s.queue_pair() as pair:
        channel.send(pair.address)
        address, weights, slot = channel.recv()
        pair.connect(address)
        mine = rnicd.numpy_array(m, (2, _FEATURES), np.float64)
        for _ in range(_STEPS):
            pair.read(r[:_BYTES], rnicd.RemoteRegion.from_bytes(weights))
            samples = random.standard_normal((32, _FEATURES))
            mine[1] = samples.T @ (samples @ (mine[0] - _TRUTH)) / 32
            next_step = pair.post([rnicd.Receive()])
            with pair.batch() as step:
                step.write(r[_BYTES : 2 * _BYTES], rnicd.RemoteRegion.from_bytes(slot))
                step.send(b"")
            step.wait()
            next_step.wait()


def serve() -> None:
    """Adds up the gradients of each step, and tells the workers to go on."""
    spawn = multiprocessing.get_context("spawn")
    pipes = [multiprocessing.Pipe() for _ in range(_WORKERS)]
    processes = [spawn.Process(target=worker, args=(index, there)) for index, (_, there) in enumerate(pipes)]
    with rnicd.connect(label="server") as s, s.allocate("4KiB") as m, m.register(remote="rw") as r:
        table = rnicd.numpy_array(m, (1 + _WORKERS, _FEATURES), np.float64)
        pairs = [s.queue_pair() for _ in pipes]
        reports = [pair.post([rnicd.Receive()]) for pair in pairs]
        for index, (process, pair, (here, _)) in enumerate(zip(processes, pairs, pipes), 1):
            process.start()
            pair.connect(here.recv())
            slot = r.remote[index * _BYTES : (index + 1) * _BYTES]
            here.send((pair.address, r.remote[:_BYTES].to_bytes(), slot.to_bytes()))
        for _ in range(_STEPS):
            for report in reports:
                report.wait()
            table[0] -= _RATE * table[1:].mean(axis=0)
            reports = [pair.post([rnicd.Receive()]) for pair in pairs]
            for pair in pairs:
                pair.send()
        print(f"after {_STEPS} steps the error is {np.abs(table[0] - _TRUTH).max():.6f}")


if __name__ == "__main__":
    serve()
