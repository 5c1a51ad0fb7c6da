"""Checks that the commands and flags in the pages exist, and runs those that commands.txt says it runs.

usage: guides_test.py --source REPOSITORY --build FOLDER --rnicctl PROGRAM
"""

import argparse
import contextlib
import fnmatch
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

_GUIDES = ("docs/OPERATING.md", "docs/ERRORS.md", "docs/WORKLOADS.md", "client/python/README.md",
           "examples/python/README.md", "deploy/kubernetes/README.md")
_FLAG_FILES = ("daemon/app/config/config.cc", "daemon/app/config/verbs_flags_linux.cc",
               "daemon/app/config/system_flags_linux.cc", "daemon/app/config/system_flags_windows.cc",
               "daemon/app/config/networkdirect_flags_windows.cc", "client/kubernetes/config.cc")
_PATHS_OF_RNICD = re.compile(r"(?<![\w/.])(?:/usr/lib|/usr/share|/etc|/run|/var/log)/[\w./-]*rnicd[\w./-]*")
_ROWS = "tests/examples/commands.txt"
_CTESTS = ("tests/CMakeLists.txt", "tests/deploy/CMakeLists.txt", "tests/examples/CMakeLists.txt", "tests/tiers.cmake")
_SCRIPT_CALL = re.compile(r"(?<![\w/.-])(scripts/[\w-]+(?![\w/.])|tests/vm/guest)((?: [^|&;)]*)?)")
_RUN_TIMEOUT_S = 120
given = argparse.Namespace()


def blocks(text):
    """The indented blocks of a page, each as its lines."""
    found, lines, free = [], [], True
    for line in re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL).split("\n") + [""]:
        if line.startswith("    ") and line.strip() and (lines or free):
            lines.append(line.strip())
        elif lines:
            found.append(lines)
            lines = []
        free = not line.strip()
    return found


def read_rows(text):
    """(page, beginning, what) of each row of commands.txt."""
    return [tuple(cell.strip() for cell in line.split("|", 2))
            for line in text.splitlines() if line.strip() and not line.startswith("#")]


def row_of(page, block, rows):
    """The number of the row that a block has, or None."""
    return next((number for number, (pages, begins, _) in enumerate(rows)
                 if fnmatch.fnmatchcase(page, pages) and (begins == "*" or block[0].startswith(begins))), None)


def calls_of_scripts(text):
    """(script, its options) of each call of a script in code."""
    code = re.findall(r"`([^`\n]+)`", text) + re.findall(r"^ {4}(.+)$", text, flags=re.MULTILINE)
    for line in code:
        for script, rest in _SCRIPT_CALL.findall(line.partition(" #")[0]):
            yield script, re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", rest.partition(" -- ")[0])


def unknown_flags(page, text, known):
    """Flags of the daemon and of the device plugin have an underscore, and those of other programs do not."""
    for flag in sorted(set(re.findall(r"--([a-z]+(?:_[a-z]+)+)\b", text)) - known):
        yield f"{page}: rnicd has no --{flag}"


def invocations(text):
    """(command, its options) of each rnicctl call in code."""
    code = re.findall(r"`([^`\n]+)`", text) + re.findall(r"^ {4}(.+)$", text, flags=re.MULTILINE)
    for line in code:
        line = re.sub(r"--target [\w ]+", "", line)
        for call in re.findall(r"(?<!-)\brnicctl ([a-z][^|&;)]*)", line.partition(" #")[0]):
            yield call.split()[0], re.findall(r"--[a-z-]+", call)


