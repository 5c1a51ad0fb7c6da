// The C++ library's listeners and connectors against the real daemon: two sessions of one process, and a process.
#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/connector.h"
#include "client/cpp/listener.h"
#include "client/cpp/queue_pair.h"
#include "client/cpp/work_chain.h"
#include "tests/integration/library/librnicd_fixture.h"
#include "tests/support/process/child_client.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

// A session with a queue pair.
struct Party {
  explicit Party(Client session)
      : client(std::move(session)),
        queue(Must(CompletionQueue::Create(client, 16))),
        pair(Must(QueuePair::Create(queue, queue, {}))) {}

  NtStatus Next() {
    const auto completions = Must(queue.PollFor(1, kTimeout));
    return completions.empty() ? NtStatus::kIoTimeout : completions.front().status;
  }

  Client client;
  CompletionQueue queue;
  QueuePair pair;
};

// Waits for a request and accepts it, on another thread.
std::future<absl::StatusOr<Connector>> AcceptNext(Listener& listener, Party& party, AcceptOptions options = {}) {
  return std::async(std::launch::async, [&, options]() -> absl::StatusOr<Connector> {
    RNICD_ASSIGN_OR_RETURN(Connector connector, listener.NextRequest(kTimeout));
    RNICD_RETURN_IF_ERROR(connector.Accept(party.pair, options));
    return connector;
  });
}

class LibrnicdConnections : public Librnicd {};

TEST_F(LibrnicdConnections, SessionsMeetByNameAndPostedReceivesTakeWhatIsSent) {
  Party passive(MustConnect());
  Party active(MustConnect());
  Listener listener = Must(Listener::Listen(passive.client, {.name = "array"}));
  EXPECT_TRUE(listener.full_name().ends_with("/array"));
  ASSERT_TRUE(passive.pair.PostWithoutOutcome(WorkChain().Receive({}, {})).ok());
  auto accepted = AcceptNext(listener, passive, {.private_data = "welcome"});
  const Connector connector = Must(Connector::Establish(active.pair, listener.full_name()));
  EXPECT_TRUE(Must(connector.GetConnectionData()).private_data.starts_with("welcome"));
  const Connector request = Must(accepted.get());
  EXPECT_EQ(Must(active.pair.Post(WorkChain().Send({}, {}))).posted, 1u);
  EXPECT_EQ(active.Next(), NtStatus::kSuccess);
  EXPECT_EQ(passive.Next(), NtStatus::kSuccess);
}

TEST_F(LibrnicdConnections, SessionsMeetByAddressFromASharedEndpoint) {
  Party passive(MustConnect());
  Party active(MustConnect());
  Listener listener = Must(Listener::Listen(passive.client));
  const SharedEndpoint source = Must(SharedEndpoint::Create(active.client));
  auto accepted = AcceptNext(listener, passive);
  const Connector connector = Must(Connector::Establish(active.pair, listener.local(), {.shared_endpoint = &source}));
  const ConnectorAddresses ends = Must(connector.GetAddresses());
  EXPECT_EQ(ends.local, source.local());
  EXPECT_EQ(ends.peer, listener.local());
  const ConnectorAddresses seen = Must(Must(accepted.get()).GetAddresses());
  EXPECT_EQ(seen.local, ends.peer);
  EXPECT_EQ(seen.peer, ends.local);
}

TEST_F(LibrnicdConnections, ReadLimitsAreTheLeastOfBothSides) {
  Party passive(MustConnect());
  Party active(MustConnect());
  Listener listener = Must(Listener::Listen(passive.client, {.name = "limits"}));
  auto accepted = AcceptNext(listener, passive, {.inbound_read_limit = 1});
  const Connector connector = Must(Connector::Establish(active.pair, "limits", {.inbound_read_limit = 0}));
  const ConnectionData agreed = Must(connector.GetConnectionData());
  EXPECT_EQ(agreed.inbound_read_limit, 0u);
  EXPECT_EQ(agreed.outbound_read_limit, 1u);
  EXPECT_TRUE(accepted.get().ok());
}

TEST_F(LibrnicdConnections, RejectionHasWordsAndTheConnectorMayTryAgain) {
  Party passive(MustConnect());
  Party active(MustConnect());
  Listener listener = Must(Listener::Listen(passive.client, {.name = "door"}));
  auto rejected = std::async(std::launch::async, [&] { return Must(listener.NextRequest(kTimeout)).Reject("later"); });
  Connector connector = Must(Connector::Create(active.client));
  EXPECT_TRUE(FailedWith(connector.Connect(active.pair, "door"), ErrorReason::CONNECTION_REFUSED));
  EXPECT_TRUE(rejected.get().ok());
  EXPECT_TRUE(Must(connector.GetConnectionData()).private_data.starts_with("later"));
  auto accepted = AcceptNext(listener, passive);
  EXPECT_TRUE(connector.Connect(active.pair, "door").ok());
  EXPECT_TRUE(connector.CompleteConnect().ok());
  EXPECT_TRUE(accepted.get().ok());
}

