#include "provider/decorator/held_registrations.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>

#include "base/secrets/random.h"
#include "provider/soft/soft_provider.h"

namespace rnicd::provider {
namespace {

TEST(HeldProvider, RegistrationsWaitUntilTheyAreLetGoAndOtherCallsDoNot) {
  KernelRandom random;
  auto soft = std::make_unique<SoftProvider>(SoftOptions{}, random);
  SoftProvider& card = *soft;
  int questions = 0;
  bool registered = false;
  HeldProvider provider(std::move(soft), [&] {
    EXPECT_EQ(card.live_regions(), registered ? 1u : 0u);
    return ++questions % 3 != 0;
  });
  EXPECT_EQ(provider.name(), "soft");
  EXPECT_EQ(provider.ListAdapters().size(), 1u);
  const auto adapter = provider.OpenAdapter("soft0");
  ASSERT_TRUE(adapter.ok());
  const auto domain = (*adapter)->CreateProtectionDomain();
  ASSERT_TRUE(domain.ok());
  ASSERT_TRUE((*adapter)->CreateCompletionQueue(1).ok());
  ASSERT_TRUE((*domain)->CreateMemoryWindow().ok());
  ASSERT_EQ((*adapter)->addresses().size(), 1u);
  EXPECT_TRUE((*adapter)->Listen({.ip = (*adapter)->addresses().front(), .port = 1}, {}).ok());
  EXPECT_TRUE((*adapter)->CreateConnector({}).ok());
  EXPECT_TRUE(FailedWith((*adapter)->LocateQueuePair("nobody").status(), ErrorReason::QP_ADDRESS_UNKNOWN));
  EXPECT_EQ(questions, 0);

  std::array<std::byte, kNdkPageBytes> page{};
  const std::span<std::byte> run(page);
  const auto region = (*domain)->RegisterMemory({.base = {kNdkPageBytes}, .length = kNdkPageBytes, .runs = {&run, 1}});
  ASSERT_TRUE(region.ok());
  EXPECT_EQ(questions, 3);
  EXPECT_EQ(provider.live_regions(), 1u);
  registered = true;
  EXPECT_TRUE((*domain)->CreateFastRegion(1, false).ok());
  EXPECT_EQ(questions, 6);
}

}  // namespace
}  // namespace rnicd::provider
