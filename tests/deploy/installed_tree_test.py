"""Checks the files of `cmake --install`: complete, consistent, and accepted by the tools that will read them.

usage: installed_tree_test.py --source REPOSITORY --build FOLDER --cmake PROGRAM --version VERSION
"""

import argparse
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ARGUMENTS = None


def run(*command, **environment):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, **environment})


def install(root, prefix, component="rnicd"):
    done = run(ARGUMENTS.cmake, "--install", ARGUMENTS.build, "--prefix", prefix, "--component", component,
               DESTDIR=str(root))
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)


class Installed(unittest.TestCase):
    """A tree for the prefix /usr, created once."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = Path(folder.name)
        install(cls.root, "/usr")
        install(cls.root, "/usr", "device-plugin")

    def below(self, path, root=None):
        return (root or self.root) / path.lstrip("/")


class TheUnit(Installed):
    def exec_start(self, unit):
        """The program and the flag file that the unit names."""
        return re.search(r"(?m)^ExecStart=(\S+) --flagfile=(\S+)$", unit.read_text()).groups()

    def check_paths(self, root, unit, program, flags):
        self.assertEqual(self.exec_start(self.below(unit, root)), (program, flags))
        self.assertTrue(os.access(self.below(program, root), os.X_OK))
        self.assertIn("--provider=", self.below(flags, root).read_text())

    def test_starts_the_program_that_was_installed(self):
        self.check_paths(self.root, "/usr/lib/systemd/system/rnicd@.service", "/usr/bin/rnicd", "/etc/rnicd/rnicd.flags")

    def test_starts_the_program_beneath_another_prefix(self):
        with tempfile.TemporaryDirectory() as folder:
            install(folder, "/opt/rnicd")
            self.check_paths(Path(folder), "/opt/rnicd/lib/systemd/system/rnicd@.service", "/opt/rnicd/bin/rnicd",
                             "/opt/rnicd/etc/rnicd/rnicd.flags")

    def test_is_understood(self):
        text = self.below("/usr/lib/systemd/system/rnicd@.service").read_text()
        with tempfile.TemporaryDirectory() as folder:
            unit = Path(folder, "rnicd@a.service")
            unit.write_text(text.replace("=/usr/bin/rnicd", f"={self.below('/usr/bin/rnicd')}"))
            done = run("systemd-analyze", "verify", "--man=no", unit)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_names_a_manual_page_that_exists(self):
        text = self.below("/usr/lib/systemd/system/rnicd@.service").read_text()
        name, section = re.search(r"(?m)^Documentation=man:(\w+)\((\d)\)$", text).groups()
        self.assertTrue(self.below(f"/usr/share/man/man{section}/{name}.{section}").is_file())


class UserAndDirectories(Installed):
    def test_have_owner_and_mode(self):
        done = run("systemd-sysusers", f"--root={self.root}", "rnicd.conf")
        self.assertEqual(done.returncode, 0, done.stderr)
        user = re.search(r"(?m)^rnicd:[^:]*:(\d+):(\d+):.*:/nonexistent:/usr/sbin/nologin$",
                         self.below("/etc/passwd").read_text())
        owner = (int(user[1]), int(user[2]))
        if os.geteuid() != 0:
            # Only root can change the owner of directories; for other users it stays the same.
            conf = self.below("/usr/lib/tmpfiles.d/rnicd.conf")
            conf.write_text(conf.read_text().replace("rnicd rnicd -", "- - -"))
            owner = (os.geteuid(), os.getegid())
        done = run("systemd-tmpfiles", f"--root={self.root}", "--create", "rnicd.conf")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for path, mode in (("/run/rnicd", 0o755), ("/run/rnicd-admin", 0o700), ("/run/rnicd-doors", 0o700),
                           ("/run/rnicd-handover", 0o700)):
            made = self.below(path).stat()
            self.assertEqual((made.st_uid, made.st_gid, made.st_mode & 0o7777), (*owner, mode), path)


class OtherFiles(Installed):
    def test_flags_of_the_operator_stay(self):
        with tempfile.TemporaryDirectory() as folder:
            install(folder, "/usr")
            flags = self.below("/etc/rnicd/rnicd.flags", Path(folder))
            flags.write_text("--provider=soft\n")
            install(folder, "/usr")
            self.assertEqual(flags.read_text(), "--provider=soft\n")

    def test_bash_completes_rnicctl(self):
        script = self.below("/usr/share/bash-completion/completions/rnicctl")
        done = run("bash", "-c", f"source {script} && complete -p rnicctl")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_manual_pages_are_without_mistakes(self):
        pages = sorted((ARGUMENTS.source / "deploy/man").iterdir())
        self.assertEqual(len(pages), 3)
        for page in pages:
            done = run("groff", "-man", "-ww", "-z", "-Tutf8", page)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)

    def test_manual_pages_name_what_the_programs_have(self):
        for program, page in (("rnicd", "man8/rnicd.8"), ("rnicctl", "man1/rnicctl.1"),
                              ("rnicd-device-plugin", "man8/rnicd-device-plugin.8")):
            help_text = run(self.below(f"/usr/bin/{program}"), "--help").stdout
            text = self.below(f"/usr/share/man/{page}").read_text().replace("\\-", "-")
            named = set(re.findall(r"--[a-z][a-z_-]+[a-z]", text))
            # Flags of abseil, of the completion's caller, of commands.
            for option in named - {"--flagfile", "--help", "--size", "--wait"}:
                self.assertIn(f"{option} ", help_text.replace("\n", " \n"), f"{page}: {option}")
            self.assertGreater(len(named), 3)

    def test_what_a_monitoring_needs_is_there(self):
        for name in ("prometheus/rnicd.rules.yaml", "grafana/dashboard.json", "policy.example.textproto"):
            self.assertTrue(self.below(f"/usr/share/rnicd/{name}").is_file(), name)

    def test_documents_send_people_to_documents_that_are_there(self):
        folder = self.below("/usr/share/doc/rnicd/docs")
        missing = [f"{page.name}: {target}" for page in folder.glob("*.md")
                   for target in re.findall(r"\]\(((?:runbooks/)?[\w-]+\.md)", page.read_text())
                   if not (folder / target).is_file()]
        self.assertEqual(missing, [])


class ThePackages(Installed):
    def test_name_every_file_of_etc_as_configuration(self):
        listed = (ARGUMENTS.source / "deploy/debian/conffiles").read_text().split()
        with tempfile.TemporaryDirectory() as folder:
            install(folder, "/usr")
            installed = [f"/{path.relative_to(folder)}" for path in Path(folder, "etc").rglob("*") if path.is_file()]
            self.assertEqual(listed, sorted(installed))

    def test_have_a_changelog_for_this_version(self):
        first = (ARGUMENTS.source / "deploy/debian/changelog").read_text().splitlines()[0]
        self.assertRegex(first, rf"^rnicd \({re.escape(ARGUMENTS.version)}-1\) ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("--source", "--build", "--cmake"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--version", required=True)
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[__file__, *rest], verbosity=2)
