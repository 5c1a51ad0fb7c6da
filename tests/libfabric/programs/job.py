"""Runs programs of others over the provider: with an environment of theirs, and without a privilege."""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
_HERE = Path(__file__).resolve().parent
_TESTS = _HERE.parents[1]
sys.path += [str(_TESTS / "support"), str(_TESTS / "python")]
from daemon import Daemon

_TIMEOUT_S = 240
_NOBODY = 65534
_UNPRIVILEGED = ("prlimit", "--memlock=0", "setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups",
                 "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")
given = argparse.Namespace()

# What makes Open MPI take the provider, and nothing else, for what ranks say to each other.
_OVER_RNICD = {"OMPI_MCA_pml": "cm", "OMPI_MCA_mtl": "ofi", "OMPI_MCA_mtl_ofi_provider_include": "rnicd;ofi_rxm",
               "OMPI_MCA_btl": "^openib,ofi", "OMPI_MCA_osc": "pt2pt"}
# Handlers of one of libfabric's libraries would turn a crash into a hang.
_ALWAYS = {"PATH": "/usr/bin:/bin", "IPATH_NO_BACKTRACE": "1", "HFI_NO_BACKTRACE": "1", "OPENBLAS_NUM_THREADS": "1",
           "OMP_NUM_THREADS": "1", "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
           "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_plm": "isolated"}


class ProgramTest(unittest.TestCase):
    """A daemon, and a folder in which nobody may write."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rnicd-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.folder.chmod(0o777)
        # The build may be in a folder that is closed to others.
        for library in given.library:
            shutil.copy(library, self.folder)
        self.daemon = self.start_daemon("daemon")

    def start_daemon(self, name, *flags):
        folder = self.folder / name
        folder.mkdir()
        daemon = Daemon(folder, *flags)
        self.addCleanup(daemon.stop)
        return daemon

    def environment(self, over_rnicd=True, **more):
        own = {"HOME": str(self.folder), "TMPDIR": str(self.folder), "RNICD_SOCKET_DIR": self.daemon.socket_dir,
               "FI_PROVIDER_PATH": str(self.folder), "LD_LIBRARY_PATH": str(self.folder), "FI_RNICD_INTERFACE": "lo"}
        return {**_ALWAYS, **own, **(_OVER_RNICD if over_rnicd else {}), **more}

    def start(self, *command, **environment):
        """Starts the command as somebody who may do nothing."""
        # A tester without root has no more than that already.
        unprivileged = _UNPRIVILEGED if os.geteuid() == 0 else ("prlimit", "--memlock=0")
        child = subprocess.Popen([*unprivileged, *map(str, command)], cwd=self.folder,
                                 env=self.environment(**environment), stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                 start_new_session=True)
        self.addCleanup(self._end, child)
        return child

    def mpirun(self, ranks, *program):
        """The command of a job."""
        return ("mpirun", "-np", ranks, *program)

    def start_job(self, ranks, *program, **environment):
        return self.start(*self.mpirun(ranks, *program), **environment)

    def finish(self, child):
        """(status, stdout, stderr) of a program that ends by itself."""
        try:
            out, err = child.communicate(timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            out, err = child.communicate()
            self.fail(f"it hangs:\n{out}{err}")
        return child.returncode, out, err

    def run_well(self, *command, **environment):
        """The output of a program that succeeds."""
        status, out, err = self.finish(self.start(*command, **environment))
        self.assertEqual(status, 0, out + err)
        return out

    def run_job(self, ranks, *program, **environment):
        """The output of a job that succeeds, and of which the daemon keeps nothing."""
        out = self.run_well(*self.mpirun(ranks, *program), **environment)
        self.assert_nothing_is_left()
        return out

    def built(self, name):
        """The MPI program of that name."""
        return self._compiled(name, "mpicc", "-pthread", _HERE / "mpi" / f"{name}.c")

    def built_with_library(self, name):
        """The program of that name that uses the C library."""
        return self._compiled(name, "cc", "-I", _HERE.parents[2] / "client/c", _HERE / f"{name}.c",
                              self.folder / "librnicd.so.0")

    def _compiled(self, name, *command):
        program = self.folder / name
        if not program.exists():
            subprocess.run([*command, "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, "-Wl,--as-needed", "-lfabric"],
                           check=True)
        return program

    def check(self, ranks, name, *arguments, **environment):
        """Runs a program that checks what it receives."""
        self.assertEqual(self.run_job(ranks, self.built(name), *arguments, **environment), "all is well\n")

    def ready_ranks(self, child, ranks):
        """The processes of a job of the program `endings`, as soon as all are connected."""
        found = []
        while len(found) < ranks:
            line = child.stdout.readline()
            if not line:
                self.fail(f"the job has ended: {self.finish(child)}")
            found += map(int, re.findall(r"^ready (\d+)$", line))
        return found

    def assert_nothing_is_left(self):
        self.assert_holds_nothing(self.daemon)

    def assert_holds_nothing(self, daemon):
        daemon.wait_until_empty()
        status = daemon.status()
        self.assertEqual((status["registered_pages"], status["device_regions"], status["fd_tickets"]), (0, 0, 0), status)

    @staticmethod
    def _end(child):
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def main(about):
    """Runs the tests of the calling file."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--rnicd", required=True)
    parser.add_argument("--rnicctl", required=True)
    parser.add_argument("--library", action="append", required=True, help="librnicd.so.0, librnicd-fi.so, librnicd-heap.so")
    parser.add_argument("tests", nargs="*")
    parser.parse_args(namespace=given)
    os.environ.update(RNICD_PROGRAM=given.rnicd, RNICCTL_PROGRAM=given.rnicctl)
    unittest.main(argv=[sys.argv[0], "--verbose", *given.tests])
