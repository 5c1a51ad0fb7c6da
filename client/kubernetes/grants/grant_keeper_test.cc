#include "client/kubernetes/grants/grant_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "client/kubernetes/grants/grant_fixture_test.h"
#include "client/kubernetes/resources/names_test.h"

namespace rnicd::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using GrantKeeperTest = GrantFixture;

TEST_F(GrantKeeperTest, AllocateMakesAGrantOfTheDevicesSize) {
  options_.limits.set_regions(100);
  StartPlugin();
  EXPECT_TRUE(Accepts(daemon_, Allocate({"numa0-0000", "numa0-0001"})));
  ASSERT_THAT(DaemonIds(), SizeIs(1));
  const v1::CreateGrantRequest request = daemon_.grants().begin()->second.request;
  EXPECT_EQ(request.name(), "memory-64mi/numa0-0000/3f2a91bc");
  EXPECT_EQ(request.limits().pinned_bytes(), 128 * kMiB);
  EXPECT_EQ(request.limits().registered_bytes(), 512 * kMiB);
  EXPECT_EQ(request.limits().regions(), 100u);
  EXPECT_EQ(request.devices().resource_name(), kResource);
  EXPECT_THAT(request.devices().device_ids(), ElementsAre("numa0-0000", "numa0-0001"));
  EXPECT_TRUE(request.door());
  EXPECT_FALSE(request.has_renewal());
}

