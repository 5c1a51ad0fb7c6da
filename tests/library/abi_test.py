"""Programs that were compiled with the last version of rnicd.h work with this one: what abidiff finds between them.

The last version is the header as it was when RNICD_VERSION_* changed last; from version 1 on, that one too keeps what
was before it, unless the first number changed. All are compiled as libraries of empty functions, so that the types are
the header's, and not those of the classes behind its handles.

usage: abi_test.py --source REPOSITORY --version VERSION
"""

import argparse
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True

SOURCE = VERSION = None
HEADER = "client/c/rnicd.h"
BREAKS = """rnicd.h breaks programs that were compiled with the last version of it. Restore what is listed, or raise
RNICD_VERSION_MAJOR, the library's SOVERSION and the name in rnicd.map; before the first release any number of the
version."""
# A struct that begins with its size may grow.
MAY_GROW = "[suppress_type]\n  type_kind = struct\n  name = {}\n  has_data_member_inserted_at = end\n"


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120, check=False)


def defines(header):
    return dict(re.findall(r"(?m)^#define (RNICD_\w+) (0x\w+|\d+)", header))


def major(header):
    return defines(header)["RNICD_VERSION_MAJOR"]


def library_of(header, folder):
    """A shared object with the header's functions, and a variable of each enum, whose values only comments name."""
    sys.path.insert(0, str(SOURCE / "scripts"))
    from pages import c_manual  # pylint: disable=import-outside-toplevel

    folder.mkdir()
    (folder / "rnicd.h").write_text(header)
    declarations = "\n".join(other.text for other in c_manual.parse(header)[1] if other.functions)
    prototypes = re.sub(r"(?ms)^(?:struct|enum) \w+ \{.*?^\};\n|^#define.*?\n", "", declarations)
    bodies = prototypes.replace(");", ") { return 0; }") + "\n"
    enums = "".join(f"enum {name} rnicd_abi_{name};\n" for name in re.findall(r"(?m)^enum (\w+) \{", header))
    (folder / "library.c").write_text(f'#include "rnicd.h"\n{bodies}{enums}')
    made = run("cc", "-std=c99", "-w", "-g", "-fPIC", "-shared", "-o", folder / "library.so", folder / "library.c")
    if made.returncode != 0:
        raise AssertionError(made.stderr)
    return folder / "library.so"


def differences(old, new):
    """What breaks programs; empty if nothing does, or if the versions promise nothing to each other."""
    if major(old) != major(new):
        return ""
    before, after = defines(old), defines(new)
    changed = [f"{name} {value}" for name, value in before.items()
               if not name.startswith("RNICD_VERSION_") and after.get(name) != value]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        growing = re.findall(r"struct (\w+) \{\n(?:  //[^\n]*\n)*  size_t size;", old)
        (folder / "may_grow").write_text("".join(MAY_GROW.format(name) for name in growing))
        done = run("abidiff", "--no-added-syms", "--suppressions", folder / "may_grow",
                   library_of(old, folder / "old"), library_of(new, folder / "new"))
    return "\n".join(changed) + (done.stdout + done.stderr if done.returncode else "")


def git(*arguments):
    return run("git", "-C", SOURCE, "-c", f"safe.directory={SOURCE}", *arguments)


def last_versions():
    """The header of the commit that changed the version last, and of the one before; None where there is none."""
    commit = git("log", "-1", "--format=%H", "-G^#define RNICD_VERSION_", "--", HEADER).stdout.strip()
    for name in (commit, f"{commit}^"):
        shown = git("show", f"{name}:{HEADER}")
        yield shown.stdout if commit and shown.returncode == 0 else None


class Interface(unittest.TestCase):
    def test_keeps_what_the_last_version_has(self):
        last, before = last_versions()
        if last is None:
            self.skipTest("there is no history of rnicd.h here")
        self.maxDiff = None
        self.assertEqual(differences(last, (SOURCE / HEADER).read_text()), "", BREAKS)
        if before is not None and major(last) != "0":
            self.assertEqual(differences(before, last), "", BREAKS)

    def test_has_the_version_of_the_project(self):
        found = defines((SOURCE / HEADER).read_text())
        numbers = [found[f"RNICD_VERSION_{part}"] for part in ("MAJOR", "MINOR", "PATCH")]
        self.assertEqual(".".join(numbers), VERSION)


class Comparison(unittest.TestCase):
    def setUp(self):
        self.header = (SOURCE / HEADER).read_text()

    def changed(self, old, new):
        self.assertEqual(self.header.count(old), 1, old)
        return differences(self.header, self.header.replace(old, new))

    def test_finds_a_function_that_is_gone(self):
        self.assertIn("rnicd_version", self.changed("const char* rnicd_version(void);\n", ""))

    def test_finds_a_parameter_of_another_type(self):
        self.assertIn("rnicd_create_cq", self.changed("rnicd_create_cq(struct rnicd_session* session, uint32_t depth",
                                                      "rnicd_create_cq(struct rnicd_session* session, uint64_t depth"))

    def test_finds_a_member_that_moved(self):
        self.assertIn("rnicd_sge", self.changed("  uint32_t length;\n  // A local token, or the privileged token.\n"
                                                "  uint32_t token;\n", "  uint32_t token;\n  uint32_t length;\n"))

    def test_finds_another_number(self):
        self.assertIn("RNICD_MR_READ_SINK", self.changed("RNICD_MR_READ_SINK 0x8u", "RNICD_MR_READ_SINK 0x10u"))
        self.assertIn("RNICD_QP_ERROR", self.changed("RNICD_QP_ERROR = 3", "RNICD_QP_ERROR = 4"))

    def test_finds_a_struct_without_size_that_grew(self):
        self.assertNotEqual(self.changed("  // An enum rnicd_operation.\n  uint32_t operation;\n",
                                         "  uint32_t operation;\n  uint64_t more;\n"), "")

    def test_lets_a_struct_with_size_grow(self):
        self.assertEqual(self.changed("  // 1 if the kernel may back them by transparent huge pages.\n"
                                      "  uint32_t transparent_huge_pages;\n",
                                      "  uint32_t transparent_huge_pages;\n  uint64_t more;\n"), "")

    def test_lets_functions_and_reasons_be_added(self):
        self.assertEqual(self.changed("const char* rnicd_version(void);\n",
                                      "const char* rnicd_version(void);\nint rnicd_more(void);\n"), "")
        self.assertEqual(self.changed("RNICD_REASON_REQUEST_OUT_OF_STATE = 187",
                                      "RNICD_REASON_REQUEST_OUT_OF_STATE = 187,\n  RNICD_REASON_MORE = 999"), "")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--version", required=True)
    arguments, others = parser.parse_known_args()
    SOURCE, VERSION = arguments.source, arguments.version
    unittest.main(argv=[sys.argv[0], *others])
