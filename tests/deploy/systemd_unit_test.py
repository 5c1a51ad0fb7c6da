"""Checks deploy/systemd with systemd's own tools; none of them needs a running systemd.

usage: systemd_unit_test.py --source REPOSITORY --rnicd PROGRAM --system-calls PROGRAM
"""

import argparse
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

# Highest accepted exposure, times 10. systemd-analyze fails above it.
EXPOSURE_MAX = 19
EXPOSURE_MAX_WITH_MODULE = 20
# System calls between the start of the program and its own filter.
CALLS_BEFORE_THE_FILTER = {"execve", "arch_prctl", "set_tid_address", "capget", "capset", "prctl", "seccomp", "getdents64",
                           "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self"}
# System calls that systemd lists for a service, and that this one must never make.
CALLS_OF_NO_USE = {"chown", "setuid", "keyctl", "shmget", "mlock", "io_submit", "bpf", "mount", "ptrace", "reboot",
                   "unshare", "perf_event_open", "open_by_handle_at"}

ARGUMENTS = None


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=60, check=False)


class UnitTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.deploy = ARGUMENTS.source / "deploy" / "systemd"
        self.text = (self.deploy / "rnicd@.service").read_text()

    def unit(self, text):
        """The unit as a file, with the program of this build."""
        path = self.folder / "rnicd@a.service"
        path.write_text(text.replace("/usr/bin/rnicd", str(ARGUMENTS.rnicd.resolve())))
        return path

    def verify_messages(self, text):
        """systemd's messages about the unit: an unknown key is only a warning, and the exit status is 0."""
        result = run("systemd-analyze", "verify", "--man=no", self.unit(text))
        return result.stderr + ("" if result.returncode == 0 else f"exit status {result.returncode}")

    def is_tight(self, text, exposure_max=EXPOSURE_MAX):
        result = run("systemd-analyze", "security", "--offline=true", "--no-pager", f"--threshold={exposure_max}",
                     self.unit(text))
        self.assertIn("Overall exposure level", result.stdout, result.stderr)
        return result.returncode == 0

    def values(self, key):
        return re.findall(rf"^{key}=(.*)$", self.text, re.MULTILINE)


class TheUnit(UnitTest):
    def test_is_understood(self):
        self.assertEqual(self.verify_messages(self.text), "")

    def test_exposes_little(self):
        self.assertTrue(self.is_tight(self.text))

    def test_has_no_capability(self):
        self.assertEqual(self.values("CapabilityBoundingSet"), [""])
        self.assertEqual(self.values("AmbientCapabilities"), [""])

    def test_is_started_when_it_serves_and_watched(self):
        self.assertEqual([self.values("Type"), self.values("NotifyAccess")], [["notify"], ["main"]])
        # The serving check gives a thread 5 seconds, and an answer comes at half of the watchdog's time.
        self.assertGreaterEqual(int(self.values("WatchdogSec")[0]), 20)

    def test_is_started_until_a_card_appears_but_not_with_invalid_flags(self):
        unit, service = self.text.split("[Service]")
        self.assertIn("StartLimitIntervalSec=0\n", unit)
        self.assertIn("Restart=on-failure\n", service)
        self.assertGreater(int(self.values("RestartSec")[0]), 1)
        self.assertEqual(self.values("RestartPreventExitStatus"), ["2"])

    def test_is_reloaded_by_a_signal(self):
        self.assertEqual(self.values("ExecReload"), ['/bin/sh -c "kill -HUP $MAINPID"'])


class TheUnitWithTheModule(UnitTest):
    """The unit with the drop-in of the package rnicd-fr-dkms."""

    def setUp(self):
        super().setUp()
        self.both = self.text + "\n" + (self.deploy / "rnicd-fr.conf").read_text()

    def test_is_understood(self):
        self.assertEqual(self.verify_messages(self.both), "")

    def test_exposes_little(self):
        self.assertTrue(self.is_tight(self.both, EXPOSURE_MAX_WITH_MODULE))

    def test_has_the_one_capability_that_the_device_needs(self):
        self.text = self.both
        self.assertEqual(self.values("CapabilityBoundingSet"), ["", "CAP_NET_ADMIN"])
        self.assertEqual(self.values("AmbientCapabilities"), ["", "CAP_NET_ADMIN"])
        self.assertEqual(self.values("DeviceAllow"), ["char-infiniband_verbs rw", "/dev/infiniband/rdma_cm rw", "/dev/rnicd_fr rw"])

    def test_with_all_capabilities_is_refused(self):
        every = self.both.replace("BoundingSet=\n", "BoundingSet=~\n").replace("Set=CAP_NET_ADMIN\n", "Set=~\n")
        self.assertFalse(self.is_tight(every, EXPOSURE_MAX_WITH_MODULE))