class Guides(unittest.TestCase):
    def text(self, page):
        return (given.source / page).read_text()

    def test_name_flags_that_daemon_and_plugin_have(self):
        known = {flag for file in _FLAG_FILES
                 for flag in re.findall(r"ABSL_FLAG\(\s*[\w:]+,\s*(\w+)", self.text(file))}
        self.assertIn("socket_dir", known)
        self.assertEqual([wrong for page in _GUIDES for wrong in unknown_flags(page, self.text(page), known)], [])

    def pages(self):
        done = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z", "*.md"], cwd=given.source,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:  # An unpacked archive.
            return sorted(str(path.relative_to(given.source)) for path in given.source.rglob("*.md")
                          if not {"build", ".cache"} & set(path.relative_to(given.source).parts))
        return sorted(filter(None, done.stdout.split("\0")))

    def test_name_commands_that_rnicctl_has(self):
        asked = 0
        for page in self.pages():
            for command, options in invocations(self.text(page)):
                done = subprocess.run([given.rnicctl, command, "--help"], capture_output=True, text=True, timeout=60,
                                      check=False)
                self.assertEqual(done.returncode, 0, f"{page}: rnicctl {command}")
                for option in options:
                    self.assertRegex(done.stdout, rf"(?m)^  {option}\b", f"{page}: rnicctl {command}")
                asked += 1
        self.assertGreater(asked, 60)

    def test_name_options_that_scripts_have(self):
        asked = 0
        for page in self.pages():
            for script, options in calls_of_scripts(self.text(page)):
                for option in options:
                    self.assertRegex(self.text(script), rf"{option}\b", f"{page}: {script}")
                    asked += 1
        self.assertGreater(asked, 30)

    def test_have_a_row_of_what_runs_them(self):
        rows, used = read_rows(self.text(_ROWS)), set()
        for page in self.pages():
            for block in blocks(self.text(page)):
                row = row_of(page, block, rows)
                self.assertIsNotNone(row, f"{page}: {_ROWS} has no row for {block[0]!r}")
                used.add(row)
        self.assertEqual([row for number, row in enumerate(rows) if number not in used], [], "rows without a block")
        cmake = "".join(self.text(file) for file in _CTESTS)
        for _, _, what in rows:
            self.assertRegex(what, r"^(here|no commands|not run: .+|run by \w+: .+)$")
            for name in re.findall(r"^run by (\w+):", what):
                self.assertRegex(cmake, rf"\b{name}\b", what)

    def test_work_as_they_are(self):
        rows = read_rows(self.text(_ROWS))
        here = [block for page in self.pages() for block in blocks(self.text(page))
                if rows[row_of(page, block, rows)][2] == "here"]
        self.assertNotEqual(here, [])
        for block in here:
            with self.subTest(block[0]), tempfile.TemporaryDirectory() as folder:
                self.run_block(block, folder)

    def run_block(self, block, folder):
        """A program in the background is waited for until it serves, as the page asks of people."""
        serves = f" --metrics_address= & until [ -S {folder}/s/rpc.sock ]; do sleep 0.1; done"
        script = "\n".join(re.sub(r" &( .*)?$", serves, line) for line in block)
        script = script.replace("/tmp/rnicd", f"{folder}/s").replace("build/release", str(given.build))
        with open(f"{folder}/output", "w+", encoding="utf-8") as output:
            child = subprocess.Popen(["bash", "-euc", script], cwd=given.source, stdout=output,
                                     stderr=subprocess.STDOUT, start_new_session=True)
            try:
                status = child.wait(timeout=_RUN_TIMEOUT_S)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)  # The program in the background.
            output.seek(0)
            self.assertEqual(status, 0, output.read())

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

    def test_blocks_end_at_an_empty_line_and_are_neither_fenced_nor_a_paragraph(self):
        text = ("So\n    is a paragraph.\n\n    a\n      b\n\n    c\n\n```sh\n    d\n```\n"
                "- item\n\n      e\n")
        self.assertEqual(blocks(text), [["a", "b"], ["c"], ["e"]])

    def test_the_first_row_that_matches_counts(self):
        rows = read_rows("# no row\n\na/* | x y | here\na/* | * | not run: it needs a | b\n")
        found = [row_of(page, [block], rows) for page, block in (("a/b", "x y z"), ("a/b", "y"), ("b", "y"))]
        self.assertEqual(found, [0, 1, None])
        self.assertEqual(rows[1][2], "not run: it needs a | b")

    def test_options_of_scripts_are_found_in_code_only(self):
        text = "scripts/test --no\n`scripts/lint --fix`\n\n    tests/vm/guest --cpus 2 -- a --b; scripts/demo  # --c\n"
        self.assertEqual(list(calls_of_scripts(text)), [("scripts/lint", ["--fix"]), ("tests/vm/guest", ["--cpus"]),
                                                        ("scripts/demo", [])])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--source", "--build", "--rnicctl"):
        parser.add_argument(name, type=Path, required=True)
    parser.parse_args(namespace=given)
    unittest.main(argv=[sys.argv[0], "--verbose"])


if __name__ == "__main__":
    main()
