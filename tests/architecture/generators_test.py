"""Proves that the generators of pages find mistakes in their sources; scripts/generate --check finds stale pages."""

import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
_REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(_REPO / "scripts"))

from pages import conformance_page, errors_page, map_page, sequence_picture
from pages.problem import Problem

_GOOD = '// Limits.\nRNICD_REASON(QUOTA_RINGS, 41, kNotFound, kNotFound, "too many",\n             "close one")\n'


class Errors(unittest.TestCase):
    def test_has_advice_for_every_reason(self):
        page = errors_page.make(_REPO)[_REPO / "docs/ERRORS.md"]
        sections = errors_page.parse_reasons((_REPO / "base/error_reasons.inc").read_text())
        names = [reason.name for _, reasons in sections for reason in reasons]
        self.assertGreater(len(names), 100)
        self.assertEqual([name for name in names if page.count(f"\n| `{name}`<br>") != 1], [])

    def test_names_the_flags_of_limits(self):
        page = errors_page.make(_REPO)[_REPO / "docs/ERRORS.md"]
        [row] = [line for line in page.splitlines() if line.startswith("| `QUOTA_SESSIONS`")]
        self.assertIn("`--max_sessions`", row)


class PlantedReasons(unittest.TestCase):
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

    def test_a_flag_follows_the_name_of_the_limit(self):
        [(_, [reason])] = errors_page.parse_reasons(_GOOD)
        flags = ["max_rings", "max_ringside", "max_sessions"]
        self.assertEqual(errors_page.advice(reason, flags), "close one. `--max_rings`")
        self.assertEqual(errors_page.advice(reason._replace(name="RINGS"), flags), "close one")


class Map(unittest.TestCase):
    def test_takes_the_first_words_of_a_page(self):
        for text, words in (
            ("# x\n\nThe log. More.\n", "The log"),
            ("# x\n\nThe [wire](../w.md) (by gRPC): bytes\nin.\n\n- list\n", "The wire"),
            ("# x\n\n`x.h` is version 1.2 of\nthe wire; more\n", "`x.h` is version 1.2 of the wire"),
            ("# x\n\nOne file, linked into every program of the build, the daemon included, and more.\n",
             "One file, linked into every program of the build"),
        ):
            self.assertEqual(map_page.first_words("x/README.md", text), words)

    def test_a_page_without_a_sentence_is_found(self):
        for text in ("", "# x\n", "# x\n\n| a | b |\n", "# x\n\n- a list\n", "# x\n\n## y\n\nText.\n", "Text.\n",
                     "# x\n\n" + "word " * 30 + "\n"):
            with self.subTest(text), self.assertRaisesRegex(Problem, "x/README.md must begin"):
                map_page.first_words("x/README.md", text)


class Sequences(unittest.TestCase):
    GOOD = "title T\nparty a | A | x\nparty b | B | y\nband One\na -> b: go\nbegin k held\nb: work\nb => a: done\nend k\n"

    def draw(self, text):
        return sequence_picture.draw(sequence_picture.Sequence("x.sequence", text))

    def test_draws_each_text_once(self):
        picture = self.draw(self.GOOD)
        for text in ("One", "go", "held", "work", "done"):
            self.assertEqual(picture.count(f">{text}</text>"), 1, text)

    def test_lines_that_cannot_be_read_are_found(self):
        for line in ("nonsense", "a -> c: who", "c: who", "party d", "end other", "a -> a: self"):
            with self.subTest(line), self.assertRaisesRegex(Problem, r"x\.sequence:\d+: cannot read"):
                self.draw(self.GOOD + line + "\n")

    def test_texts_without_room_are_found(self):
        for text in (self.GOOD.replace("go", "go " * 60), self.GOOD.replace("held", "held " * 30),
                     self.GOOD + "b: " + "word " * 40, self.GOOD + "foot " + "word " * 60):
            with self.assertRaisesRegex(Problem, "no room for|pixels wide"):
                self.draw(text)


class Conformance(unittest.TestCase):
    def test_reads_back_what_it_wrote(self):
        titles = ["soft", "soft, rings", "verbs (rxe)", "verbs (rxe), rings"]
        for verdicts in (["pass"] * 4, ["-"] * 4, ["pass", "-", "pass", "-"], ["gap: a: b; c", "-", "pass, 1 of 2 tests", "-"],
                         ["pass", "-", "pass", "pass"]):
            by_title = dict(zip(titles, verdicts))
            self.assertEqual(conformance_page.verdicts_in(conformance_page.result_cell(by_title), titles), by_title)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
