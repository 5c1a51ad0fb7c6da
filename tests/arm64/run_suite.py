"""Runs test programs of arm64 below qemu, without the tests that qemu cannot run.

usage: run_suite.py --emulator WORDS --list FILE --results FOLDER --name NAME [--filter PATTERNS] [--seconds N] [--listed]
                    PROGRAM...
  --name      of the file with the results
  --seconds   ends after so long, and says which programs were left out, or ended before all of their tests had run
  --listed    runs only the tests of the list, and prints which of them pass

A program that crashes or hangs is started again for the tests behind the one that did it, which has failed then. Prints
each test that failed with its last lines.
"""

import argparse
import fnmatch
import json
import math
import pathlib
import subprocess
import sys
import time

SEPARATOR = " | "
# The longest silence of a test program, which prints a line for each test; no test is silent for longer.
SILENCE_SECONDS = 120
# The longest that a program takes to name its tests.
LISTING_SECONDS = 120
LAST_LINES = 12


def read_list(path):
    """{pattern: reason}."""
    listed = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        pattern, separator, reason = line.partition(SEPARATOR)
        if not separator or not reason or pattern in listed:
            sys.exit(f"{path}:{number}: must be 'Suite.Test{SEPARATOR}reason', once for each")
        listed[pattern] = reason
    return listed


def tests_of(command):
    """All names, as --gtest_filter knows them; none where the program does not name them."""
    try:
        told = subprocess.run([*command, "--gtest_list_tests"], check=True, capture_output=True, text=True,
                              timeout=LISTING_SECONDS).stdout
    except (OSError, subprocess.SubprocessError) as error:
        print(f"   {error}", flush=True)
        return []
    names, suite = [], ""
    for line in told.splitlines():
        word = line.split("#")[0].rstrip()
        if word.startswith("  "):
            names.append(suite + word.strip())
        elif word.endswith("."):
            suite = word
    return names


class Program:
    """One test program below the emulator."""

    def __init__(self, path, emulator, results, deadline):
        self.path = path
        self.command = [*emulator, str(path)]
        self.results = results / path.name
        self.deadline = deadline
        self.passed, self.failed = set(), set()

    def run(self, names):
        """Runs these tests, also those behind one that ends the program. The number for which there was no time."""
        left = list(names)
        while left:
            done = self._start(left)
            if time.monotonic() > self.deadline:
                return len(left) - len(done)
            left = [name for name in left if name not in done]
            if not done:
                self._fail(left.pop(0), ["the program did not start"])
        return 0

    def _start(self, names):
        """The tests that have ended, by success, failure, or with the program."""
        output = self.results.with_suffix(".log")
        with output.open("w") as log, subprocess.Popen(
                [*self.command, "--gtest_color=no", f"--gtest_flagfile={self._flags(names)}"], stdout=log,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL) as process:
            self._await(process, output)
        return self._count(output.read_text(errors="replace").splitlines(), process.returncode)

    def _flags(self, names):
        path = self.results.with_suffix(".flags")
        path.write_text("--gtest_filter=" + ":".join(names) + "\n")
        return path

    def _await(self, process, output):
        size, since = -1, time.monotonic()
        while True:
            try:
                process.wait(1)
                return
            except subprocess.TimeoutExpired:
                if output.stat().st_size != size:
                    size, since = output.stat().st_size, time.monotonic()
                elif time.monotonic() - since > SILENCE_SECONDS:
                    process.kill()
                if time.monotonic() > self.deadline:
                    process.kill()

    def _count(self, lines, status):
        ended, running, begin = set(), None, 0
        for number, line in enumerate(lines):
            if line.startswith("[ RUN      ] "):
                running, begin = line[13:], number
            elif running and line.startswith(f"[       OK ] {running} "):
                self.passed.add(running)
                ended.add(running)
                running = None
            elif running and line.startswith(f"[  FAILED  ] {running}"):
                self._fail(running, lines[begin + 1:number])
                ended.add(running)
                running = None
        if running and time.monotonic() <= self.deadline:
            self._fail(running, [*lines[begin + 1:], f"the program ended or hung in it; status {status}"])
            ended.add(running)
        return ended

    def _fail(self, name, lines):
        self.failed.add(name)
        print(f"   not passed: {name}", *lines[-LAST_LINES:], sep="\n     | ", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--emulator", required=True)
    parser.add_argument("--list", type=pathlib.Path, required=True)
    parser.add_argument("--results", type=pathlib.Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--filter", default="*")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--listed", action="store_true")
    parser.add_argument("programs", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    listed = read_list(arguments.list)
    arguments.results.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + arguments.seconds
    matched, late = set(), []
    totals = {"passed": 0, "failed": 0, "listed": 0}
    for path in arguments.programs:
        if time.monotonic() > deadline:
            late.append(path.name)
            continue
        program = Program(path, arguments.emulator.split(), arguments.results, deadline)
        known = tests_of(program.command)
        if not known:
            print(f"   not passed: {path.name} names no tests", flush=True)
            totals["failed"] += 1
        names = [name for name in known
                 if any(fnmatch.fnmatchcase(name, wanted) for wanted in arguments.filter.split(":"))]
        hits = {name: [pattern for pattern in listed if fnmatch.fnmatchcase(name, pattern)] for name in names}
        matched.update(pattern for patterns in hits.values() for pattern in patterns)
        began = time.monotonic()
        missed = program.run([name for name in names if bool(hits[name]) == arguments.listed])
        if missed:
            late.append(f"{missed} tests of {path.name}")
        totals["passed"] += len(program.passed)
        totals["failed"] += len(program.failed)
        totals["listed"] += sum(1 for name in names if hits[name])
        print(f"   {path.name}: {len(program.passed)} of {len(program.passed) + len(program.failed)} passed, "
              f"{time.monotonic() - began:.0f} s", flush=True)
        if arguments.listed and program.passed:
            print("   listed, and pass:", *sorted(program.passed), sep="\n     ")
    if late:
        print("   left out, as there was no time:", ", ".join(late))
    totals["patterns"] = sorted(matched)
    (arguments.results / f"{arguments.name}.json").write_text(json.dumps(totals) + "\n")
    return 1 if totals["failed"] and not arguments.listed else 0


if __name__ == "__main__":
    sys.exit(main())
