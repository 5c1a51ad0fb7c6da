"""Larger programs and jobs over the provider.

usage: night_test.py --rnicd PROGRAM --rnicctl PROGRAM --library FILE... [TEST...]
"""

import re
import shutil
from pathlib import Path

import job

_HERE = Path(__file__).parent


class Messages(job.ProgramTest):
    def test_ring_of_eight(self):
        self.check(8, "ring")

    def test_collectives_of_three(self):
        self.check(3, "collectives")

    def test_windows_of_three(self):
        self.check(3, "windows")

    def test_spawned_ranks(self):
        self.check(2, "spawn")

    def test_ranks_that_meet_at_a_port(self):
        self.check(2, "ports")

    def test_threads(self):
        self.check(2, "threads")


class Hosts(job.ProgramTest):
    def run_on_both(self, name, *arguments):
        """Runs a program that checks what it receives, and that finds the other rank by an address of its own choice."""
        script = shutil.copy(_HERE / "two_hosts.sh", self.folder)
        out = self.run_well("sh", script, self.built(name), *arguments, FI_RNICD_INTERFACE="")
        self.assertEqual(out, "all is well\n")
        self.assert_nothing_is_left()

    def test_collectives(self):
        self.run_on_both("collectives")

    def test_random_messages(self):
        self.run_on_both("messages", 43, 2000)


class Mpi4py(job.ProgramTest):
    def pickles(self, ranks, grpc):
        shutil.copy(_HERE / "pickles.py", self.folder)
        out = self.run_job(ranks, "/usr/bin/python3", "pickles.py", grpc)
        self.assertEqual(out, "all is well\n")

    def test_grpc_before_mpi(self):
        self.pickles(2, "before")

    def test_grpc_after_mpi(self):
        self.pickles(4, "after")


class HpcChallenge(job.ProgramTest):
    def hpcc(self, ranks):
        text = (_HERE / "hpccinf.txt").read_text()
        (self.folder / "hpccinf.txt").write_text(text.replace("PROCESS_ROWS", f"{ranks // 2}"))
        self.run_job(ranks, "hpcc")
        result = (self.folder / "hpccoutf.txt").read_text()
        self.assertIn("Success=1\n", result)
        self.assertNotIn("FAILED", result)

    def test_two_ranks(self):
        self.hpcc(2)

    def test_four_ranks(self):
        self.hpcc(4)


class Lammps(job.ProgramTest):
    def thermodynamics(self, **environment):
        shutil.copy(_HERE / "melt.lammps", self.folder)
        out = self.run_job(2, "lmp", "-in", "melt.lammps", **environment)
        return re.search(r"(?s)^ *Step .*?(?=^Loop time)", out, re.MULTILINE)[0]

    def test_melt_is_that_of_shared_memory(self):
        over_shared_memory = self.thermodynamics(over_rnicd=False, OMPI_MCA_pml="ob1", OMPI_MCA_btl="self,vader")
        self.assertEqual(len(over_shared_memory.splitlines()), 7)
        self.assertEqual(self.thermodynamics(), over_shared_memory)


if __name__ == "__main__":
    job.main(__doc__)
