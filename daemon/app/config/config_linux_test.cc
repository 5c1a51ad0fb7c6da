#include <string>
#include <utility>

#include "absl/flags/declare.h"
#include "base/status.h"
#include "daemon/app/config/config_fixture_test.h"
#include "daemon/app/config/provider_registry.h"
#include "daemon/app/config/system_config_linux.h"

ABSL_DECLARE_FLAG(std::string, socket_dir);
ABSL_DECLARE_FLAG(std::string, admin_socket_dir);
ABSL_DECLARE_FLAG(std::string, door_dir);
ABSL_DECLARE_FLAG(std::string, socket_mode);

namespace rnicd::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST_F(ConfigTest, TheDefaultDirectoriesAreThoseOfTheSystem) {
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.system->socket_dir, "/run/rnicd");
  EXPECT_EQ(config_.system->admin_socket_dir, "/run/rnicd-admin");
  EXPECT_EQ(config_.system->door_dir, "/run/rnicd-doors");
  EXPECT_EQ(config_.system->socket_mode, 0666u);
}

TEST_F(ConfigTest, DirectoriesAndModeArriveWhereTheyBelong) {
  absl::SetFlag(&FLAGS_socket_dir, "/tmp/a");
  absl::SetFlag(&FLAGS_admin_socket_dir, "/tmp/b");
  absl::SetFlag(&FLAGS_door_dir, "/tmp/c");
  absl::SetFlag(&FLAGS_socket_mode, "0660");
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.system->socket_dir, "/tmp/a");
  EXPECT_EQ(config_.system->admin_socket_dir, "/tmp/b");
  EXPECT_EQ(config_.system->door_dir, "/tmp/c");
  EXPECT_EQ(config_.system->socket_mode, 0660u);
}

constexpr BadValue kBadValuesOnLinux[] = {
    {"socket_dir", "relative"},
    {"admin_socket_dir", "also-relative"},
    {"socket_dir", "/tmp/a "},
    {"socket_dir", "/tmp/a\r"},
    {"admin_socket_dir", "/tmp/b\n"},
    {"door_dir", "doors"},
    {"soft_network", "net"},
    {"audit_log", "/tmp/audit\r"},
    {"policy_file", "/tmp/policy "},
    {"socket_mode", "0888"},
    {"socket_mode", "1777"},
    {"socket_mode", ""},
    {"socket_mode", "rw"},
    {"verbs_devices", ","},
    {"verbs_devices", "rxa,"},
    {"verbs_devices", "rxa, rxb"},
    {"verbs_devices", "rxa,rxb,rxa"},
    {"verbs_devices", "../rxa"},
    {"verbs_gid", ""},
    {"verbs_gid", "IPv4"},
    {"verbs_gid", "3"},
    {"verbs_gid", "10.98.0.256"},
    {"verbs_gid", "fe80::1%va"},
    {"verbs_fast_engine", ""},
    {"verbs_fast_engine", "umr"},
    {"verbs_max_registration_bytes", "4095"},
    {"verbs_max_regions", "-1"},
    {"verbs_max_fast_register_pages", "15"},
    {"verbs_max_fast_register_pages", "4294967296"},
    {"verbs_adapter_flags", "0x1"},
    {"verbs_adapter_flags", "0x10113"},
    {"verbs_adapter_flags", "none"},
    {"verbs_ack_timeout", "0"},
    {"verbs_ack_timeout", "32"},
    {"verbs_probe_interval_ms", "9"},
    {"verbs_probe_interval_ms", "3600001"},
};

TEST_F(ConfigTest, EveryBadValueOnLinuxIsNamedByItsFlag) {
  // Its default follows --socket_dir, and would repeat its errors.
  absl::SetFlag(&FLAGS_admin_socket_dir, "/run/admin");
  absl::SetFlag(&FLAGS_door_dir, "/run/doors");
  ExpectEachIsNamedByItsFlag(kBadValuesOnLinux);
}

