#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/wait.h"

// Which kind of adapter the daemon under test owns. The same suites run against each kind; this header answers what
// differs between kinds. The environment chooses:
//
//     RNICD_TEST_PROVIDER      soft (the default), verbs or networkdirect
//     RNICD_TEST_DAEMON_FLAGS  more flags for every daemon, separated by spaces; those that begin with the name of a
//                              provider ("--verbs_gid=link-local") only for daemons of that provider
//     RNICD_TEST_ADAPTER       the first adapter; default soft0, rxa or nd-10.83.0.5
//     RNICD_TEST_OTHER_ADAPTER the second adapter; default soft1, rxb or nd-10.83.0.6
namespace rnicd::test {

// The program exits on an unknown kind.
std::string ProviderUnderTest();
std::vector<std::string> ProvidersThatCanBeTested();

// "--soft_register_delay_us=5" for "register_delay_us" and 5.
std::string ProviderFlag(std::string_view name, uint64_t value);
// The same for a flag that ends in "_us".
std::string ProviderFlag(std::string_view name, std::chrono::microseconds value);

// Flags that every daemon needs besides those of its test: "--provider", unless `flags` name one, and those of
// RNICD_TEST_DAEMON_FLAGS that suit the provider. They precede the test's flags, so that the test's flags win.
std::vector<std::string> DaemonFlagsOfTheEnvironment(const std::vector<std::string>& flags);

std::string AdapterUnderTest();
// The second adapter of a daemon that was started with TwoAdapterFlags(). On verbs the machine must have it.
std::string OtherAdapterUnderTest();
std::vector<std::string> TwoAdapterFlags();
// Flags of a daemon that owns only the adapter under test, whatever the machine has.
std::vector<std::string> OneAdapterFlags();

// The NDK_ADAPTER_FLAG_ bits of an adapter unless a flag of the daemon takes some away.
uint32_t AdapterFlagsUnderTest();

// Number of descriptors the daemon holds for each adapter that a session has opened.
uint64_t DescriptorsOfAnOpenAdapter();

// False if the duration of a read cannot be set. What holds for any duration is tested anyway; a test that needs a slow
// read is listed in tests/vm/not_on_verbs.txt.
bool CanSlowReads();
// Flags of a daemon whose reads each take `delay` until their data lands; none if !CanSlowReads().
std::vector<std::string> SlowReadFlags(std::chrono::microseconds delay = kHandfulOfCalls);

}  // namespace rnicd::test
