#include "provider/networkdirect/card/nd_device.h"

#include <gtest/gtest.h>

#include <cstring>

namespace rnicd::provider {
namespace {

TEST(NdAddress, TextsOfBothFamilies) {
  sockaddr_in four = {};
  four.sin_family = AF_INET;
  four.sin_port = htons(80);
  four.sin_addr.s_addr = htonl(0x0A010203);
  const NdAddress address(reinterpret_cast<const sockaddr*>(&four), sizeof(four));
  EXPECT_TRUE(address.is_ip());
  EXPECT_EQ(address.bytes(), sizeof(four));
  EXPECT_EQ(address.Text(), "10.1.2.3");
  EXPECT_EQ(reinterpret_cast<const sockaddr_in*>(address.WithoutPort().get())->sin_port, 0);

  sockaddr_in6 six = {};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(80);
  six.sin6_addr.s6_addr[0] = 0xfe;
  six.sin6_addr.s6_addr[1] = 0x80;
  six.sin6_addr.s6_addr[15] = 0x1;
  const NdAddress other(reinterpret_cast<const sockaddr*>(&six), sizeof(six));
  EXPECT_EQ(other.Text(), "fe80:0:0:0:0:0:0:1");
  EXPECT_EQ(reinterpret_cast<const sockaddr_in6*>(other.WithoutPort().get())->sin6_port, 0);
}

TEST(NdAdapterLimits, BothQueuesOfAPairShareACompletionQueue) {
  ND2_ADAPTER_INFO card = {};
  card.MaxRegistrationSize = 1000;
  card.MaxReceiveQueueDepth = 400;
  card.MaxInitiatorQueueDepth = 100;
  card.MaxCompletionQueueDepth = 600;
  card.MaxInitiatorSge = 4;
  card.MaxReadSge = 9;
  const NdkAdapterInfo info = NdAdapterLimits(card, {.max_registration_bytes = 700});
  EXPECT_EQ(info.max_receive_queue_depth, 300u);
  EXPECT_EQ(info.max_initiator_queue_depth, 100u);
  EXPECT_EQ(info.max_registration_size, 700u);
  EXPECT_EQ(info.max_window_size, 700u);
  EXPECT_EQ(info.max_read_request_sge, 4u);
}

TEST(NdAdapterLimits, OnlyFlagsWithAMeaningForNdkAreReported) {
  ND2_ADAPTER_INFO card = {};
  card.AdapterFlags = 0xffffffff;
  EXPECT_EQ(NdAdapterLimits(card, {}).adapter_flags,
            kAdapterFlagInOrderDma | kAdapterFlagReadLocalInvalidate | kAdapterFlagCqResize | kAdapterFlagLoopback);
  card.AdapterFlags = 0;
  EXPECT_EQ(NdAdapterLimits(card, {}).adapter_flags, kAdapterFlagReadLocalInvalidate | kAdapterFlagCqResize)
      << "what the daemon does for every card";
  EXPECT_EQ(NdAdapterLimits(card, {.adapter_flags = kAdapterFlagLoopback | kAdapterFlagCqResize}).adapter_flags,
            kAdapterFlagCqResize);
}

}  // namespace
}  // namespace rnicd::provider