// The flags repeat its defaults, for --help.
TEST_F(ConfigTest, ByDefaultVerbsGetsItsOwnDefaults) {
  EXPECT_THAT(Errors(), IsEmpty());
  const provider::VerbsOptions verbs;
  EXPECT_THAT(config_.system->verbs.devices, IsEmpty());
  EXPECT_EQ(config_.system->verbs.gid.kind, verbs.gid.kind);
  EXPECT_EQ(config_.system->verbs.fast_engine, verbs.fast_engine);
  EXPECT_FALSE(config_.system->verbs.allow_unbounded_windows);
  EXPECT_EQ(config_.system->verbs.max_registration_bytes, verbs.max_registration_bytes);
  EXPECT_EQ(config_.system->verbs.max_regions, verbs.max_regions);
  EXPECT_EQ(config_.system->verbs.max_fast_register_pages, verbs.max_fast_register_pages);
  EXPECT_EQ(config_.system->verbs.adapter_flags, verbs.adapter_flags);
  EXPECT_EQ(config_.system->verbs.ack_timeout, verbs.ack_timeout);
  EXPECT_EQ(config_.system->verbs.probe_interval, verbs.probe_interval);
}

TEST_F(ConfigTest, TheOperatorsDirectoryMustNotBeTheOneContainersSee) {
  absl::SetFlag(&FLAGS_admin_socket_dir, absl::GetFlag(FLAGS_socket_dir));
  EXPECT_THAT(Errors(), ElementsAre(HasSubstr("must not be --socket_dir")));
}

TEST_F(ConfigTest, TheOperatorsDirectoryIsBesideTheOtherHoweverThatIsWritten) {
  for (const char* const directory : {"/tmp/a", "/tmp/a/", "/tmp//a/.", "//tmp/./a//"}) {
    Set("socket_dir", directory);
    EXPECT_THAT(Errors(), IsEmpty()) << directory;
    EXPECT_EQ(config_.system->socket_dir, "/tmp/a") << directory;
    EXPECT_EQ(config_.system->admin_socket_dir, "/tmp/a-admin") << directory;
  }
}

TEST_F(ConfigTest, NoDirectoryOfItsOwnMayBeInTheOneThatContainersSee) {
  Set("socket_dir", "/tmp/a/");
  for (const char* const flag : {"admin_socket_dir", "door_dir", "handover_dir", "soft_network"}) {
    for (const char* const directory : {"/tmp/a/b", "/tmp/a/./b", "//tmp/a", "/tmp/a/"}) {
      Set(flag, directory);
      EXPECT_THAT(Errors(), ElementsAre(HasSubstr("must not be --socket_dir or in it"))) << directory;
    }
    Set(flag, "");
  }
  Set("socket_dir", "/");
  EXPECT_THAT(Errors(), ::testing::Each(HasSubstr("must not be --socket_dir or in it")));
  EXPECT_EQ(Errors().size(), 3u);
}

TEST_F(ConfigTest, AnEmptySocketDirectoryIsRefused) {
  absl::SetFlag(&FLAGS_socket_dir, "");
  EXPECT_THAT(Errors(), ::testing::Contains(StartsWith("--socket_dir: must be an absolute path")));
}

TEST_F(ConfigTest, VerbsValuesArriveWhereTheyBelong) {
  Set("provider", "verbs");
  Set("verbs_devices", "rxb,rxa");
  Set("verbs_gid", "10.98.0.1");
  Set("verbs_fast_engine", "window");
  Set("verbs_allow_unbounded_windows", "true");
  Set("verbs_max_registration_bytes", "1048576");
  Set("verbs_max_regions", "7");
  Set("verbs_max_fast_register_pages", "64");
  Set("verbs_adapter_flags", "0x10000");
  Set("verbs_ack_timeout", "14");
  Set("verbs_probe_interval_ms", "250");
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.provider, "verbs");
  EXPECT_THAT(config_.system->verbs.devices, ElementsAre("rxb", "rxa"));
  EXPECT_EQ(config_.system->verbs.gid.kind, provider::GidRule::Kind::kAddress);
  EXPECT_EQ(config_.system->verbs.fast_engine, provider::FastEngine::kWindow);
  EXPECT_TRUE(config_.system->verbs.allow_unbounded_windows);
  EXPECT_EQ(config_.system->verbs.max_registration_bytes, uint64_t{1} << 20);
  EXPECT_EQ(config_.system->verbs.max_regions, 7u);
  EXPECT_EQ(config_.system->verbs.max_fast_register_pages, 64u);
  EXPECT_EQ(config_.system->verbs.adapter_flags, kAdapterFlagLoopback);
  EXPECT_EQ(config_.system->verbs.ack_timeout, 14);
  EXPECT_EQ(config_.system->verbs.probe_interval, std::chrono::milliseconds(250));
}

