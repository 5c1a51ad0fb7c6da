"""Checks that the commands and flags in the guides exist; tests/architecture checks links.

usage: guides_test.py --source REPOSITORY --rnicctl PROGRAM
"""

import argparse
import re
import subprocess
import sys
import unittest
from pathlib import Path

_GUIDES = ("docs/OPERATING.md", "docs/ERRORS.md", "docs/WORKLOADS.md", "client/python/README.md",
           "examples/python/README.md", "deploy/kubernetes/README.md")
_FLAG_FILES = ("daemon/app/config/config.cc", "daemon/app/config/verbs_flags_linux.cc",
               "daemon/app/config/system_flags_linux.cc", "daemon/app/config/system_flags_windows.cc",
               "daemon/app/config/networkdirect_flags_windows.cc", "client/kubernetes/config.cc")
_PATHS_OF_RNICD = re.compile(r"(?<![\w/.])(?:/usr/lib|/usr/share|/etc|/run|/var/log)/[\w./-]*rnicd[\w./-]*")
given = argparse.Namespace()


def unknown_flags(page, text, known):
    """Flags of the daemon and of the device plugin have an underscore, and those of other programs do not."""
    for flag in sorted(set(re.findall(r"--([a-z]+(?:_[a-z]+)+)\b", text)) - known):
        yield f"{page}: rnicd has no --{flag}"


def invocations(text):
    """(command, its options) of each rnicctl call in code."""
    code = re.findall(r"`([^`\n]+)`", text) + re.findall(r"^ {4}(.+)$", text, flags=re.MULTILINE)
    for line in code:
        for call in re.findall(r"(?<!-)\brnicctl ([a-z][^|&)]*)", line.partition(" #")[0]):
            yield call.split()[0], re.findall(r"--[a-z-]+", call)


class Guides(unittest.TestCase):
    def text(self, page):
        return (given.source / page).read_text()

    def test_name_flags_that_daemon_and_plugin_have(self):
        known = {flag for file in _FLAG_FILES
                 for flag in re.findall(r"ABSL_FLAG\(\s*[\w:]+,\s*(\w+)", self.text(file))}
        self.assertIn("socket_dir", known)
        self.assertEqual([wrong for page in _GUIDES for wrong in unknown_flags(page, self.text(page), known)], [])

    def test_name_commands_that_rnicctl_has(self):
        asked = 0
        for page in _GUIDES:
            for command, options in invocations(self.text(page)):
                done = subprocess.run([given.rnicctl, command, "--help"], capture_output=True, text=True, timeout=60,
                                      check=False)
                self.assertEqual(done.returncode, 0, f"{page}: rnicctl {command}")
                for option in options:
                    self.assertRegex(done.stdout, rf"(?m)^  {option}\b", f"{page}: rnicctl {command}")
                asked += 1
        self.assertGreater(asked, 20)

    def test_name_options_that_rnicctl_has_in_manifests(self):
        asked = 0
        for manifest in sorted((given.source / "deploy/kubernetes/examples").iterdir()):
            for arguments in re.findall(r"(?m)^ +args: \[(.+)\]$", manifest.read_text()):
                words = [word.strip().strip('"') for word in arguments.split(",")]
                done = subprocess.run([given.rnicctl, *words, "--help"], capture_output=True, text=True, timeout=60,
                                      check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), manifest.name)
                asked += 1
        self.assertGreaterEqual(asked, 3)

    def test_name_paths_that_deploy_uses(self):
        deploy = "".join(path.read_text() for folder in ("systemd", "debian", "man")
                         for path in sorted((given.source / "deploy" / folder).iterdir()) if path.is_file())
        own = {"/etc/logrotate.d/rnicd"}
        named = set(_PATHS_OF_RNICD.findall(self.text("docs/OPERATING.md"))) - own
        self.assertGreater(len(named), 8)
        self.assertEqual([path for path in sorted(named) if path.rstrip(".") not in deploy], [])


class PlantedMistakes(unittest.TestCase):
    def test_a_flag_that_does_not_exist_is_found(self):
        self.assertEqual(list(unknown_flags("p", "say `--max_sessions` and `--max_sesions`", {"max_sessions"})),
                         ["p: rnicd has no --max_sesions"])

    def test_commands_are_found_in_code_only(self):
        text = ("rnicctl is it. `rnicctl top`\n\n    A=$(rnicctl grant create --name x)  # rnicctl does\n"
                "    rnicctl a && rnicctl b\n")
        self.assertEqual(list(invocations(text)), [("top", []), ("grant", ["--name"]), ("a", []), ("b", [])])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--source", "--rnicctl"):
        parser.add_argument(name, type=Path, required=True)
    parser.parse_args(namespace=given)
    unittest.main(argv=[sys.argv[0], "--verbose"])


if __name__ == "__main__":
    main()
