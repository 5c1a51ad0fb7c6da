#pragma once

#include <string>
#include <vector>

#include "tests/conformance/ndk_conformance.h"
#include "tests/support/connection_client.h"

namespace rnicd::test {

// The rows about connections, on daemons whose policy lets every tenant listen and connect: NDK knows no other.
class NdkConnections : public NdkConformance {
 protected:
  DaemonProcess& net_daemon(std::vector<std::string> flags = {});
  // A daemon that waits for a peer for five seconds: far longer than the peer needs for what it does.
  DaemonProcess& impatient_daemon();
};

// The part of a tenant's policy that permits all connections, with these ports to listen at.
std::string EveryConnection(const std::string& ports = "first_port: 49152 last_port: 65535");

// An address beside this one, of the same network, that no host has.
std::string WithoutHost(const std::string& address);

inline constexpr uint32_t kFirstPort = 49152;

}  // namespace rnicd::test