TEST_F(ConfigTest, EachEngineAndKindOfAddressHasItsWord) {
  using Kind = provider::GidRule::Kind;
  const std::pair<const char*, Kind> kinds[] = {{"auto", Kind::kBest},
                                                {"ipv4", Kind::kIpv4},
                                                {"ipv6", Kind::kIpv6},
                                                {"link-local", Kind::kLinkLocal},
                                                {"fe80::1", Kind::kAddress}};
  for (const auto& [word, kind] : kinds) {
    Set("verbs_gid", word);
    EXPECT_THAT(Errors(), IsEmpty()) << word;
    EXPECT_EQ(config_.system->verbs.gid.kind, kind) << word;
  }
  using provider::FastEngine;
  const std::pair<const char*, FastEngine> engines[] = {{"auto", FastEngine::kAuto},
                                                        {"kernel", FastEngine::kKernel},
                                                        {"registration", FastEngine::kRegistration},
                                                        {"window", FastEngine::kWindow}};
  for (const auto& [word, engine] : engines) {
    Set("verbs_fast_engine", word);
    EXPECT_THAT(Errors(), IsEmpty()) << word;
    EXPECT_EQ(config_.system->verbs.fast_engine, engine) << word;
  }
}

TEST_F(ConfigTest, ThePathsOfTheSandboxAreThoseOfTheFlags) {
  Set("socket_dir", "/run/r");
  Set("audit_log", "/var/log/r/audit");
  Set("policy_file", "/etc/r/policy");
  Set("provider", "soft");
  EXPECT_THAT(Errors(), IsEmpty());
  ASSERT_TRUE(config_.system->sandbox.paths.has_value());
  EXPECT_THAT(config_.system->sandbox.paths->read, ElementsAre("/etc/r"));
  EXPECT_THAT(config_.system->sandbox.paths->write,
              ElementsAre("/run/r", "/run/r-admin", "/run/r-doors", "/run/r-handover", "/var/log/r"));
  EXPECT_THAT(config_.system->sandbox.paths->devices, IsEmpty());
  EXPECT_FALSE(config_.system->sandbox.looks_for_cards);
  Set("provider", "verbs");
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_THAT(config_.system->sandbox.paths->devices, ElementsAre("/dev/infiniband"));
  EXPECT_TRUE(config_.system->sandbox.looks_for_cards);
  Set("restrict_paths", "false");
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_FALSE(config_.system->sandbox.paths.has_value());
}

TEST(ProviderRegistry, KnowsVerbsOnLinux) {
  EXPECT_TRUE(IsKnownProvider("verbs", SystemCards()));
  EXPECT_EQ(KnownProviders(SystemCards()), "soft, verbs");
}

// No machine has a card of that name, and most have none at all.
TEST(ProviderRegistry, SaysWhichCardIsMissing) {
  KernelRandom random;
  const auto provider =
      MakeProvider({.provider = "verbs",
                    .cards = SystemCards(),
                    .system = std::make_shared<SystemConfig>(SystemConfig{.verbs = {.devices = {"no_such_card0"}}})},
                   random, provider::IgnoreAdapterEvents);
  ASSERT_FALSE(provider.ok());
  EXPECT_EQ(provider.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(provider.status().message()), HasSubstr("no_such_card0"));
}

}  // namespace
}  // namespace rnicd::app
