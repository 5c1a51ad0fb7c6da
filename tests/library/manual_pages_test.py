"""The manual pages of the C interface, which are made from rnicd.h.

usage: manual_pages_test.py --library FILE --pages FOLDER
"""

import argparse
import re
import subprocess
import sys
import unittest
from pathlib import Path

ARGUMENTS = None


class ManualPages(unittest.TestCase):
    def setUp(self):
        self.pages = {page.name: page.read_text() for page in ARGUMENTS.pages.rglob("*.[37]")}

    def test_each_exported_function_has_one(self):
        symbols = subprocess.run(["nm", "--dynamic", "--defined-only", ARGUMENTS.library], check=True,
                                 capture_output=True, text=True).stdout
        functions = set(re.findall(r" T (rnicd_\w+)@@", symbols))
        self.assertEqual({f"{name}.3" for name in functions} | {"rnicd.7"}, set(self.pages))

    def test_overview_names_each_of_them(self):
        named = set(re.findall(r"(?m)^\.BR (rnicd_\w+) \(3\)$", self.pages["rnicd.7"]))
        self.assertEqual({f"{name}.3" for name in named} | {"rnicd.7"}, set(self.pages))

    def test_have_no_mistakes(self):
        for page in sorted(ARGUMENTS.pages.rglob("*.[37]")):
            done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", page], cwd=ARGUMENTS.pages, check=False,
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)

    def test_have_one_line_that_man_k_shows(self):
        for name, text in self.pages.items():
            if not text.startswith(".so "):
                self.assertRegex(text, r"(?m)^\.SH NAME\nrnicd\S*(, rnicd_\w+)* \\- \S.{8,}$", name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--pages", type=Path, required=True)
    ARGUMENTS, others = parser.parse_known_args()
    ARGUMENTS.pages = ARGUMENTS.pages.resolve()
    unittest.main(argv=[sys.argv[0], *others])
