#pragma once

#include <map>
#include <string>
#include <utility>

namespace rnicd::test {

// The three text files beside this one. A line that cannot be read ends the program: the tables are part of the suite.

// "NNN | short title": the rows of the edge case list that this suite answers for.
const std::map<std::string, std::string>& Cases();
// "NNN | reason": rows without a form that the wire can show.
const std::map<std::string, std::string>& NotCovered();
// "provider | NNN | reason": rows that a provider is known to fail. By provider and row.
const std::map<std::pair<std::string, std::string>, std::string>& Gaps();

// "016" of "Case016_GapInsideLengthIsRefused/soft"; empty for a test that is about no row.
std::string CaseNumberOf(const std::string& test_name);

}  // namespace rnicd::test
