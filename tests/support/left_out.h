#pragma once

#include <set>
#include <string>

namespace rnicd::test {

// The tests of tests/vm/not_on_verbs.txt, named as a run against verbs prints them. A file that cannot be read, or has
// a line without a reason, ends the program: it is part of the suites.
const std::set<std::string>& TestsLeftOutOnVerbs();

// Each of them whose name begins with `prefix`, or does not when `!begins`, is a test of this program: a name that is
// none leaves nothing out, and a test that was renamed is asked of cards again.
void ExpectLeftOutTestsExist(const std::string& prefix, bool begins);

}  // namespace rnicd::test
