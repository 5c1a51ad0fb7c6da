// What operators see, page by page and as a whole, and the streams of health.
#include "daemon/service/admin/admin_service.h"

#include <google/protobuf/util/json_util.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "daemon/service/service_fixture_test.h"
#include "grpc/health/v1/health.pb.h"
#include "rnicd/v1/admin_service.pb.h"
#include "rnicd/v1/memory_service.pb.h"

namespace rnicd::service {
namespace {

class Operators : public ServiceTest {
 protected:
  // The dump as JSON, and as the message that it stands for.
  std::string Json() { return Must<v1::DumpStateResponse>(Operator(), "AdminService.DumpState").json(); }
  v1::StateDump Dump() {
    v1::StateDump dump;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(Json(), &dump).ok());
    return dump;
  }
};

TEST_F(Operators, GetADumpThatIsJsonOfEverythingButTokensAndSecrets) {
  const Household client(world_, 1);
  const auto local =
      Must<v1::GetLocalTokenResponse>(client, "MemoryService.GetLocalToken", "mr_id: $registered").local_token();
  const auto remote =
      Must<v1::GetRemoteTokenResponse>(client, "MemoryService.GetRemoteToken", "mr_id: $registered").remote_token();
  const auto memory = Must<v1::AllocateMemoryResponse>(client, "MemoryService.AllocateMemory", "size: 4096");
  const v1::StateDump dump = Dump();
  EXPECT_EQ(dump.status().version(), "1.2.3");
  EXPECT_EQ(dump.status().generation(), 2u);
  EXPECT_EQ(dump.status().sessions(), 1u);
  ASSERT_EQ(dump.sessions_size(), 1);
  EXPECT_EQ(std::to_string(dump.sessions(0).session_id()), client["$session"]);
  std::set<std::string> regions;
  for (const v1::RegionInfo& region : dump.regions()) {
    regions.insert(std::to_string(region.mr_id()));
  }
  for (const char* const name : {"$mr", "$registered", "$fast", "$initialized", "$bound"}) {
    EXPECT_TRUE(regions.contains(client[name])) << name;
  }
  ASSERT_EQ(dump.grants_size(), 1);
  EXPECT_EQ(std::to_string(dump.grants(0).grant_id()), client["$grant"]);
  EXPECT_EQ(dump.tenants_size(), 2);
  const std::string json = Json();
  for (const std::string& secret : {client["$secret"], memory.fd_ticket()}) {
    EXPECT_EQ(json.find(secret), std::string::npos);
  }
  const std::set<std::string> numbers = absl::StrSplit(json, absl::ByAnyChar("\"{}[],: \n"));
  EXPECT_TRUE(numbers.contains(client["$registered"])) << "numbers are found";
  for (const uint32_t token : {local, remote}) {
    EXPECT_FALSE(numbers.contains(std::to_string(token)));
  }
}

TEST_F(Operators, SeeTheLatestPodsUntilOthersAreSet) {
  Ask(Operator(), "AdminService.SetPods",
      "pods { uid: '0d9e1b5c-90a4-4a3c-8f0e-6d7d5b3f2c11' namespace: 'training' name: 'pod-7' "
      "labels { key: 'tier' value: 'gold' } "
      "containers { name: 'main' devices { resource_name: 'r' device_ids: 'm-0' } } }");
  ASSERT_EQ(Dump().pods_size(), 1);
  EXPECT_EQ(Dump().pods(0).ShortDebugString(),
            "uid: \"0d9e1b5c-90a4-4a3c-8f0e-6d7d5b3f2c11\" namespace: \"training\" name: \"pod-7\" "
            "labels { key: \"tier\" value: \"gold\" } "
            "containers { name: \"main\" devices { resource_name: \"r\" device_ids: \"m-0\" } }");
  Ask(Operator(), "AdminService.SetPods", "");
  EXPECT_EQ(Dump().pods_size(), 0);
}

TEST_F(Operators, SeeWhatAGrantMayConnectWith) {
  Must<v1::CreateGrantResponse>(Operator(), "AdminService.CreateGrant",
                                "name: 'a' connections { listen { prefix: '10.98.0.1' } accept { prefix: '::/0' } }");
  const auto grants = Must<v1::ListGrantsResponse>(Operator(), "AdminService.ListGrants");
  ASSERT_EQ(grants.grants_size(), 1);
  EXPECT_EQ(grants.grants(0).connections().ShortDebugString(),
            "listen { prefix: \"10.98.0.1/32\" first_port: 1024 last_port: 65535 } accept { prefix: \"::/0\" }");
}

TEST_F(Operators, GetListsPageByPageWithEachEntryOnce) {
  const Household first(world_, 1);
  const Household second(world_, 2);
  std::set<uint64_t> sessions;
  std::set<uint64_t> regions;
  std::string token;
  int pages = 0;
  do {
    const auto page = Must<v1::ListRegionsResponse>(Operator(), "AdminService.ListRegions",
                                                    "page_size: 4 page_token: '" + token + "'");
    EXPECT_LE(page.regions_size(), 4);
    for (const v1::RegionInfo& region : page.regions()) {
      EXPECT_TRUE(regions.insert(region.mr_id()).second || !sessions.contains(region.session_id()));
      sessions.insert(region.session_id());
    }
    token = page.next_page_token();
    ++pages;
  } while (!token.empty() && pages < 10);
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(sessions.size(), 2u);
  const auto listed = Must<v1::ListSessionsResponse>(Operator(), "AdminService.ListSessions", "page_size: 1");
  const auto rest = Must<v1::ListSessionsResponse>(Operator(), "AdminService.ListSessions",
                                                   "page_size: 1 page_token: '" + listed.next_page_token() + "'");
  ASSERT_EQ(rest.sessions_size(), 1);
  EXPECT_GT(rest.sessions(0).session_id(), listed.sessions(0).session_id());
  EXPECT_EQ(rest.next_page_token(), "");
}

// A trailer of gRPC is limited to 8 KiB, and has the text three times.
TEST_F(Operators, GetALongRefusalOfAPolicyCutAfterAWholeLine) {
  std::string problems;
  while (problems.size() < 10'000) {
    problems += "policy:3: something is wrong\n";
  }
  process_.reloaded = MakeErrorWithDetail(ErrorReason::POLICY_REFUSED, problems);
  const gate::Ended refused = Ask(Operator(), "AdminService.ReloadPolicy", "");
  ExpectRefusal(refused, ErrorReason::POLICY_REFUSED, "");
  EXPECT_LT(refused.message.size(), 1600u);
  EXPECT_TRUE(refused.message.ends_with("is wrong\n... and more, which the log has")) << refused.message;
  process_.reloaded = MakeErrorWithDetail(ErrorReason::POLICY_REFUSED, "policy:3: short");
  EXPECT_NE(Ask(Operator(), "AdminService.ReloadPolicy", "").message.find("policy:3: short)"), std::string::npos);
}

// Makes and removes doors at once.
class RecordingDoors final : public core::Doors {
 public:
  std::string DirectoryOf(GrantId grant) const override { return "/doors/" + std::to_string(grant.value); }
  void Open(std::shared_ptr<core::Tenant> tenant, OnOpen done) override {
    opened.push_back(tenant->grant());
    done(outcome);
  }
  void Close(GrantId grant, OnClosed done) override {
    closed.push_back(grant);
    done();
  }

