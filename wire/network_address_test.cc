#include "wire/network_address.h"

#include "base/status.h"
#include "gtest/gtest.h"

namespace rnicd::wire {
namespace {

TEST(WireNetworkAddress, AddressAndPortArrive) {
  for (const char* text : {"10.98.0.1", "fd00::1"}) {
    const NetworkAddress address{.ip = *IpAddress::FromText(text), .port = 4791};
    EXPECT_EQ(ToWire(address).address(), text);
    EXPECT_EQ(FromWire(ToWire(address)).value(), address);
  }
}

TEST(WireNetworkAddress, WhatIsNoAddressIsRefused) {
  v1::NetworkAddress message;
  message.set_address("host.example");
  EXPECT_TRUE(FailedWith(FromWire(message).status(), ErrorReason::ADDRESS_INVALID));
  message.set_address("10.98.0.1");
  message.set_port(65536);
  EXPECT_TRUE(FailedWith(FromWire(message).status(), ErrorReason::FIELD_OUT_OF_RANGE));
}

}  // namespace
}  // namespace rnicd::wire
