"""docs/TROUBLESHOOTING.md has advice for every reason of base/error_reasons.inc, once, and for nothing else."""

import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True
_REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(_REPO / "scripts"))

from pages.errors_page import parse_reasons

_ROW = re.compile(r"^\| `([A-Z0-9_]+)` \|(.*)\|$", re.MULTILINE)
# Words in backticks that look like a reason and are none; rows of gRPC codes have symptoms instead of reasons.
_LOOKS_LIKE_ONE = re.compile(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`")
_NO_REASONS = {"DEADLINE_EXCEEDED", "RNICD_GRANT", "SOCK_SEQPACKET", "MFD_ALLOW_SEALING"}
_NO_ROWS = {"UNAVAILABLE", "DEADLINE_EXCEEDED"}


def problems(page, reasons):
    """One sentence for each thing that is wrong with the page."""
    rows = [(name, rest) for name, rest in _ROW.findall(page) if name not in _NO_ROWS]
    names = [name for name, _ in rows]
    for reason in reasons:
        if names.count(reason) != 1:
            yield f"{reason} has {names.count(reason)} rows"
    for name in sorted({*names, *_LOOKS_LIKE_ONE.findall(page)} - set(reasons) - _NO_REASONS):
        yield f"{name} is no reason"
    for name in sorted(_NO_REASONS - set(_LOOKS_LIKE_ONE.findall(page))):
        yield f"{name} is not on the page and needs no exception"
    for name, rest in rows:
        if not all(cell.strip() for cell in rest.split("|")):
            yield f"{name} has an empty cell"


class TheRepository(unittest.TestCase):
    def test_has_advice_for_every_reason(self):
        sections = parse_reasons((_REPO / "base/error_reasons.inc").read_text())
        reasons = [row[0] for _, rows in sections for row in rows]
        self.assertGreater(len(reasons), 100)
        self.assertEqual(list(problems((_REPO / "docs/TROUBLESHOOTING.md").read_text(), reasons)), [])


class PlantedMistakes(unittest.TestCase):
    GOOD = "| `LENGTH_ZERO` | why | do |\n" + " ".join(f"`{name}`" for name in sorted(_NO_REASONS))

    def assert_found(self, page, problem, reasons=("LENGTH_ZERO",)):
        self.assertEqual(list(problems(page, reasons)), [problem])

    def test_a_good_page_has_none(self):
        self.assertEqual(list(problems(self.GOOD, ["LENGTH_ZERO"])), [])

    def test_a_missing_reason_is_found(self):
        self.assert_found(self.GOOD, "MDL_CHAIN_GAP has 0 rows", ("LENGTH_ZERO", "MDL_CHAIN_GAP"))

    def test_a_reason_that_is_only_mentioned_is_found(self):
        self.assert_found(self.GOOD + "\n`MDL_CHAIN_GAP`", "MDL_CHAIN_GAP has 0 rows", ("LENGTH_ZERO", "MDL_CHAIN_GAP"))

    def test_two_rows_are_found(self):
        self.assert_found(self.GOOD + "\n| `LENGTH_ZERO` | why | do |", "LENGTH_ZERO has 2 rows")

    def test_an_unknown_reason_is_found(self):
        self.assert_found(self.GOOD + "\n| `LENGTH_ONE` | why | do |", "LENGTH_ONE is no reason")

    def test_an_unknown_reason_in_a_sentence_is_found(self):
        self.assert_found(self.GOOD + "\nSee `LENGTH_ONE`.", "LENGTH_ONE is no reason")

    def test_an_exception_that_is_not_needed_is_found(self):
        self.assert_found(self.GOOD.replace("`RNICD_GRANT`", ""),
                          "RNICD_GRANT is not on the page and needs no exception")

    def test_a_row_without_advice_is_found(self):
        self.assert_found(self.GOOD.replace("| do |", "|  |"), "LENGTH_ZERO has an empty cell")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
