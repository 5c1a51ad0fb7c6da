"""Starts one generation of the daemon after the other, over the same directories."""

import argparse
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from polling import wait_for

_TIMEOUT_S = 60
# What the command line says.
given = argparse.Namespace()


def parser_of(description):
    parser = argparse.ArgumentParser(description=description)
    for program in ("rnicd", "rnicctl"):
        parser.add_argument(f"--{program}", required=True, type=os.path.abspath)
    parser.add_argument("tests", nargs="*")
    return parser


class Generation:
    """A daemon. It takes over from the one that runs."""

    def __init__(self, programs, folder: Path, number: int, *flags: str):
        self.number = number
        self._log = folder / f"generation-{number}.log"
        with open(self._log, "wb") as log:
            self.child = subprocess.Popen(
                [programs.rnicd, f"--socket_dir={folder}/s", "--metrics_address=", *flags], stdout=log,
                stderr=subprocess.STDOUT)

    def log(self) -> str:
        return self._log.read_text()

    def serves(self) -> bool:
        return " ready " in self.log()

    def wait_until_it_serves(self):
        wait_for(f"generation {self.number}", lambda: self.serves() or self.child.poll() is not None)
        assert self.child.poll() is None, self.log()

    def wait_for_end(self) -> int:
        return self.child.wait(timeout=_TIMEOUT_S)

    def kill(self):
        self.child.kill()
        self.child.wait()


class Node:
    """The generations of one node, of which the last one serves."""

    def __init__(self, programs, folder: Path, *flags: str):
        self.programs, self.folder, self.flags = programs, folder, flags
        self.generations = []

    def start(self, *flags: str) -> Generation:
        """Starts one, and does not wait for it."""
        generation = Generation(self.programs, self.folder, len(self.generations) + 1, *self.flags, *flags)
        self.generations.append(generation)
        return generation

    def take_over(self) -> Generation:
        generation = self.start()
        generation.wait_until_it_serves()
        return generation

    def client(self, *command: str, **options) -> subprocess.Popen:
        return subprocess.Popen([self.programs.rnicctl, *command, f"--socket-dir={self.folder}/s"],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                **options)

    def run(self, *command: str, **options):
        """(exit code, output)"""
        child = self.client(*command, **options)
        out, _ = child.communicate(timeout=_TIMEOUT_S)
        return child.returncode, out

    def names(self):
        """Files below the directories, without the locks."""
        return sorted(os.path.relpath(path, self.folder) for suffix in ("", "-admin", "-doors", "-handover")
                      for path in Path(f"{self.folder}/s{suffix}").rglob("*") if path.name != "lock")

    def stop(self):
        for generation in self.generations:
            if generation.child.poll() is None:
                generation.child.terminate()
        for generation in self.generations:
            try:
                generation.child.wait(timeout=_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                generation.kill()


class GenerationsTest(unittest.TestCase):
    """Each test has a node of its own."""

    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rnicd-")
        self.addCleanup(folder.cleanup)
        self.node = Node(given, Path(folder.name))
        self.addCleanup(self.node.stop)
