"""observability_check.py finds planted mistakes, each in a copy of what the repository deploys.

usage: observability_check_test.py [--source REPOSITORY]
"""

import argparse
import json
import shutil
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True

import observability_expressions as expressions
from observability_check import Checker
from planted import SOURCE, PlantedCopy

PARTS = ("deploy/grafana", "deploy/prometheus", "docs/runbooks", "daemon/metrics", "scripts/pages")
RULES = "deploy/prometheus/rnicd.rules.yaml"
TESTS = "deploy/prometheus/rnicd.rules_test.yaml"
UNUSED = "deploy/grafana/unused.txt"


class Planted(PlantedCopy):
    parts = PARTS

    def edit_dashboard(self, change):
        path = self.repo / "deploy/grafana/dashboard.json"
        document = json.loads(path.read_text())
        change(next(panel for panel in document["panels"] if panel["title"] == "Sessions"), document)
        path.write_text(json.dumps(document))

    def findings(self, check):
        found = []
        getattr(Checker(self.repo, found.append), check)()
        return "\n".join(found)

    def assert_found(self, part, check="check_expressions"):
        self.assertIn(part, self.findings(check))


class TheRepository(Planted):
    def test_has_no_finding(self):
        self.assertEqual(self.findings("check_all"), "")


class Expressions(Planted):
    def set_expression(self, text):
        self.edit_dashboard(lambda panel, _: panel["targets"][0].update(expr=text))

    def test_with_an_unknown_metric_are_found(self):
        self.set_expression("sum(rnicd_sesions)")
        self.assert_found("panel Sessions A: no metric and no rule is called rnicd_sesions")

    def test_of_a_histogram_without_its_suffix_are_found(self):
        self.set_expression("rnicd_rpc_duration_seconds")
        self.assert_found("called rnicd_rpc_duration_seconds")

    def test_with_a_label_in_braces_that_the_metric_has_not_are_found(self):
        self.set_expression('rnicd_sessions{adapter="a"}')
        self.assert_found("rnicd_sessions has no label adapter")

    def test_grouped_by_a_label_that_the_metric_has_not_are_found(self):
        self.set_expression("sum by (tenant, cause) (rnicd_sessions)")
        self.assert_found("rnicd_sessions has no label cause")

    def test_joined_on_a_label_that_one_side_has_not_are_found(self):
        self.set_expression("rnicd_sessions * on (tenant) rnicd_tenants")
        self.assert_found("rnicd_tenants has no label tenant")

    def test_with_an_unknown_variable_are_found(self):
        self.set_expression("topk($tpon, rnicd_sessions)")
        self.assert_found("the variable $tpon is not known")

    def test_of_rules_are_looked_at(self):
        self.edit(RULES, "rnicd_adapter_healthy == 0", "rnicd_adapter_helthy == 0")
        self.assert_found("alert AdapterUnhealthy: no metric and no rule is called rnicd_adapter_helthy")

    def test_know_the_labels_that_a_rule_keeps(self):
        self.set_expression('instance_tenant_resource:rnicd_quota:ratio{tenant="a",adapter="b"}')
        self.assert_found("instance_tenant_resource:rnicd_quota:ratio has no label adapter")


class Unused(Planted):
    def test_metric_without_a_reason_is_found(self):
        (self.repo / UNUSED).write_text("")
        Checker(self.repo, lambda _: None)
        self.assertIn("process_virtual_memory_bytes is in no panel", self.after_expressions())

    def test_metric_that_is_used_is_found(self):
        self.edit(UNUSED, "process_virtual", "rnicd_sessions: because\nprocess_virtual")
        self.assertIn("unused.txt: rnicd_sessions is used", self.after_expressions())

    def test_metric_that_does_not_exist_is_found(self):
        self.edit(UNUSED, "process_virtual", "rnicd_gone: because\nprocess_virtual")
        self.assertIn("no metric is called rnicd_gone", self.after_expressions())

    def after_expressions(self):
        found = []
        checker = Checker(self.repo, found.append)
        checker.check_expressions()
        checker.check_unused()
        return "\n".join(found)


class Panels(Planted):
    def test_without_a_unit_are_found(self):
        self.edit_dashboard(lambda panel, _: panel["fieldConfig"]["defaults"].pop("unit"))
        self.assert_found("panel Sessions: it has not a unit", "check_panels")

    def test_without_a_text_for_nothing_are_found(self):
        self.edit_dashboard(lambda panel, _: panel["fieldConfig"]["defaults"].update(noValue=""))
        self.assert_found("panel Sessions: it has not a noValue", "check_panels")

    def test_without_a_description_are_found(self):
        self.edit_dashboard(lambda panel, _: panel.update(description=""))
        self.assert_found("panel Sessions: it has not a description", "check_panels")

    def test_with_an_unknown_label_in_a_legend_are_found(self):
        self.edit_dashboard(lambda panel, _: panel["targets"][0].update(legendFormat="{{cause}}"))
        self.assert_found("its legend names the label cause", "check_panels")

    def test_with_a_link_to_no_runbook_are_found(self):
        self.edit_dashboard(lambda panel, _: panel.update(links=[{"url": "https://rnicd.example/docs/runbooks/No.md"}]))
        self.assert_found("No.md is no file of docs/runbooks", "check_panels")

    def test_of_a_stale_dashboard_are_found(self):
        self.edit_dashboard(lambda panel, _: panel.update(title="Others"))
        self.assert_found("dashboard.json is stale", "check_generated")