  absl::Status outcome;
  std::vector<GrantId> opened;
  std::vector<GrantId> closed;
};

class OperatorsOfDoors : public Operators {
 protected:
  OperatorsOfDoors() { process_.doors_given = &doors_; }
  v1::ListGrantsResponse Grants() { return Must<v1::ListGrantsResponse>(Operator(), "AdminService.ListGrants"); }

  RecordingDoors doors_;
};

TEST_F(OperatorsOfDoors, MakeThemInPlaceOfASecretAndRemoveThemWithTheGrant) {
  const auto grant = Must<v1::CreateGrantResponse>(Operator(), "AdminService.CreateGrant", "name: 'a' door: true");
  EXPECT_EQ(grant.secret(), "");
  EXPECT_EQ(grant.socket_dir(), "/doors/" + std::to_string(grant.grant_id()));
  EXPECT_EQ(doors_.opened, std::vector{GrantId{grant.grant_id()}});
  ASSERT_EQ(Grants().grants_size(), 1);
  EXPECT_EQ(Grants().grants(0).door().ShortDebugString(), "socket_dir: \"" + grant.socket_dir() + "\"");
  Must<v1::RevokeGrantResponse>(Operator(), "AdminService.RevokeGrant",
                                "grant_id: " + std::to_string(grant.grant_id()));
  EXPECT_EQ(doors_.closed, doors_.opened);
}

TEST_F(OperatorsOfDoors, RenewThemWithoutADigest) {
  const auto grant = Must<v1::CreateGrantResponse>(Operator(), "AdminService.CreateGrant",
                                                   "name: 'a' door: true renewal { grant_id: 7 }");
  EXPECT_EQ(grant.socket_dir(), "/doors/7");
  const std::string digest(32, 'x');
  ExpectRefusal(Ask(Operator(), "AdminService.CreateGrant",
                    "name: 'b' door: true renewal { grant_id: 8 secret_sha256: '" + digest + "' }"),
                ErrorReason::FIELD_OUT_OF_RANGE, "renewal.secret_sha256");
  ExpectRefusal(Ask(Operator(), "AdminService.CreateGrant", "name: 'b' renewal { grant_id: 8 }"),
                ErrorReason::FIELD_OUT_OF_RANGE, "renewal.secret_sha256");
}

TEST_F(OperatorsOfDoors, KeepNoGrantWhoseDoorCannotBeMade) {
  doors_.outcome = MakeErrorWithDetail(ErrorReason::DOOR_UNAVAILABLE, "no space");
  const gate::Ended refused = Ask(Operator(), "AdminService.CreateGrant", "name: 'a' door: true");
  ExpectRefusal(refused, ErrorReason::DOOR_UNAVAILABLE, "");
  EXPECT_NE(refused.message.find("no space"), std::string::npos);
  EXPECT_EQ(Grants().grants_size(), 0);
}

TEST_F(OperatorsOfDoors, RemoveWhatAnEarlierDaemonLeft) {
  ExpectRefusal(Ask(Operator(), "AdminService.RevokeGrant", "grant_id: 7"), ErrorReason::GRANT_NOT_FOUND, "grant_id");
  EXPECT_EQ(doors_.closed, std::vector{GrantId{7}});
}

TEST_F(OperatorsOfDoors, AreRefusedWhereTheSystemHasNone) {
  process_.doors_given = nullptr;
  ExpectRefusal(Ask(Operator(), "AdminService.CreateGrant", "name: 'a' door: true"), ErrorReason::DOOR_UNAVAILABLE, "");
  EXPECT_EQ(Grants().grants_size(), 0);
}

class HealthStreams : public ServiceTest {
 protected:
  using Response = grpc::health::v1::HealthCheckResponse;

