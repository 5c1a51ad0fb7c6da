#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/wait.h"

// Which kind of adapter the daemon under test owns. The same suites run against each kind; what differs between kinds
// is asked here. The environment chooses:
//
//     RNICD_TEST_PROVIDER      soft (the default) or verbs
//     RNICD_TEST_DAEMON_FLAGS  more flags for every daemon, separated by spaces; those that begin with the name of a
//                              provider ("--verbs_gid=link-local") only for daemons of that provider
//     RNICD_TEST_ADAPTER       the first adapter; default soft0 or rxa
//     RNICD_TEST_OTHER_ADAPTER the second adapter; default soft1 or rxb
namespace rnicd::test {

// A kind that the suites do not know ends the program.
std::string ProviderUnderTest();
std::vector<std::string> ProvidersThatCanBeTested();

// "--soft_register_delay_us=5" for "register_delay_us" and 5.
std::string ProviderFlag(std::string_view name, uint64_t value);
// Of a flag that ends in "_us".
std::string ProviderFlag(std::string_view name, std::chrono::microseconds value);

// What a daemon of its own needs besides the flags of its test: "--provider", unless `flags` name one, and those of
// RNICD_TEST_DAEMON_FLAGS that suit the provider. They come before the test's, so that the test has the last word.
std::vector<std::string> DaemonFlagsOfTheEnvironment(const std::vector<std::string>& flags);

std::string AdapterUnderTest();
// Another adapter of a daemon that was started with TwoAdapterFlags(). On verbs the machine must have it.
std::string OtherAdapterUnderTest();
std::vector<std::string> TwoAdapterFlags();
// Of a daemon that owns the adapter under test and no other, whatever the machine has.
std::vector<std::string> OneAdapterFlags();

// The NDK_ADAPTER_FLAG_ bits of an adapter unless a flag of the daemon takes some away.
uint32_t AdapterFlagsUnderTest();

// What the daemon holds for each adapter that a session has opened.
uint64_t DescriptorsOfAnOpenAdapter();

// False where a read takes as long as the wire does. What must hold whatever a read takes is tested all the same; a
// test that needs a slow read stands in tests/vm/not_on_verbs.txt.
bool CanSlowReads();
// The flags of a daemon whose every read takes so long until its data lands; none where !CanSlowReads().
std::vector<std::string> SlowReadFlags(std::chrono::microseconds delay = kHandfulOfCalls);

}  // namespace rnicd::test
