#include "provider/verbs/card/device_addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace rnicd::provider {
namespace {

TEST(DeviceAddresses, AreThoseOfTheDeviceWithTheMacAddress) {
  EXPECT_THAT(DeviceAddresses(std::array<uint8_t, 6>{}), testing::Contains(*IpAddress::FromText("127.0.0.1")));
  EXPECT_THAT(DeviceAddresses(std::array<uint8_t, 6>{1, 2, 3, 4, 5, 6}), testing::IsEmpty());
}

}  // namespace
}  // namespace rnicd::provider
