"""Prints what a run of CTest gave, a line for each test, and leaves the sums for the caller.

usage: report_tests.py RESULTS SUMS
  RESULTS  CTest's --output-junit. A test that left results of GoogleTest in build/BUILD/results counts with its cases
  SUMS     "PASSED FAILED" is written to this file, and on a line of its own how many were left out

A skipped case is a failed one; a test that ended with the status of those that are left out is neither.
"""

import json
import pathlib
import sys
import xml.etree.ElementTree as tree

REPO = pathlib.Path(__file__).resolve().parent.parent


def results_of(name):
    """Where a test's results of GoogleTest are: the tests of sanitizer builds have the build in front of their name."""
    build, slash, test = name.rpartition("/")
    return REPO / "build" / (build if slash else "release") / "results" / f"{test}.json"


def cases_of(name, seconds_before):
    """(cases, bad ones) of GoogleTest; None where the test left none in this run."""
    path = results_of(name)
    if not path.exists() or path.stat().st_mtime < seconds_before:
        return None
    told = json.loads(path.read_text(encoding="utf-8"))
    run = [case for suite in told["testsuites"] for case in suite["testsuite"] if case["status"] == "RUN"]
    return len(run), sum(case["result"] == "SKIPPED" or bool(case.get("failures")) for case in run)


def verdict_of(test, began):
    """(cases, bad, word) of one test."""
    left_out = test.find("skipped")
    if left_out is not None and "SKIP_RETURN_CODE" in left_out.get("message", ""):
        return 0, 0, "left out"
    failed = test.get("status") != "run"
    cases, bad = cases_of(test.get("name"), began) or (1, 0)
    if failed and bad == 0:
        cases, bad = cases + 1, 1
    return cases, bad, "FAILED" if bad else "ok"


def main():
    results, sums = map(pathlib.Path, sys.argv[1:])
    tests = tree.parse(results).getroot().findall("testcase")
    # The file is written at the end of the run.
    began = results.stat().st_mtime - float(tree.parse(results).getroot().get("time", 0)) - 2
    total = wrong = left_out = 0
    print(f"\n{'test':44} {'seconds':>8} {'cases':>6}  result")
    for test in sorted(tests, key=lambda test: -float(test.get("time", 0))):
        cases, bad, word = verdict_of(test, began)
        total, wrong, left_out = total + cases, wrong + bad, left_out + (word == "left out")
        print(f"{test.get('name'):44} {float(test.get('time', 0)):8.1f} {cases:6}  {word}")
    for test in tests:
        if verdict_of(test, began)[2] == "FAILED":
            said = (test.findtext("system-out") or "").strip().splitlines()
            said = [line for line in said if not line.startswith(("[ RUN ", "[       OK ", "[---"))]
            print(f"\n   not passed: {test.get('name')}", *said[-20:], sep="\n     | ")
    sums.write_text(f"{total - wrong} {wrong}\n{left_out}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
