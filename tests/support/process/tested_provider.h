#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

// "--soft_max_regions=5" for "max_regions" and 5.
std::string ProviderFlag(std::string_view name, uint64_t value);

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

}  // namespace rnicd::test
