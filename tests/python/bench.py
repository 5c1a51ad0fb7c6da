"""Measures the Python client and prints the figures beside their bars. Asserts nothing.

usage: bench.py --package FOLDER --rnicd PROGRAM --rnicctl PROGRAM --write-bench PROGRAM

The writes of Python and librnicd, by calls and through rings, take turns, so that all meet the same machine; figures
are medians. First daemon and clients share one processor, where nobody spins; then they run where the kernel puts them.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator, List

_PAGE = 4096
_WRITES = 1000
_TURNS = 5
_GIB = 1 << 30
_FIRST_BYTE = """
import time
began = time.perf_counter()
import rnicd
with rnicd.connect() as s, s.allocate(4096) as m, m.register(remote="rw") as r:
    m[0] = 1
    print(time.perf_counter() - began)
"""


def of_python(rnicd: Any, path: str) -> float:
    """Seconds of a write of 4 KiB with its completion."""
    with rnicd.connect(data_path=path) as session, session.allocate(2 * _PAGE) as memory, memory.register(
        remote="rw"
    ) as region:
        pair, peer = session.queue_pair(), session.queue_pair()
        pair.connect(peer.address)
        peer.connect(pair.address)
        source, remote = region[:_PAGE], region.remote[_PAGE:]
        taken: List[float] = []
        for _ in range(_WRITES):
            began = time.perf_counter()
            pair.write(source, remote)
            taken.append(time.perf_counter() - began)
        return statistics.median(taken)


def of_librnicd(program: Path, socket_dir: str, path: str) -> float:
    command, environment = [program, socket_dir, str(_WRITES)], {**os.environ, "RNICD_DATA_PATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout) / 1e9


def writes(rnicd: Any, program: Path, socket_dir: str, where: str) -> None:
    """Prints a row of the table. Its ratios are Python's rings to librnicd's (bar 5), and to its calls (bar 1.3)."""
    turns = [
        [of_python(rnicd, path) for path in ("rings", "calls")]
        + [of_librnicd(program, socket_dir, path) for path in ("rings", "calls")]
        for _ in range(_TURNS)
    ]
    us = [statistics.median(column) * 1e6 for column in zip(*turns)]
    to_calls = statistics.median(turn[0] / turn[3] for turn in turns)
    to_rings = statistics.median(turn[0] / turn[2] for turn in turns)
    print(
        f"| {where} | {us[0]:.1f} | {us[2]:.1f} | {to_rings:.1f} | {us[1]:.0f} | {us[3]:.0f} | {to_calls:.2f} |",
        flush=True,
    )


def first_byte() -> float:
    """Seconds from the import to the first registered byte, in a new interpreter."""
    done = subprocess.run([sys.executable, "-c", _FIRST_BYTE], capture_output=True, text=True, check=True)
    return float(done.stdout)


def resident() -> int:
    """Bytes of this process's own memory, without shared mappings."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no RssAnon in /proc/self/status")


def longest_stop(action: Callable[[], Any]) -> float:
    """Seconds for which another thread did not run during the action, at worst."""
    worst, stop = [0.0], threading.Event()

    def watch() -> None:
        last = time.perf_counter()
        while not stop.wait(0.001):
            now = time.perf_counter()
            worst[0] = max(worst[0], now - last)
            last = now

    watcher = threading.Thread(target=watch)
    watcher.start()
    action()
    stop.set()
    watcher.join()
    return worst[0]


def big(rnicd: Any) -> None:
    """1 GiB: what populating stops, and what numpy.frombuffer copies."""
    import numpy as np

    with rnicd.connect(timeout=120) as session:
        made: List[Any] = []
        stop = longest_stop(lambda: made.append(session.allocate(_GIB, populate=True)))
        print(f"populate 1 GiB: another thread stopped {stop * 1e3:.0f} ms at worst (bar 100)")
        before = resident()
        array = np.frombuffer(made[0], np.float32)
        print(
            f"np.frombuffer over 1 GiB: {resident() - before} bytes more (bar: no copy), {array.nbytes} bytes of array"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--package", "--rnicd", "--rnicctl", "--write-bench"):
        parser.add_argument(name, type=Path, required=True)
    options = parser.parse_args()
    sys.path.insert(0, str(options.package.resolve()))
    sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
    os.environ["PYTHONPATH"] = str(options.package.resolve())
    os.environ["RNICD_PROGRAM"], os.environ["RNICCTL_PROGRAM"] = str(options.rnicd), str(options.rnicctl)
    os.environ.pop("RNICD_GRANT", None)
    import rnicd

    from daemon import Daemon

    print("| 4 KiB write, us | Python, rings | librnicd, rings | ratio | Python, calls | librnicd, calls | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    everywhere = os.sched_getaffinity(0)
    for where, processors in (("one processor", {max(everywhere)}), ("all processors", everywhere)):
        os.sched_setaffinity(0, processors)
        with running(Daemon) as daemon:
            writes(rnicd, options.write_bench, daemon.socket_dir, where)
    with running(Daemon):
        seconds = statistics.median(first_byte() for _ in range(_TURNS))
        print(f"import to first registered byte: {seconds:.2f} s (bar 0.5)")
        big(rnicd)


@contextlib.contextmanager
def running(kind: Any) -> Iterator[Any]:
    """A daemon on the processors of this process."""
    with tempfile.TemporaryDirectory(prefix="rnicd-") as folder:
        daemon = kind(Path(folder))
        os.environ["RNICD_SOCKET_DIR"] = daemon.socket_dir
        try:
            yield daemon
        finally:
            daemon.stop()


if __name__ == "__main__":
    main()
