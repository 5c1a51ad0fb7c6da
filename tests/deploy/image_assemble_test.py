"""Unit tests of deploy/image: libraries and packages. scripts/container-test tests a real image.

usage: image_assemble_test.py --source REPOSITORY
"""

import argparse
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
SOURCE = Path(__file__).resolve().parents[2]
LDD = """\
\tlinux-vdso.so.1 (0x00007ffd0)
\tlibfmt.so.9 => /lib/x86_64-linux-gnu/libfmt.so.9 (0x00007f0a)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f1c)
"""


class Libraries(unittest.TestCase):
    def test_are_what_ldd_tells(self):
        self.assertEqual(closure.parse_ldd(LDD), ["/lib/x86_64-linux-gnu/libfmt.so.9", "/lib64/ld-linux-x86-64.so.2"])

    def test_that_are_missing_are_an_error(self):
        with self.assertRaisesRegex(closure.Missing, "libgone"):
            closure.parse_ldd(LDD + "\tlibgone.so.1 => not found\n")

    def test_come_with_what_their_links_lead_to(self):
        with tempfile.TemporaryDirectory() as folder:
            real = Path(folder).resolve()
            (real / "libx.so.1.2").touch()
            (real / "libx.so.1").symlink_to("libx.so.1.2")
            self.assertEqual(list(closure.with_targets(f"{real}/libx.so.1")),
                             [f"{real}/libx.so.1", f"{real}/libx.so.1.2"])

    def test_hold_the_drivers_of_the_cards(self):
        self.assertTrue([path for path in closure.needed_files(["/bin/true"]) if "/libibverbs/libmlx5" in path])


class APackage(unittest.TestCase):
    FACTS = {"Package": "libc6", "Version": "1:2.36-9+deb12u14", "Architecture": "amd64",
             "source:Package": "glibc", "source:Version": "2.36-9+deb12u14"}

    def test_has_an_address_without_plus_signs(self):
        self.assertEqual(packages.purl(self.FACTS),
                         "pkg:deb/debian/libc6@1%3A2.36-9%2Bdeb12u14?arch=amd64&distro=debian-12")

    def test_owns_a_file_that_dpkg_knows_by_its_old_name(self):
        self.assertEqual(packages.owners([closure.unfolded("/lib64/ld-linux-x86-64.so.2")]), {"libc6"})

    def test_is_asked_for_every_file(self):
        with self.assertRaisesRegex(packages.Unknown, "of-no-package"):
            packages.owners(["/bin/true", "/usr/lib/of-no-package.so"])

    def test_stands_in_the_bill_once_whatever_the_order(self):
        other = {**self.FACTS, "Package": "liba1"}
        bills = [packages.bill("1.0", order, 0) for order in ([self.FACTS, other], [other, self.FACTS])]
        self.assertEqual(bills[0], bills[1])
        self.assertEqual([part["name"] for part in bills[0]["components"]], ["liba1", "libc6"])
        self.assertEqual(bills[0]["metadata"]["timestamp"], "1970-01-01T00:00:00Z")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, default=SOURCE)
    arguments, rest = parser.parse_known_args()
    sys.path.insert(0, str(arguments.source / "deploy/image"))
    import closure
    import packages
    unittest.main(argv=[__file__, *rest], verbosity=2)