TEST_F(LibrnicdConnections, SideThatIsLeftHearsOfItAndBothDisconnect) {
  Party passive(MustConnect());
  Party active(MustConnect());
  Listener listener = Must(Listener::Listen(passive.client, {.name = "ends"}));
  std::promise<void> told;
  auto accepted = AcceptNext(listener, passive, {.on_disconnected = [&told] { told.set_value(); }});
  Connector connector = Must(Connector::Establish(active.pair, "ends"));
  Connector request = Must(accepted.get());
  auto leaving = std::async(std::launch::async, [&] { return connector.Disconnect(); });
  EXPECT_TRUE(Must(request.WaitForDisconnect(kTimeout)));
  EXPECT_EQ(told.get_future().wait_for(kTimeout), std::future_status::ready);
  EXPECT_TRUE(request.Disconnect().ok());
  EXPECT_TRUE(leaving.get().ok());
  EXPECT_FALSE(Must(connector.WaitForDisconnect(kAtOnce)));
}

TEST_F(LibrnicdConnections, ListenersAreToldApartAndTheirAddressesAndNamesAreTaken) {
  Party passive(MustConnect());
  Party active(MustConnect());
  Listener one = Must(Listener::Listen(passive.client, {.name = "one"}));
  Listener two = Must(Listener::Listen(passive.client, {.name = "two"}));
  EXPECT_TRUE(FailedWith(Listener::Listen(passive.client, {.name = "one"}).status(), ErrorReason::NAME_TAKEN));
  EXPECT_TRUE(
      FailedWith(Listener::Listen(passive.client, {.local = one.local()}).status(), ErrorReason::ADDRESS_IN_USE));
  EXPECT_TRUE(FailedWith(Connector::Establish(active.pair, "three").status(), ErrorReason::NAME_NOT_FOUND));
  auto accepted = AcceptNext(two, passive);
  EXPECT_TRUE(Connector::Establish(active.pair, "two").ok());
  EXPECT_TRUE(accepted.get().ok());
  EXPECT_TRUE(FailedWith(one.NextRequest(kAtOnce).status(), ErrorReason::CONNECTION_TIMED_OUT));
}

TEST_F(LibrnicdConnections, PausedListenerRefusesAsIfNobodyListened) {
  Party passive(MustConnect());
  Party active(MustConnect());
  Listener listener = Must(Listener::Listen(passive.client, {.name = "paused"}));
  ASSERT_TRUE(listener.Pause().ok());
  EXPECT_TRUE(FailedWith(Connector::Establish(active.pair, "paused").status(), ErrorReason::CONNECTION_REFUSED));
  ASSERT_TRUE(listener.Resume().ok());
  auto accepted = AcceptNext(listener, passive);
  EXPECT_TRUE(Connector::Establish(active.pair, "paused").ok());
  EXPECT_TRUE(accepted.get().ok());
}

TEST_F(LibrnicdConnections, RequestThatWasTakenOutlivesItsListener) {
  Party passive(MustConnect());
  Party active(MustConnect());
  std::optional<Listener> listener = Must(Listener::Listen(passive.client, {.name = "closing"}));
  auto connecting = std::async(std::launch::async, [&] { return Connector::Establish(active.pair, "closing"); });
  Connector request = Must(listener->NextRequest(kTimeout));
  listener.reset();
  EXPECT_TRUE(request.Accept(passive.pair).ok());
  EXPECT_TRUE(connecting.get().ok());
}

TEST_F(LibrnicdConnections, KilledPeerIsGone) {
  Party passive(MustConnect());
  Listener listener = Must(Listener::Listen(passive.client, {.name = "victim"}));
  const std::unique_ptr<ChildClient> child = ChildClient::Start(daemon());
  child->MustRun("open");
  child->MustRun("qp");
  auto accepted = AcceptNext(listener, passive);
  child->MustRun("meet victim");
  Connector request = Must(accepted.get());
  child->KillHard();
  EXPECT_TRUE(Must(request.WaitForDisconnect(kTimeout)));
}

}  // namespace
}  // namespace rnicd::test
