"""A parameter server: workers read the weights and write their gradients straight into the server's memory."""

import multiprocessing
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import rnicd

_FEATURES, _WORKERS, _STEPS, _RATE = 64, 2, 200, 0.1
_BYTES = 8 * _FEATURES
_TRUTH = np.linspace(-1.0, 1.0, _FEATURES)


def gradient(weights: Any, random: Any) -> Any:
    """Of the squared error over a batch of made-up samples."""
    samples = random.standard_normal((32, _FEATURES))
    return samples.T @ (samples @ (weights - _TRUTH)) / 32


def worker(index: int, channel: Connection) -> None:
    """Each step: read the weights, write the gradient, report, wait for the next."""
    random = np.random.default_rng(index)
    with rnicd.connect(label=f"worker {index}") as s, s.allocate(
        "4KiB"
    ) as m, m.register() as r, s.queue_pair() as pair:
        channel.send(pair.address)
        address, packed_weights, packed_slot = channel.recv()
        pair.connect(address)
        weights, slot = map(rnicd.RemoteRegion.from_bytes, (packed_weights, packed_slot))
        mine = rnicd.numpy_array(m, (2, _FEATURES), np.float64)
        for _ in range(_STEPS):
            pair.read(r[:_BYTES], weights)
            mine[1] = gradient(mine[0], random)
            next_step = pair.post([rnicd.Receive()])
            with pair.batch() as step:
                step.write(r[_BYTES : 2 * _BYTES], slot)
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
        for process in processes:
            process.start()
        pairs = [s.queue_pair() for _ in pipes]
        reports = [pair.post([rnicd.Receive()]) for pair in pairs]
        for index, (pair, (here, _)) in enumerate(zip(pairs, pipes), 1):
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
        for process in processes:
            process.join()


if __name__ == "__main__":
    serve()
