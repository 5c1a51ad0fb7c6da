"""What a program gets that loads librnicd.so: read from the file, without running it.

usage: shared_object_test.py --library FILE
"""

import argparse
import re
import subprocess
import sys
import unittest

LIBRARY = ""

# Besides the C library. Each is one more thing that a host program must have in the version that librnicd wants.
NEEDED = {
    "libnghttp2.so.14", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
}
# What changes the process for everybody in it.
NEVER_CALLED = {
    "signal", "sigaction", "setenv", "putenv", "unsetenv", "atexit", "on_exit", "pthread_atfork", "mallopt",
    "setlocale", "setrlimit", "chdir", "umask", "exit",
}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class SharedObject(unittest.TestCase):
    def test_exports_only_the_interface_at_its_version(self):
        symbols = [line.split()[-1] for line in run("nm", "--dynamic", "--defined-only", LIBRARY).splitlines()]
        # The version itself is an absolute symbol in what some linkers write.
        foreign = [name for name in symbols if not re.fullmatch(r"rnicd_\w+@@RNICD_0|RNICD_0(@@RNICD_0)?", name)]
        self.assertIn("rnicd_open_session@@RNICD_0", symbols)
        self.assertEqual(foreign, [])

    def test_needs_no_other_libraries(self):
        dynamic = run("readelf", "--dynamic", "--wide", LIBRARY)
        self.assertLessEqual(set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)), NEEDED)
        self.assertEqual(re.findall(r"\(SONAME\).*\[(.*)\]", dynamic), ["librnicd.so.0"])
        self.assertNotRegex(dynamic, r"RPATH|RUNPATH")

    def test_can_be_mapped_without_changing_its_code(self):
        self.assertNotIn("TEXTREL", run("readelf", "--dynamic", LIBRARY))
        stack = re.search(r"GNU_STACK.* (R\w*) ", run("readelf", "--program-headers", "--wide", LIBRARY))
        self.assertEqual(stack.group(1), "RW")

    # A symbol of the kind STB_GNU_UNIQUE keeps a library loaded for ever.
    def test_can_be_unloaded(self):
        self.assertNotIn("UNIQUE", run("readelf", "--dyn-syms", "--wide", LIBRARY))
        self.assertNotIn("NODELETE", run("readelf", "--dynamic", LIBRARY))

    def test_does_not_change_the_process(self):
        undefined = run("nm", "--dynamic", "--undefined-only", "--format=posix", LIBRARY).splitlines()
        self.assertEqual({line.split()[0].split("@")[0] for line in undefined} & NEVER_CALLED, set())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    arguments, others = parser.parse_known_args()
    LIBRARY = arguments.library
    unittest.main(argv=[sys.argv[0], *others])