TEST_F(GrantKeeperTest, ADaemonWithoutDoorsFailsTheAllocationAndKeepsNoGrant) {
  daemon_.SetQuirks({.makes_no_doors = true});
  const absl::Status refused = keeper_->Allocate(resource_, {"numa0-0000"}, now_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(refused.message(), HasSubstr("the daemon makes no doors"));
  EXPECT_THAT(DaemonIds(), IsEmpty());
  EXPECT_THAT(keeper_->records(), IsEmpty());
  EXPECT_THAT(Names(), IsEmpty());
}

// As an earlier release wrote it, for a pod that runs.
TEST_F(GrantKeeperTest, AGrantWithASecretIsRenewedWithItsDigestAndGetsNoDoor) {
  GrantRecord old{.grant_id = 7, .secret_sha256 = std::string(32, 'x'), .name = "n", .resource = kResource};
  old.device_ids = {"numa0-0000"};
  ASSERT_TRUE(file_.Save({old}).ok());
  for (int restart = 0; restart < 2; ++restart) {
    StartPlugin();
    daemon_.Restart();
    ASSERT_TRUE(keeper_->Renew(now_).ok());
    EXPECT_NE(Allocate({"numa0-0001"}), 0u);
    EXPECT_EQ(file_.Load()->front().secret_sha256, old.secret_sha256);
    const v1::CreateGrantRequest request = daemon_.grants().at(7).request;
    EXPECT_EQ(request.renewal().secret_sha256(), old.secret_sha256);
    EXPECT_FALSE(request.door());
  }
  EXPECT_TRUE(Start({"numa0-0000"}).ok());
}

// The kubelet names devices in no order.
TEST_F(GrantKeeperTest, AGrantIsNamedAfterItsLowestDeviceAndListsThemInOrder) {
  Allocate({"numa0-0002", "numa0-0001", "numa0-0003"});
  const v1::CreateGrantRequest request = daemon_.grants().begin()->second.request;
  EXPECT_EQ(request.name(), "memory-64mi/numa0-0001/3f2a91bc");
  EXPECT_THAT(request.devices().device_ids(), ElementsAre("numa0-0001", "numa0-0002", "numa0-0003"));
  EXPECT_THAT(file_.Load()->front().device_ids, ElementsAre("numa0-0001", "numa0-0002", "numa0-0003"));
}

TEST_F(GrantKeeperTest, AllocateNotesTheGrantDownBeforeItAnswers) {
  const uint64_t grant = Allocate({"numa0-0000"});
  const auto records = file_.Load();
  ASSERT_THAT(*records, SizeIs(1));
  EXPECT_EQ(records->front().grant_id, grant);
  EXPECT_TRUE(records->front().has_door);
  EXPECT_EQ(records->front().secret_sha256, "");
  EXPECT_EQ(records->front().made_ms, 1'800'000'000'000);
  EXPECT_EQ(records->front().limits.pinned_bytes(), 64 * kMiB);
}

TEST_F(GrantKeeperTest, AGrantThatCannotBeNotedDownIsRevoked) {
  std::filesystem::remove_all(folder_);
  EXPECT_THAT(keeper_->Allocate(resource_, {"numa0-0000"}, now_).status().message(), HasSubstr("grants.json.new"));
  EXPECT_THAT(DaemonIds(), IsEmpty());
  EXPECT_THAT(keeper_->records(), IsEmpty());
}

TEST_F(GrantKeeperTest, WhatTheDaemonRefusesIsNotNotedDown) {
  daemon_.RefuseCreate(MakeError(ErrorReason::QUOTA_GRANTS));
  EXPECT_TRUE(FailedWith(keeper_->Allocate(resource_, {"numa0-0000"}, now_).status(), ErrorReason::QUOTA_GRANTS));
  daemon_.SetAway(true);
  EXPECT_TRUE(IsTransportFailure(keeper_->Allocate(resource_, {"numa0-0000"}, now_).status()));
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_THAT(keeper_->records(), IsEmpty());
}

TEST_F(GrantKeeperTest, NoDevicesAreNoGrant) {
  EXPECT_EQ(keeper_->Allocate(resource_, {}, now_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(DaemonIds(), IsEmpty());
}

TEST_F(GrantKeeperTest, AFileThatCannotBeReadIsAnErrorOfLoad) {
  Write("grants.json", "{");
  StartPlugin();
  EXPECT_THAT(load_.message(), HasSubstr("grants.json.bad"));
}

TEST_F(GrantKeeperTest, ANewDaemonGetsAllGrantsAgain) {
  const uint64_t first = Allocate({"numa0-0000", "numa0-0001"});
  const uint64_t second = Allocate({"numa1-0000"});
  const auto before = daemon_.grants();
  daemon_.Restart();
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  EXPECT_TRUE(Accepts(daemon_, first));
  EXPECT_TRUE(Accepts(daemon_, second));
  const auto after = daemon_.grants();
  ASSERT_THAT(after, SizeIs(2));
  for (const auto& [id, kept] : after) {
    v1::CreateGrantRequest request = kept.request;
    request.clear_renewal();
    EXPECT_EQ(request.SerializeAsString(), before.at(id).request.SerializeAsString());
  }
}

TEST_F(GrantKeeperTest, ANewPluginMakesThemAgainFromTheFile) {
  const uint64_t grant = Allocate({"numa0-0000"});
  daemon_.Restart();
  StartPlugin();
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  EXPECT_TRUE(Accepts(daemon_, grant));
}

TEST_F(GrantKeeperTest, RenewedAndNewGrantsMayConnectWithWhatTheOperatorSaysNow) {
  const uint64_t before = Allocate({"numa0-0000"});
  EXPECT_EQ(daemon_.grants().at(before).request.connections().connect_size(), 0);
  options_.connections.add_connect()->set_prefix("10.98.0.0/16");
  StartPlugin();
  daemon_.Restart();
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  const uint64_t since = Allocate({"numa0-0001"});
  for (const uint64_t grant : {before, since}) {
    EXPECT_EQ(daemon_.grants().at(grant).request.connections().ShortDebugString(),
              "connect { prefix: \"10.98.0.0/16\" }");
  }
}

TEST_F(GrantKeeperTest, ADaemonThatKnowsAllIsToldNothing) {
  Allocate({"numa0-0000"});
  daemon_.RefuseCreate(MakeError(ErrorReason::INTERNAL_FAULT));
  EXPECT_TRUE(keeper_->Renew(now_).ok());
  EXPECT_THAT(KeptIds(), ElementsAre(1));
}

TEST_F(GrantKeeperTest, RenewalGoesOnWhereTheDaemonWentAway) {
  const uint64_t first = Allocate({"numa0-0000"});
  const uint64_t second = Allocate({"numa0-0001"});
  daemon_.Restart();
  daemon_.GoAwayAfter(2);
  EXPECT_TRUE(IsTransportFailure(keeper_->Renew(now_)));
  EXPECT_THAT(DaemonIds(), SizeIs(1));
  EXPECT_THAT(KeptIds(), ElementsAre(1, 2));
  daemon_.GoAwayAfter(1000);
  daemon_.SetAway(false);
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  EXPECT_TRUE(Accepts(daemon_, first));
  EXPECT_TRUE(Accepts(daemon_, second));
}

TEST_F(GrantKeeperTest, AGrantThatIsRefusedForGoodIsForgotten) {
  for (const ErrorReason reason : {ErrorReason::FIELD_OUT_OF_RANGE, ErrorReason::GRANT_NAME_TAKEN}) {
    Allocate({"numa0-0000"});
    daemon_.Restart();
    daemon_.RefuseCreate(MakeError(reason));
    EXPECT_TRUE(keeper_->Renew(now_).ok());
    EXPECT_THAT(keeper_->records(), IsEmpty());
    EXPECT_THAT(*file_.Load(), IsEmpty());
    daemon_.RefuseCreate(absl::OkStatus());
  }
}

// The number of grants may fall later, and a policy may be corrected.
TEST_F(GrantKeeperTest, AGrantThatIsRefusedForNowIsKeptAndDoesNotHoldUpOthers) {
  for (const ErrorReason reason :
       {ErrorReason::QUOTA_GRANTS, ErrorReason::METHOD_NOT_PERMITTED, ErrorReason::DOOR_UNAVAILABLE}) {
    SCOPED_TRACE(RowOf(reason).name);
    const uint64_t first = Allocate({"numa0-0000"});
    const uint64_t second = Allocate({"numa0-0001"});
    const std::vector<uint64_t> all = KeptIds();
    daemon_.Restart();
    const std::string name = keeper_->records().at(all.size() - 2).name;
    daemon_.RefuseCreateOf(name, MakeError(reason));
    EXPECT_TRUE(FailedWith(keeper_->Renew(now_), reason));
    EXPECT_EQ(KeptIds(), all);
    EXPECT_TRUE(Accepts(daemon_, second));
    daemon_.RefuseCreateOf(name, absl::OkStatus());
    EXPECT_TRUE(keeper_->Renew(now_).ok());
    EXPECT_TRUE(Accepts(daemon_, first));
  }
}

// Each call to an unreachable daemon takes time, and the kubelet waits.
TEST_F(GrantKeeperTest, ADaemonThatIsAwayIsNotAskedForEachGrant) {
  for (const char* id : {"numa0-0000", "numa0-0001", "numa0-0002"}) {
    Allocate({id});
  }
  daemon_.Restart();
  daemon_.GoAwayAfter(1);
  const uint64_t before = daemon_.calls();
  EXPECT_TRUE(IsTransportFailure(keeper_->Renew(now_)));
  EXPECT_EQ(daemon_.calls() - before, 2u);
}

v1::CreateGrantRequest Foreign(const std::string& name, const std::string& resource) {
  v1::CreateGrantRequest request;
  request.set_name(name);
  request.mutable_limits()->set_regions(3);
  if (!resource.empty()) {
    request.mutable_devices()->set_resource_name(resource);
    request.mutable_devices()->add_device_ids("numa0-0000");
  }
  return request;
}

TEST_F(GrantKeeperTest, AGrantThatOnlyTheDaemonKnowsIsTakenOver) {
  const uint64_t id = daemon_.CreateGrant(Foreign("lost", kResource))->grant_id();
  daemon_.SetAge(id, 5000);
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  ASSERT_THAT(*file_.Load(), SizeIs(1));
  const GrantRecord record = file_.Load()->front();
  EXPECT_EQ(record.grant_id, id);
  EXPECT_EQ(record.name, "lost");
  EXPECT_EQ(record.limits.regions(), 3u);
  EXPECT_EQ(record.made_ms, 1'799'999'995'000);
  EXPECT_TRUE(keeper_->Renew(now_).ok());
  EXPECT_THAT(KeptIds(), ElementsAre(id));
}

TEST_F(GrantKeeperTest, WhatIsTakenOverHasItsPlaceByAge) {
  Allocate({"numa0-0002"});
  now_ += Ms(20'000);
  Allocate({"numa0-0001"});
  daemon_.SetAge(daemon_.CreateGrant(Foreign("lost", kResource))->grant_id(), 10'000);
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  EXPECT_THAT(KeptIds(), ElementsAre(1, 3, 2));
}

TEST_F(GrantKeeperTest, GrantsOfOthersAreNotTouched) {
  ASSERT_TRUE(daemon_.CreateGrant(Foreign("operator", "")).ok());
  ASSERT_TRUE(daemon_.CreateGrant(Foreign("other-plugin", "example.com/memory-64mi")).ok());
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  EXPECT_THAT(keeper_->records(), IsEmpty());
  ReconcileOnce({});
  ReconcileFor(Ms(600'000), {});
  EXPECT_THAT(DaemonIds(), SizeIs(2));
}

// As by a plugin that lost its file: the pods have their doors.
TEST_F(GrantKeeperTest, AGrantWithADoorThatWasTakenOverIsRenewed) {
  const uint64_t grant = Allocate({"numa0-0000"});
  std::filesystem::remove(Path("grants.json"));
  StartPlugin();
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  daemon_.Restart();
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  EXPECT_TRUE(Accepts(daemon_, grant));
}

// No file has the secret's digest, so the secret cannot become valid again.
TEST_F(GrantKeeperTest, AGrantWithASecretThatWasTakenOverIsForgottenWithItsDaemon) {
  ASSERT_TRUE(daemon_.CreateGrant(Foreign("lost", kResource)).ok());
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  daemon_.Restart();
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  EXPECT_THAT(keeper_->records(), IsEmpty());
  EXPECT_THAT(DaemonIds(), IsEmpty());
}

TEST_F(GrantKeeperTest, WhatCouldNotBeWrittenIsWrittenTheNextTime) {
  ASSERT_TRUE(daemon_.CreateGrant(Foreign("lost", kResource)).ok());
  std::filesystem::remove_all(folder_);
  EXPECT_THAT(keeper_->Renew(now_).message(), HasSubstr("grants.json"));
  std::filesystem::create_directory(folder_);
  EXPECT_TRUE(keeper_->Renew(now_).ok());
  EXPECT_THAT(*file_.Load(), SizeIs(1));
}

TEST_F(GrantKeeperTest, AContainerStartsOnlyWithExactlyTheDevicesOfAGrant) {
  Allocate({"numa0-0000", "numa0-0001"});
  EXPECT_TRUE(Start({"numa0-0001", "numa0-0000"}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Start({"numa0-0000"})));
  EXPECT_TRUE(absl::IsFailedPrecondition(Start({"numa0-0000", "numa0-0002"})));
  EXPECT_TRUE(absl::IsFailedPrecondition(Start({})));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(keeper_->Prepare("rnicd.io/memory-1gi", {"numa0-0000", "numa0-0001"}, "", now_)));
}

TEST_F(GrantKeeperTest, AContainerThatStartsAtANewDaemonFindsItsGrant) {
  const uint64_t grant = Allocate({"numa0-0000"});
  daemon_.Restart();
  ASSERT_TRUE(Start({"numa0-0000"}).ok());
  EXPECT_TRUE(Accepts(daemon_, grant));
}

TEST_F(GrantKeeperTest, AContainerWhoseGrantTheDaemonRefusesForGoodDoesNotStart) {
  Allocate({"numa0-0000"});
  daemon_.Restart();
  daemon_.RefuseCreate(MakeError(ErrorReason::FIELD_OUT_OF_RANGE));
  EXPECT_TRUE(absl::IsFailedPrecondition(Start({"numa0-0000"})));
}

// The daemon created it, and no container has its door.
TEST_F(GrantKeeperTest, AGrantWhoseResponseWasLostIsRevokedWithTheNextRenewal) {
  daemon_.LoseNextGrant();
  EXPECT_TRUE(IsTransportFailure(keeper_->Allocate(resource_, {"numa0-0000"}, now_).status()));
  const uint64_t grant = Allocate({"numa0-0000"});
  ASSERT_THAT(DaemonIds(), ElementsAre(1, 2));
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  EXPECT_THAT(DaemonIds(), ElementsAre(2));
  EXPECT_TRUE(Accepts(daemon_, grant));
}

}  // namespace
}  // namespace rnicd::kubernetes
