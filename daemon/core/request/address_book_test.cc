#include "daemon/core/request/address_book.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/secrets/seeded_random_fake.h"
#include "base/status.h"

namespace rnicd::core {
namespace {

class AddressBookTest : public ::testing::Test {
 protected:
  static NetworkAddress At(uint16_t port) { return {.ip = *IpAddress::FromText("10.0.0.1"), .port = port}; }
  static AddressRange Ports(uint16_t first, uint16_t last) {
    return {.prefix = *IpPrefix::FromText("10.0.0.0/8"), .first_port = first, .last_port = last};
  }

  SeededRandom random_{1};
  AddressBook book_{random_};
};

TEST_F(AddressBookTest, AnAddressIsFreeWhenItsLastHoldIsGone) {
  auto claim = book_.Take(At(7), {}, 3);
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_EQ(book_.HolderOf(At(7)), 3u);
  const AddressBook::Hold copy = claim->hold;
  claim->hold = nullptr;
  EXPECT_TRUE(FailedWith(book_.Take(At(7), {}, 4).status(), ErrorReason::ADDRESS_IN_USE));
  EXPECT_TRUE(book_.Take(At(8), {}, 4).ok());
}

TEST_F(AddressBookTest, PortsAreChosenAmongThePermittedOnesDynamicOnesFirst) {
  const std::vector<AddressRange> ports = {Ports(1024, 1025), Ports(65534, 65535)};
  std::vector<AddressBook::Claim> claims;
  std::vector<bool> is_dynamic;
  for (int count = 0; count < 4; ++count) {
    auto claim = book_.Take(At(0), ports, 1);
    ASSERT_TRUE(claim.ok()) << claim.status();
    is_dynamic.push_back(claim->address.port >= kFirstDynamicPort);
    claims.push_back(*std::move(claim));
  }
  EXPECT_EQ(is_dynamic, (std::vector<bool>{true, true, false, false}));
  EXPECT_TRUE(FailedWith(book_.Take(At(0), ports, 1).status(), ErrorReason::PORTS_EXHAUSTED));
}

TEST_F(AddressBookTest, NamesAndQueuePairsEndWithTheirHolds) {
  auto name = book_.Publish("ml/array", {.address = At(7), .tenant = 3});
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_TRUE(FailedWith(book_.Publish("ml/array", {}).status(), ErrorReason::NAME_TAKEN));
  EXPECT_EQ(book_.Find("ml/array")->address, At(7));
  *name = nullptr;
  EXPECT_FALSE(book_.Find("ml/array").has_value());
  AddressBook::Hold pair = book_.AddQueuePair("pair", 5);
  EXPECT_EQ(book_.TenantOfQueuePair("pair"), 5u);
  pair = nullptr;
  EXPECT_FALSE(book_.TenantOfQueuePair("pair").has_value());
}

}  // namespace
}  // namespace rnicd::core