  static std::vector<Response::ServingStatus> Statuses(const gate::FakeEnd& end) {
    std::vector<Response::ServingStatus> statuses;
    for (const std::string& bytes : end.written()) {
      Response response;
      EXPECT_TRUE(response.ParseFromString(bytes));
      statuses.push_back(response.status());
    }
    return statuses;
  }
};

TEST_F(HealthStreams, WriteEachChangeOnceThePreviousMessageIsOnItsWay) {
  std::shared_ptr<gate::Call> call;
  const auto end = Begin(Operator(), "Health.Watch", *RequestOf("Health.Watch", "service: 'rnicd'"), &call);
  EXPECT_THAT(Statuses(*end), testing::ElementsAre(Response::NOT_SERVING));
  health_.SetCards(true);
  health_.SetCards(false);
  health_.SetCards(true);
  EXPECT_EQ(end->written().size(), 1u) << "the first message is still on its way";
  end->LetGo();
  EXPECT_THAT(Statuses(*end), testing::ElementsAre(Response::NOT_SERVING, Response::SERVING));
  end->LetGo();
  health_.NotifyAll();
  EXPECT_EQ(end->written().size(), 2u) << "nothing has changed";
  call->Cancel();
  health_.SetCards(false);
  EXPECT_EQ(end->written().size(), 2u) << "nobody listens";
}

// gRPC's health protocol has it so: the service may come.
TEST_F(HealthStreams, OfAnUnknownServiceSayThatAndStayOpen) {
  std::shared_ptr<gate::Call> call;
  const auto end = Begin(Operator(), "Health.Watch", *RequestOf("Health.Watch", "service: 'other'"), &call);
  EXPECT_THAT(Statuses(*end), testing::ElementsAre(Response::SERVICE_UNKNOWN));
  EXPECT_EQ(end->times(), 0);
  call->Cancel();
}

}  // namespace
}  // namespace rnicd::service
