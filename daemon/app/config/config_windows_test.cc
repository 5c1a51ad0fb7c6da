#include <memory>

#include "base/status.h"
#include "daemon/app/config/config_fixture_test.h"
#include "daemon/app/config/provider_registry.h"
#include "daemon/app/config/system_config_windows.h"

namespace rnicd::app {
namespace {

using ::testing::IsEmpty;

TEST_F(ConfigTest, TheDefaultPipesAreThoseThatClientsLookFor) {
  EXPECT_THAT(Errors(), IsEmpty());
  const pipes::PipeNames names;
  EXPECT_EQ(config_.system->pipes.workloads, names.workloads);
  EXPECT_EQ(config_.system->pipes.operators, names.operators);
  EXPECT_TRUE(config_.log.event_log);
}

TEST_F(ConfigTest, ValuesOnWindowsArriveWhereTheyBelong) {
  Set("pipe", "a");
  Set("admin_pipe", "b");
  Set("event_log", "false");
  Set("networkdirect_library", "C:\\cards\\nd.dll");
  Set("networkdirect_fast_engine", "registration");
  Set("networkdirect_max_registration_bytes", "8192");
  Set("networkdirect_max_regions", "7");
  Set("networkdirect_adapter_flags", "0x10000");
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.system->pipes.workloads, "\\\\.\\pipe\\a");
  EXPECT_EQ(config_.system->pipes.operators, "\\\\.\\pipe\\b");
  EXPECT_FALSE(config_.log.event_log);
  const provider::NetworkDirectOptions& card = config_.system->network_direct;
  EXPECT_EQ(card.library, "C:\\cards\\nd.dll");
  EXPECT_EQ(card.fast_engine, provider::NdFastEngine::kRegistration);
  EXPECT_EQ(card.max_registration_bytes, 8192u);
  EXPECT_EQ(card.max_regions, 7u);
  EXPECT_EQ(card.adapter_flags, kAdapterFlagLoopback);
}

constexpr BadValue kBadValuesOnWindows[] = {
    {"pipe", "a\\b"},
    {"admin_pipe", "c\\d"},
    {"networkdirect_library", "nd.dll"},
    {"networkdirect_fast_engine", "window"},
    {"networkdirect_max_registration_bytes", "4095"},
    {"networkdirect_max_regions", "-1"},
    {"networkdirect_adapter_flags", "0x2"},
};

TEST_F(ConfigTest, EveryBadValueOnWindowsIsNamedByItsFlag) {
  // Its default follows --pipe, and would repeat its errors.
  Set("admin_pipe", "operators");
  ExpectEachIsNamedByItsFlag(kBadValuesOnWindows);
}

TEST_F(ConfigTest, TheOperatorsPipeMustNotBeTheOneForEverybody) {
  Set("admin_pipe", "RNICD");
  EXPECT_THAT(Errors(), ::testing::ElementsAre(::testing::HasSubstr("must not be --pipe")));
}

// The flags repeat its defaults, for --help.
TEST_F(ConfigTest, ByDefaultNetworkDirectGetsItsOwnDefaults) {
  EXPECT_THAT(Errors(), IsEmpty());
  const provider::NetworkDirectOptions card;
  EXPECT_EQ(config_.system->network_direct.fast_engine, card.fast_engine);
  EXPECT_EQ(config_.system->network_direct.max_registration_bytes, card.max_registration_bytes);
}

TEST(ProviderRegistry, KnowsNetworkDirectOnWindows) { EXPECT_EQ(KnownProviders(SystemCards()), "soft, networkdirect"); }

// No machine has a library of that name.
TEST(ProviderRegistry, SaysWhichLibraryIsMissing) {
  auto system = std::make_shared<SystemConfig>();
  system->network_direct.library = "C:\\no\\such.dll";
  KernelRandom random;
  const auto provider = MakeProvider({.provider = "networkdirect", .cards = SystemCards(), .system = system}, random,
                                     provider::IgnoreAdapterEvents);
  ASSERT_FALSE(provider.ok());
  EXPECT_THAT(std::string(provider.status().message()), ::testing::HasSubstr("such.dll"));
}

}  // namespace
}  // namespace rnicd::app
