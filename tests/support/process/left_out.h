#pragma once

#include <set>
#include <string>

namespace rnicd::test {

// The tests of tests/vm/not_on_verbs.txt, named as a run against verbs prints them. The program exits if the file
// cannot be read or has a line without a reason: the file is part of the suites.
const std::set<std::string>& TestsLeftOutOnVerbs();

// Expects that each of them whose name begins with `prefix` (or does not, if `!begins`) is a test of this program: a
// stale name excludes nothing, and a renamed test would run on cards again.
void ExpectLeftOutTestsExist(const std::string& prefix, bool begins);

}  // namespace rnicd::test
