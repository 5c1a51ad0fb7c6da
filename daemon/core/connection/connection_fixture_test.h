#pragma once

// Shared fixture of the connections' unit tests: owners that listen, connect and wait for events.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "daemon/core/queue/queue_fixture_test.h"

namespace rnicd::core {

// Reading is one at a time, so limits say which side they are of.
inline constexpr ReadLimits kSixteenReads{.inbound = 16, .outbound = 16};

class ConnectionOwner : public QueueOwner {
 public:
  explicit ConnectionOwner(World& world, uint64_t number = 1, uint32_t uid = 1000)
      : QueueOwner(world, number, 64, uid) {}

  ListenerId Listen(const std::string& name = "", uint16_t port = 0) {
    const ListenerId id = NewListener();
    const auto at = session->Begin()->listeners().Listen(id, {.port = port}, name);
    EXPECT_TRUE(at.ok()) << at.status();
    listening_at = at.value_or(ListeningAt{}).local;
    return id;
  }
  ListenerId NewListener() {
    const auto id = session->Begin()->listeners().Create(adapter, 7);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(ListenerId{});
  }
  absl::Status TryListen(ListenerId id, const LocalAddress& local, const std::string& name = "") {
    return session->Begin()->listeners().Listen(id, local, name).status();
  }
  ConnectorId NewConnector() {
    const auto id = session->Begin()->connectors().Create(adapter);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(ConnectorId{});
  }
  ConnectArguments To(const NetworkAddress& peer, ConnectorId connector, QueuePairId pair) const {
    return {.connector = connector, .queue_pair = pair, .peer = peer, .limits = kSixteenReads};
  }
  // A request that ends with the status.
  template <typename Begin>
  std::shared_ptr<Awaited<absl::Status>> Start(const Begin& begin) {
    auto ended = std::make_shared<Awaited<absl::Status>>();
    const absl::StatusOr<SessionGuard> held = session->Begin();
    const Done<> done = [ended](const absl::Status& status) { ended->Set(status); };
    FinishUnlessPending(begin(held->connectors(), done), done);
    return ended;
  }
  std::shared_ptr<Awaited<absl::Status>> StartConnect(const ConnectArguments& arguments) {
    return Start([&](SessionConnectors& all, const Done<>& done) { return all.Connect(arguments, {}, done); });
  }
  std::shared_ptr<Awaited<absl::Status>> StartComplete(ConnectorId id, uint64_t context = 0) {
    return Start(
        [&](SessionConnectors& all, const Done<>& done) { return all.CompleteConnect(id, context, {}, done); });
  }
  std::shared_ptr<Awaited<absl::Status>> StartAccept(ConnectorId id, QueuePairId pair,
                                                     const ReadLimits& limits = kSixteenReads) {
    return Start([&](SessionConnectors& all, const Done<>& done) {
      return all.Accept({.connector = id, .queue_pair = pair, .limits = limits, .disconnect_context = 8}, {}, done);
    });
  }
  std::shared_ptr<Awaited<absl::Status>> StartDisconnect(ConnectorId id) {
    return Start([&](SessionConnectors& all, const Done<>& done) { return all.Disconnect(id, {}, done); });
  }
  std::shared_ptr<Awaited<absl::Status>> StartClose(ConnectorId id) {
    return Start([&](SessionConnectors& all, const Done<>& done) { return all.Close(id, {}, done); });
  }
  std::shared_ptr<Awaited<absl::Status>> StartCloseListener(ListenerId id) {
    auto ended = std::make_shared<Awaited<absl::Status>>();
    const Done<> done = [ended](const absl::Status& status) { ended->Set(status); };
    FinishUnlessPending(session->Begin()->listeners().Close(id, {}, done), done);
    return ended;
  }

  // The next event, which must be of that kind.
  template <typename Body>
  Body WaitEvent() {
    // Shared, because a wake may still be under way after Detach.
    const auto woken = std::make_shared<Awaited<bool>>();
    std::optional<Event> event;
    // Wakes at once.
    EXPECT_TRUE(session->events().Attach([woken] { woken->Set(true); }));
    bool in_time = true;
    for (int seen = 0; in_time && !event.has_value();) {
      in_time = woken->WaitForMore(seen);
      // Before the queue is looked at, so that no later wake is missed.
      seen = woken->times();
      event = session->events().Pop();
    }
    session->events().Detach();
    const Body* const body = event.has_value() ? std::get_if<Body>(&event->body) : nullptr;
    EXPECT_NE(body, nullptr);
    return body != nullptr ? *body : Body{};
  }
  ConnectorId WaitRequest() { return WaitEvent<ConnectRequested>().connector; }

  // That of the last Listen.
  NetworkAddress listening_at;
};

inline absl::Status Result(const std::shared_ptr<Awaited<absl::Status>>& ended) {
  return ended->Get().value_or(absl::DeadlineExceededError("the request never ended"));
}

// Two owners of one tenant, and a connection between them.
class ConnectionTest : public ::testing::Test {
 protected:
  explicit ConnectionTest(const Policy& policy = OneTenantForEachUid(Limits{}), const Limits& session = {})
      : world_({.limits = {.session = session}, .policy = policy}) {}

  // The connectors of a connection that is made: active, passive.
  std::pair<ConnectorId, ConnectorId> MakeConnection() {
    listener_ = server_.Listen();
    const ConnectorId active = client_.NewConnector();
    client_pair_ = client_.Pair();
    server_pair_ = server_.Pair();
    const auto connect = client_.StartConnect(client_.To(server_.listening_at, active, client_pair_));
    const ConnectorId passive = server_.WaitRequest();
    const auto accept = server_.StartAccept(passive, server_pair_);
    EXPECT_TRUE(Result(connect).ok()) << Result(connect);
    EXPECT_TRUE(Result(client_.StartComplete(active, 9)).ok());
    EXPECT_TRUE(Result(accept).ok()) << Result(accept);
    return {active, passive};
  }

  World world_;
  ConnectionOwner server_{world_, 1};
  ConnectionOwner client_{world_, 2};
  ListenerId listener_;
  QueuePairId client_pair_;
  QueuePairId server_pair_;
};

}  // namespace rnicd::core
