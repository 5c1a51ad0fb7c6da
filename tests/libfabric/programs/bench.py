"""Measures what programs get through the provider, beside other ways between two processes of one machine, and prints
a table. Asserts nothing but that all runs.

usage: bench.py --rnicd PROGRAM --rnicctl PROGRAM --library FILE...
"""

import re
import time
from collections import defaultdict

import job
from polling import wait_for
from quick_test import free_port, listens

SIZES = (8, 1024, 65536, 1 << 20, 16 << 20)
_ROUNDS = 3
_STARTED = 8
# What Open MPI is told, by the name of the column.
_RANKS = {
    "rnicd": {},
    "tcp": {"OMPI_MCA_mtl_ofi_provider_include": "tcp;ofi_rxm"},
    "shared memory": {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader"},
}
_ENDPOINTS = {"rnicd": ("rnicd", "msg"), "tcp": ("tcp", "msg"), "shm": ("shm", "rdm")}


def words(size):
    return f"{size} B" if size < 1024 else f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB"


class Bench(job.ProgramTest):
    def setUp(self):
        super().setUp()
        # Each cell has the best of all rounds: what else the machine does only makes them slower.
        self.us = defaultdict(lambda: float("inf"))
        self.rate = defaultdict(float)
        self.start_s = defaultdict(lambda: float("inf"))

    def written(self):
        for line in self.run_well(self.built_with_library("writes"), *SIZES).splitlines():
            size, *us_and_rates = line.split()
            for name, us, rate in zip(("write", "memcpy"), us_and_rates[:2], us_and_rates[2:]):
                self.us[name, int(size)] = min(self.us[name, int(size)], float(us))
                self.rate[name, int(size)] = max(self.rate[name, int(size)], float(rate))

    def pingpong(self, name):
        """It has no larger size than 6 MiB."""
        provider, kind = _ENDPOINTS[name]
        port = free_port()
        command = ("fi_pingpong", "-p", provider, "-e", kind, "-I", 200, "-S", "all")
        server = self.start(*command, "-B", port)
        wait_for("the server", lambda: listens(port) or server.poll() is not None)
        for line in self.run_well(*command, "-P", port, "127.0.0.1").splitlines()[1:]:
            size, *_, us, _ = line.split()
            unit = {"k": 1 << 10, "m": 1 << 20}.get(size[-1], 1)
            cell = f"endpoint {name}", int(float(size.rstrip("km")) * unit)
            self.us[cell] = min(self.us[cell], float(us))
        self.finish(server)

    def ranks(self, name):
        for line in self.run_well("mpirun", "-np", 2, self.built("latency"), *SIZES, **_RANKS[name]).splitlines():
            if re.match(r"\d+ [\d.]+ [\d.]+$", line):
                size, us, rate = line.split()
                self.us[f"rank {name}", int(size)] = min(self.us[f"rank {name}", int(size)], float(us))
                self.rate[name, int(size)] = max(self.rate[name, int(size)], float(rate))

    def start_of_ranks(self, name):
        """From the start of mpirun to the line behind the barrier."""
        began = time.perf_counter()
        child = self.start_job(_STARTED, self.built("barrier"), **_RANKS[name])
        self.assertEqual(child.stdout.readline(), "all is well\n")
        self.start_s[name] = min(self.start_s[name], time.perf_counter() - began)
        self.assertEqual(self.finish(child)[0], 0)

    def test_table(self):
        for _ in range(_ROUNDS):
            self.written()
            for name in _ENDPOINTS:
                self.pingpong(name)
            for name in _RANKS:
                self.ranks(name)
                self.start_of_ranks(name)
        columns = ["write", "memcpy", *(f"endpoint {name}" for name in _ENDPOINTS), *(f"rank {name}" for name in _RANKS)]
        heads = ["write, C library", "memcpy", *(f"`fi_pingpong`, {name}" for name in _ENDPOINTS),
                 *(f"Open MPI, {name}" for name in _RANKS)]
        print("| us | " + " | ".join(heads) + " |\n|---|" + "---:|" * len(heads))
        for size in SIZES:
            cells = (f"{self.us[column, size]:.2f}" if (column, size) in self.us else "" for column in columns)
            print(f"| {words(size)} | " + " | ".join(cells) + " |")
        columns = ["write", "memcpy", *_RANKS]
        heads = [*heads[:2], *heads[-len(_RANKS):]]
        print("\n| MB/s, 16 in flight | " + " | ".join(heads) + " |\n|---|" + "---:|" * len(heads))
        for size in SIZES[1:]:
            print(f"| {words(size)} | " + " | ".join(f"{self.rate[name, size]:.0f}" for name in columns) + " |")
        starts = ", ".join(f"{name} {self.start_s[name]:.2f}" for name in _RANKS)
        print(f"\nStart of {_STARTED} ranks to the first barrier, s: {starts}.")


if __name__ == "__main__":
    job.main(__doc__)
