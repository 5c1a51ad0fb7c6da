#include "tests/conformance/connections/ndk_connections.h"

#include "tests/support/process/tested_provider.h"

namespace rnicd::test {

std::string EveryConnection(const std::string& ports) {
  return "connections { listen { prefix: \"::/0\" " + ports +
         " } connect { prefix: \"::/0\" } accept { prefix: \"::/0\" } }";
}

std::string WithoutHost(const std::string& address) { return address.substr(0, address.find_last_of(".:") + 1) + "77"; }

DaemonProcess& NdkConnections::net_daemon(std::vector<std::string> flags) {
  flags.push_back(LimitsFlag(EveryConnection()));
  return daemon_with(flags);
}

DaemonProcess& NdkConnections::impatient_daemon() { return net_daemon({"--connection_timeout_ms=5000"}); }

INSTANTIATE_TEST_SUITE_P(Provider, NdkConnections, testing::Values(ProviderUnderTest()),
                         [](const auto& provider) { return provider.param; });

}  // namespace rnicd::test
