#pragma once

// Shared by this folder's tests: a front door with names of its own, its clients, and a server that records what it is
// to serve.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/core/session/core_fixture_test.h"
#include "daemon/door/recording_server_fake.h"
#include "daemon/pipes/front_door.h"
#include "rnicd/v1/pipe_channel.pb.h"

namespace rnicd::pipes {

// A client's end of a pipe.
// Threads: one.
class PipeClient {
 public:
  // Opens the pipe as soon as it is not busy.
  explicit PipeClient(const std::string& name);
  ~PipeClient() { Close(); }
  PipeClient(PipeClient&& other) = default;

  bool connected() const { return handle_.valid(); }
  void Close() { handle_.Reset(-1); }
  bool Send(const std::string& bytes) const;
  // Empty when the daemon has closed the pipe.
  std::optional<v1::PipeReply> Receive() const;
  v1::PipeReply Ask(const v1::PipeRequest& request) const;
  v1::PipeReply Hello() const;
  v1::PipeReply Give(const core::FdTicket& ticket, uint32_t handle) const;
  v1::PipeReply Take(const core::FdTicket& ticket) const;
  // True once the daemon has closed the pipe.
  bool HangsUp() const;

 private:
  UniqueFd handle_;
};

// A connection to this port of 127.0.0.1, with its first bytes, and without.
UniqueSocket ConnectTo(uint32_t port);
UniqueSocket ConnectSilentlyTo(uint32_t port);
UniqueSocket ConnectByBothFamiliesTo(uint32_t port);
// True once the daemon has closed the connection.
bool HangsUp(const UniqueSocket& socket);

class FrontDoorTest : public ::testing::Test {
 protected:
  FrontDoorTest();
  ~FrontDoorTest() override {
    if (door_ != nullptr) {
      door_->Stop();
    }
  }

  void Open(const door::ConnectionLimits& limits = {}) {
    door_ = MakeDoor(limits);
    const absl::Status started = door_->Start(names_);
    ASSERT_TRUE(started.ok()) << started;
  }
  std::unique_ptr<FrontDoor> MakeDoor(const door::ConnectionLimits& limits) {
    return std::make_unique<FrontDoor>(limits, door::Services{.node = world_.node,
                                                              .registry = world_.registry,
                                                              .logger = logger_,
                                                              .bulkhead = bulkhead_,
                                                              .server = server_});
  }
  PipeClient Connect() const { return PipeClient(names_.workloads); }
  // The caller of the connection number `count`, once it is served.
  core::Caller CallerOf(size_t count) {
    EXPECT_TRUE(Eventually([&] { return server_.admitted().size() >= count; })) << "the connection is not served";
    return server_.admitted().at(count - 1).caller;
  }
  // Causes of refused connections.
  std::vector<std::string> Refusals() const {
    std::vector<std::string> notes;
    for (const core::RecordedDecision& decision : world_.observer.counts().decisions) {
      if (decision.what == "connection") {
        notes.push_back(decision.note);
      }
    }
    return notes;
  }
  bool IsRefused(std::string_view cause) const {
    return Eventually([&] {
      const std::vector<std::string> refusals = Refusals();
      return std::find(refusals.begin(), refusals.end(), cause) != refusals.end();
    });
  }
  void ExpectServes() const {
    const PipeClient client = Connect();
    EXPECT_NE(client.Hello().port(), 0u);
  }

  // The same, once the daemon no longer turns this process away unseen.
  bool ServesInTime() {
    return Eventually([&] {
      world_.clock.Advance(door::ConnectBackoff::kLongest);
      const PipeClient client = Connect();
      v1::PipeRequest hello;
      hello.mutable_hello();
      return client.Send(hello.SerializeAsString()) && client.Receive().has_value();
    });
  }

  PipeNames names_;
  log::Logger logger_{log::Options{}};
  door::RecordingServer server_;
  const SteadyClock clock_;
  door::Bulkhead bulkhead_{clock_};
  core::World world_;
  std::unique_ptr<FrontDoor> door_;
};

}  // namespace rnicd::pipes
