"""live_page.py finds mistakes in a page.

usage: live_page_test.py
"""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "deploy"))

import live_page
import observability_sources as sources

PAGE = """\
# HELP rnicd_sessions Sessions.
# TYPE rnicd_sessions gauge
rnicd_sessions{tenant="a {} \\"b\\""} 2
# HELP rnicd_wait_seconds Time.
# TYPE rnicd_wait_seconds histogram
rnicd_wait_seconds_bucket{le="+Inf"} 1
rnicd_wait_seconds_sum 0.5
rnicd_wait_seconds_count 1
"""


class Metric:
    def __init__(self, name, kind, *labels):
        self.name, self.kind, self.labels = name, kind, labels


DECLARED = [Metric("rnicd_sessions", "gauge", "tenant"), Metric("rnicd_wait_seconds", "histogram")]


class Label:
    def __init__(self, name, holds, bound="fixed set"):
        self.name, self.holds, self.bound = name, holds, bound


class AValue(unittest.TestCase):
    def findings(self, *labels):
        found = []
        page = 'refused_total{reason="rate",method="Service.Call"} 1\n'
        with tempfile.TemporaryDirectory() as name:
            (Path(name) / "docs").mkdir()
            (Path(name) / "docs/RPCS.md").write_text("## Service\n### Call\n")
            live_page.check_values(page, labels, Path(name), found.append)
        return found

    def test_that_the_text_names_is_no_finding(self):
        self.assertEqual(self.findings(Label("reason", "One of rate, silent.")), [])

    def test_that_the_named_document_has_is_no_finding(self):
        self.assertEqual(self.findings(Label("method", "A method of docs/RPCS.md.")), [])

    def test_that_nothing_names_is_found(self):
        self.assertIn('reason="rate"', self.findings(Label("reason", "One of rates, silent."))[0])

    def test_of_a_label_without_a_fixed_set_is_not_looked_for(self):
        self.assertEqual(self.findings(Label("reason", "Any.", "--metrics_max_tenants")), [])


class APage(unittest.TestCase):
    def findings(self, page=PAGE, metrics=None, absent=()):
        found = []
        live_page.check(page, metrics or DECLARED, absent, found.append)
        return found

    def test_that_is_right_has_no_finding(self):
        self.assertEqual(self.findings(), [])

    def test_without_a_declared_metric_is_found(self):
        self.assertEqual(self.findings(metrics=[*DECLARED, Metric("rnicd_port_state", "gauge")]),
                         ["rnicd_port_state is not on the page"])

    def test_may_lack_what_is_listed(self):
        self.assertEqual(self.findings(metrics=[*DECLARED, Metric("rnicd_port_state", "gauge")],
                                       absent=["rnicd_port_state"]), [])

    def test_must_lack_what_is_listed(self):
        self.assertIn("rnicd_sessions is on the page: delete", self.findings(absent=["rnicd_sessions"])[0])

    def test_with_an_undeclared_metric_is_found(self):
        self.assertEqual(self.findings(metrics=DECLARED[1:]), ["rnicd_sessions is on the page, and not in the catalogue"])

    def test_with_another_type_is_found(self):
        self.assertIn("rnicd_sessions is a gauge on the page, and a counter in the catalogue",
                      self.findings(metrics=[Metric("rnicd_sessions", "counter", "tenant"), DECLARED[1]]))

    def test_with_other_labels_is_found(self):
        self.assertIn("should have ['adapter']",
                      self.findings(metrics=[Metric("rnicd_sessions", "gauge", "adapter"), DECLARED[1]])[0])

    def test_with_a_histogram_without_buckets_is_found(self):
        page = "".join(line for line in PAGE.splitlines(True) if "_bucket" not in line)
        self.assertIn("rnicd_wait_seconds_bucket has no sample on the page", self.findings(page))

    def test_that_promtool_refuses_is_found(self):
        page = PAGE.replace("# HELP rnicd_sessions Sessions.\n", "")
        self.assertIn("promtool check metrics", self.findings(page)[0])


class Lists(unittest.TestCase):
    def test_have_a_reason_on_each_line(self):
        for name in ("may_be_empty.txt", "not_on_the_page.txt"):
            self.assertTrue(all(sources.reasons(Path(__file__).with_name(name)).values()))


if __name__ == "__main__":
    unittest.main()
