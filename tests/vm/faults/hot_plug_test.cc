// Cards that come and go under a daemon that runs.
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "tests/support/calls/expect.h"
#include "tests/support/connection_client.h"
#include "tests/support/process/child_process.h"
#include "tests/support/process/wait.h"
#include "tests/support/work_requests.h"
#include "tests/vm/faults/fault_fixture.h"
#include "tests/vm/faults/network.h"
#include "tests/vm/faults/tools.h"

namespace rnicd::test {
namespace {

constexpr char kCard[] = "rxc";
constexpr char kCardAddress[] = "10.97.0.1";
// librdmacm keeps them, of nothing, of the last card that it was used with and that is gone.
constexpr uint64_t kDescriptorsOfNothing = 2;

// A link of its own, and the card on it.
class HotPlug : public FaultTest {
 protected:
  HotPlug() {
    MustRunTool({"ip", "link", "add", "vc", "type", "veth", "peer", "name", "vd"});
    MustRunTool({"ip", "address", "add", std::string(kCardAddress) + "/24", "dev", "vc"});
    MustRunTool({"ip", "link", "set", "vc", "up"});
    MustRunTool({"ip", "link", "set", "vd", "up"});
  }
  // The connection manager goes on to serve the cards that stay.
  void TearDown() override {
    ExpectOk(Listen(*watcher_, CreateListener(*watcher_), AddressOf(kNearAddress)));
    watcher_.reset();
    MustRunTool({"ip", "link", "delete", "vc"});
    FaultTest::TearDown();
  }

  bool IsOffered(const std::string& name = kCard) {
    const auto listed = watcher_->Call(&AdapterStub::ListAdapters, {});
    ExpectOk(listed);
    for (const v1::AdapterSummary& adapter : listed.response.adapters()) {
      if (adapter.name() == name) {
        return true;
      }
    }
    return false;
  }
  // A second card of the name is refused while the kernel still removes the first.
  void Add() {
    MustRunTool({"rdma", "link", "add", kCard, "type", "rxe", "netdev", "vc"});
    ASSERT_TRUE(Eventually([this] { return IsOffered(); })) << daemon().log();
  }
  std::unique_ptr<ChildProcess> BeginRemoval() {
    auto removal = ChildProcess::Start({.command = {"rdma", "link", "delete", kCard}});
    EXPECT_TRUE(removal.ok()) << removal.status();
    EXPECT_TRUE(Eventually([this] { return !IsOffered(); })) << daemon().log();
    return *std::move(removal);
  }
  void ExpectEnds(ChildProcess& removal) {
    const auto end = removal.WaitForEnd();
    ASSERT_TRUE(end.has_value()) << "the kernel waits: " << Describe(KernelObjectsOn(kCard)) << daemon().log();
    EXPECT_EQ(end->exit_code, 0) << removal.errors().Text();
  }

 private:
  std::optional<TestSession> watcher_{std::in_place, daemon()};
};

// A session that uses the card: memory, two connected queue pairs, a fast registration, a listener.
class UserOfTheCard {
 public:
  explicit UserOfTheCard(DaemonProcess& daemon) : session_(daemon) {
    setenv("RNICD_TEST_ADAPTER", kCard, /*overwrite=*/1);
    EXPECT_NE(session_.adapter_id(), 0u);
    unsetenv("RNICD_TEST_ADAPTER");
  }

  void UseAll() {
    memory_.emplace(session_, kMessageBytes);
    const RemoteBytes bytes = memory_->Register();
    near_.emplace(session_);
    far_.emplace(session_);
    ConnectPair(*near_, *far_);
    near_->MustRun(InlineWriteRequest("across", bytes.address, bytes.token));
    EXPECT_EQ(memory_->Text(0, 6), "across");
    near_->MustRun(FastRegisterRequest(FastRegion(session_, 16), memory_->LogicalPages(), kMessageBytes, kFastBase,
                                       kRemoteRights));
    ExpectOk(Listen(session_, CreateListener(session_), AddressOf(kCardAddress)));
  }
  TestSession& session() { return session_; }

 private:
  TestSession session_;
  std::optional<OwnMemory> memory_;
  std::optional<TestQueue> near_;
  std::optional<TestQueue> far_;
};

// Each time also with what librdmacm and the kernel's module hold.
TEST_F(HotPlug, ACardComesAndGoesTenTimes) {
  for (int turn = 0; turn < 10; ++turn) {
    ASSERT_NO_FATAL_FAILURE(Add());
    auto user = std::make_unique<UserOfTheCard>(daemon());
    user->UseAll();
    if (turn % 2 == 0) {
      user.reset();
    }
    const auto removal = BeginRemoval();
    user.reset();
    ASSERT_NO_FATAL_FAILURE(ExpectEnds(*removal)) << "turn " << turn;
  }
  ExpectMoreDescriptors(kDescriptorsOfNothing);
}

TEST_F(HotPlug, TheOtherCardsWorkOn) {
  TestSession session(daemon());
  ForeignLink link(session);
  link.Greet();
  ASSERT_NO_FATAL_FAILURE(Add());
  const auto removal = BeginRemoval();
  ASSERT_NO_FATAL_FAILURE(ExpectEnds(*removal));
  link.Greet();
}

TEST_F(HotPlug, ARenamedCardIsAnotherOne) {
  ASSERT_NO_FATAL_FAILURE(Add());
  MustRunTool({"rdma", "dev", "set", kCard, "name", "rxd"});
  EXPECT_TRUE(Eventually([this] { return !IsOffered(); })) << daemon().log();
  EXPECT_TRUE(Eventually([this] { return IsOffered("rxd"); })) << daemon().log();
  MustRunTool({"rdma", "link", "delete", "rxd"});
}

TEST_F(HotPlug, ARemovedCardIsTakenFromASessionThatKeepsIt) {
  ASSERT_NO_FATAL_FAILURE(Add());
  UserOfTheCard user(daemon());
  user.UseAll();
  const auto removal = BeginRemoval();
  ASSERT_NO_FATAL_FAILURE(ExpectEnds(*removal));
  v1::QueryAdapterInfoRequest request;
  request.set_adapter_id(user.session().adapter_id());
  EXPECT_FALSE(user.session().Call(&AdapterStub::QueryAdapterInfo, request).ok());
  ASSERT_NO_FATAL_FAILURE(Add());
  UserOfTheCard(daemon()).UseAll();
  ExpectMoreDescriptors(kDescriptorsOfNothing);
}

}  // namespace
}  // namespace rnicd::test