class Rules(Planted):
    def test_of_a_stale_object_are_found(self):
        self.edit(RULES, "rnicd_adapter_healthy == 0", "rnicd_adapter_healthy < 1")
        self.assert_found("prometheusrule.yaml is stale", "check_generated")

    def test_without_a_severity_are_found(self):
        self.edit(RULES, "severity: critical", "severity: huge")
        self.assert_found("alert DaemonDown: its severity", "check_alerts")

    def test_that_do_not_wait_are_found(self):
        self.edit(RULES, "for: 5m", "for: 1m")
        self.assert_found("alert DaemonDown: it must wait", "check_alerts")

    def test_without_a_summary_are_found(self):
        self.edit(RULES, "summary:", "sumary:")
        self.assert_found("alert DaemonDown: it has no summary", "check_alerts")

    def test_without_a_runbook_are_found(self):
        (self.repo / "docs/runbooks/DaemonDown.md").unlink()
        self.assert_found("alert DaemonDown: its runbook", "check_alerts")

    def test_with_the_runbook_of_another_are_found(self):
        self.edit(RULES, "runbooks/DaemonDown.md", "runbooks/ReclaimFailed.md")
        self.assert_found("alert DaemonDown: its runbook is that of ReclaimFailed", "check_alerts")

    def test_without_a_test_are_found(self):
        self.edit(TESTS, "alertname: ReclaimFailed", "alertname: AuditLinesLost")
        self.assert_found("shows it firing", "check_alerts")
        self.assert_found("shows it silent", "check_alerts")

    def test_that_record_without_a_test_are_found(self):
        self.edit(TESTS, "expr: instance:rnicd_registrations:rate5m", "expr: vector(1)")
        self.assert_found("record instance:rnicd_registrations:rate5m: rnicd.rules_test.yaml", "check_alerts")

    def test_runbook_without_an_alert_is_found(self):
        shutil.copy(self.repo / "docs/runbooks/DaemonDown.md", self.repo / "docs/runbooks/Other.md")
        self.assert_found("Other.md: no alert has this name", "check_alerts")

    def test_runbook_without_a_heading_is_found(self):
        self.edit("docs/runbooks/DaemonDown.md", "## Over when", "## Noise")
        self.assert_found("DaemonDown.md: its headings must be", "check_alerts")

    def test_manifest_of_another_kind_is_found(self):
        self.edit("deploy/prometheus/podmonitor.yaml", "kind: PodMonitor", "kind: ServiceMonitor")
        self.assert_found("it is no PodMonitor", "check_manifests")

    def test_that_promtool_refuses_are_found(self):
        self.edit(RULES, "rnicd_adapter_healthy == 0", "rnicd_adapter_healthy == == 0")
        self.assert_found("promtool check rules", "check_with_promtool")

    def test_that_fail_their_tests_are_found(self):
        self.edit(RULES, "rnicd_adapter_healthy == 0", "rnicd_adapter_healthy == 1")
        self.assert_found("promtool test rules", "check_with_promtool")


class Reading(unittest.TestCase):
    def test_finds_metrics_and_not_functions(self):
        found = expressions.selectors('sum by (a) (rate(m_total{b="c",d!~"e"}[5m])) / on (x) n or vector(0)')
        self.assertEqual(found, [("m_total", ["b", "d"]), ("n", [])])

    def test_takes_comparisons_off(self):
        self.assertEqual(expressions.operands("time() - a > 300 and a > 0"), ["time ( ) - a", "a"])
        self.assertEqual(expressions.operands("a > 0 unless on (job) sum by (job) (b > 1) > 0"),
                         ["a", "sum by ( job ) ( b > 1 )"])

    def test_knows_which_side_of_a_join_lends_its_labels(self):
        self.assertEqual(expressions.groupings("a * on (x) group_left (y) b"), [(["x"], ["a", "b"]), (["y"], ["b"])])
        self.assertEqual(expressions.groupings("a / on (x) group_right (y) b"), [(["x"], ["a", "b"]), (["y"], ["a"])])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, default=SOURCE)
    ARGUMENTS, rest = parser.parse_known_args()
    PlantedCopy.source = ARGUMENTS.source.resolve()
    unittest.main(argv=[__file__, *rest], verbosity=1)