class ABrokenUnit(UnitTest):
    def test_with_an_unknown_key_is_refused(self):
        broken = self.text.replace("ProtectSystem=", "ProtectSytem=")
        self.assertIn("ProtectSytem", self.verify_messages(broken))

    def test_with_an_unreadable_value_is_refused(self):
        broken = self.text.replace("LimitNOFILE=1048576", "LimitNOFILE=many")
        self.assertIn("many", self.verify_messages(broken))

    def test_with_an_unknown_system_call_is_refused(self):
        broken = self.text.replace("SystemCallFilter=capset", "SystemCallFilter=capsett")
        self.assertIn("capsett", self.verify_messages(broken))

    def test_without_its_program_is_refused(self):
        broken = self.text.replace("/usr/bin/rnicd", "/usr/bin/no-such-rnicd")
        self.assertNotEqual(self.verify_messages(broken), "")

    def test_without_a_user_of_its_own_is_refused(self):
        self.assertFalse(self.is_tight(self.text.replace("User=rnicd\n", "")))

    def test_without_its_filter_is_refused(self):
        self.assertFalse(self.is_tight(re.sub(r"^SystemCallFilter=.*\n", "", self.text, flags=re.MULTILINE)))

    def test_with_all_devices_is_refused(self):
        self.assertFalse(self.is_tight(self.text.replace("DevicePolicy=closed\n", "").replace("ProtectClock=yes\n", "")
                                       .replace("DeviceAllow=char-infiniband_verbs rw\n", "")
                                       .replace("DeviceAllow=/dev/infiniband/rdma_cm rw\n", "")))


class TheFilter(UnitTest):
    """The unit's list of system calls, compared with the daemon's own."""

    @staticmethod
    def sets():
        """systemd's sets of system calls: name to entries."""
        found, name = {}, None
        for line in run("systemd-analyze", "syscall-filter", "--no-pager").stdout.splitlines():
            if re.match(r"^@\S+$", line):
                name = line
                found[name] = []
            elif line.startswith("    ") and not line.strip().startswith("#") and name:
                found[name].append(line.strip())
            elif line and not line.startswith(" "):
                name = None
        return found

    def allowed(self):
        sets = self.sets()
        self.assertIn("@system-service", sets)

        def expand(entry):
            if not entry.startswith("@"):
                return {entry}
            return set().union(*(expand(part) for part in sets[entry]))

        calls = set()
        for value in self.values("SystemCallFilter"):
            entries = set().union(*(expand(entry) for entry in value.removeprefix("~").split()))
            calls = calls - entries if value.startswith("~") else calls | entries
        return calls

    def test_lets_through_what_the_daemons_own_lets_through(self):
        own = set(run(ARGUMENTS.system_calls).stdout.split())
        self.assertGreater(len(own), 100)
        self.assertEqual((own | CALLS_BEFORE_THE_FILTER) - self.allowed(), set())

    def test_lets_nothing_through_that_is_of_no_use(self):
        self.assertEqual(CALLS_OF_NO_USE & self.allowed(), set())


class TheOtherFiles(UnitTest):
    def install(self, name, folder):
        target = self.folder / "root" / "usr/lib" / folder
        target.mkdir(parents=True)
        (target / "rnicd.conf").write_text((self.deploy / name).read_text())
        (self.folder / "root" / "etc").mkdir(exist_ok=True)
        return self.folder / "root"

    def test_make_the_user(self):
        root = self.install("rnicd.sysusers.conf", "sysusers.d")
        result = run("systemd-sysusers", f"--root={root}", "rnicd.conf")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex((root / "etc/passwd").read_text(), r"(?m)^rnicd:.*:/nonexistent:/usr/sbin/nologin$")
        self.assertRegex((root / "etc/group").read_text(), r"(?m)^rnicd:")

    def test_make_the_directories(self):
        root = self.install("rnicd.tmpfiles.conf", "tmpfiles.d")
        # No user here has the name rnicd; the test's user replaces it.
        path = root / "usr/lib/tmpfiles.d/rnicd.conf"
        path.write_text(re.sub(r"rnicd rnicd -$", "- - -", path.read_text(), flags=re.MULTILINE))
        result = run("systemd-tmpfiles", f"--root={root}", "--create", "rnicd.conf")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual((root / "run/rnicd").stat().st_mode & 0o7777, 0o755)
        for folder in ("run/rnicd-admin", "run/rnicd-doors", "run/rnicd-handover"):
            self.assertEqual((root / folder).stat().st_mode & 0o7777, 0o700)

    def test_flags_are_flags_of_the_daemon(self):
        result = run(ARGUMENTS.rnicd, f"--flagfile={self.deploy / 'rnicd.flags'}", "--version")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_a_flag_that_the_daemon_does_not_know_is_refused(self):
        path = self.folder / "rnicd.flags"
        path.write_text((self.deploy / "rnicd.flags").read_text().replace("--socket_dir", "--socket_dirr"))
        result = run(ARGUMENTS.rnicd, f"--flagfile={path}", "--version")
        self.assertIn("socket_dirr", result.stderr)
        self.assertNotEqual(result.returncode, 0)

    def test_agree_on_the_directories(self):
        flags = (self.deploy / "rnicd.flags").read_text().splitlines()
        made = re.findall(r"^d (\S+)", (self.deploy / "rnicd.tmpfiles.conf").read_text(), re.MULTILINE)
        self.assertEqual([f"--socket_dir={made[0]}", f"--admin_socket_dir={made[1]}", f"--door_dir={made[2]}"],
                         [flag for flag in flags if "_dir=" in flag])
        self.assertEqual(made[3], made[0] + "-handover", "the default of --handover_dir")
        self.assertEqual(self.values("ReadWritePaths"), [" ".join(made)])
        self.assertIn("/var/log/" + self.values("LogsDirectory")[0] + "/",
                      next(flag for flag in flags if flag.startswith("--audit_log=")))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--rnicd", type=Path, required=True)
    parser.add_argument("--system-calls", type=Path, required=True)
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[__file__, *rest], verbosity=2)
