"""Proves that docs/ERRORS.md cannot be made without advice for every reason, or with names that are no reasons."""

import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
_REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(_REPO / "scripts"))

from pages import errors_page
from pages.problem import Problem

_GOOD = '// Limits.\nRNICD_REASON(QUOTA_RINGS, 41, kNotFound, kNotFound, "too many",\n             "close one")\n'


class TheRepository(unittest.TestCase):
    def test_has_advice_for_every_reason(self):
        page = errors_page.make(_REPO)[_REPO / "docs/ERRORS.md"]
        sections = errors_page.parse_reasons((_REPO / "base/error_reasons.inc").read_text())
        names = [reason.name for _, reasons in sections for reason in reasons]
        self.assertGreater(len(names), 100)
        self.assertEqual([name for name in names if page.count(f"\n| `{name}`<br>") != 1], [])

    def test_names_the_flags_of_limits(self):
        page = errors_page.make(_REPO)[_REPO / "docs/ERRORS.md"]
        self.assertTrue("`--max_sessions`, `--max_sessions_per_uid` |" in page)


class PlantedMistakes(unittest.TestCase):
    def assert_found(self, problem, check, *arguments):
        with self.assertRaisesRegex(Problem, problem):
            check(*arguments)

    def test_good_rows_are_read(self):
        [(title, [reason])] = errors_page.parse_reasons(_GOOD)
        self.assertEqual((title, reason.sentence, reason.advice), ("Limits", "too many", "close one"))

    def test_a_reason_without_advice_is_found(self):
        self.assert_found("has no advice", errors_page.parse_reasons, _GOOD.replace("close one", " "))
        self.assert_found("cannot read", errors_page.parse_reasons, _GOOD.replace(',\n             "close one"', ""))

    def test_a_reason_below_no_heading_is_found(self):
        self.assert_found("below no heading", errors_page.parse_reasons, _GOOD.replace("// Limits.\n", ""))

    def test_an_unknown_reason_in_a_sentence_is_found(self):
        exceptions = " ".join(f"`{name}`" for name in errors_page.NO_REASONS)
        errors_page.check_names(f"{exceptions} `QUOTA_RINGS`", ["QUOTA_RINGS"])
        self.assert_found("QUOTA_RING is no reason", errors_page.check_names, f"{exceptions} `QUOTA_RING`", ["QUOTA_RINGS"])

    def test_an_exception_that_is_not_needed_is_found(self):
        self.assert_found("does not name", errors_page.check_names, "`QUOTA_RINGS`", ["QUOTA_RINGS"])

    def test_flags_follow_the_name_of_the_limit(self):
        [(_, [reason])] = errors_page.parse_reasons(_GOOD)
        flags = ["max_rings_per_session", "max_ringside", "max_sessions"]
        self.assertEqual(errors_page.advice(reason, flags), "close one. `--max_rings_per_session`")
        self.assertEqual(errors_page.advice(reason._replace(name="RINGS"), flags), "close one")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
