#pragma once

#include <map>
#include <string>
#include <utility>

namespace rnicd::test {

// The three text files beside this one. The program exits on a malformed line: the tables are part of the suite.

// "NNN | short title": the rows of the edge case list that this suite covers.
const std::map<std::string, std::string>& Cases();
// "NNN | reason": rows that have no observable form on the wire.
const std::map<std::string, std::string>& NotCovered();
// "provider | NNN | reason": rows that a provider is known to fail, by provider and row. With kRings in place of a
// provider: rows that no provider passes when requests and completions go through shared memory.
inline constexpr const char* kRings = "rings";
// And cards whose fast registrations are the kernel module's, and iWARP cards.
inline constexpr const char* kVerbsModule = "verbs module";
inline constexpr const char* kVerbsIwarp = "verbs iwarp";
const std::map<std::pair<std::string, std::string>, std::string>& Gaps();

// "016" of "Case016_GapInsideLengthIsRefused/soft"; empty for a test without a row.
std::string CaseNumberOf(const std::string& test_name);

}  // namespace rnicd::test
