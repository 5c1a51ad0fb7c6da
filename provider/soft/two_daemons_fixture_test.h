#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/secrets/random.h"
#include "provider/api/provider_side_test.h"
#include "provider/api/recording_connector_test.h"
#include "provider/soft/soft_fixture_test.h"

namespace rnicd::provider {

// One end of a link to a single other daemon, in this process.
class FakeNetwork final : public SoftNetwork {
 public:
  static constexpr uint64_t kLink = 5;

  // `host`: that of the other daemon.
  explicit FakeNetwork(const IpAddress& host) : host_(host) {}

  void Join(FakeNetwork& other) { other_ = &other; }
  void Start(Receiver& receiver) override { receiver_ = &receiver; }
  void Stop() override { other_ = nullptr; }
  uint64_t Find(const IpAddress& host) const override { return other_ != nullptr && host == host_ ? kLink : 0; }
  bool Send(uint64_t link, const SoftFrame& frame) override {
    EXPECT_EQ(link, kLink);
    if (other_ == nullptr) {
      return false;
    }
    std::optional<SoftFrame> arrived = ParseFrame(FrameText(frame));
    EXPECT_TRUE(arrived.has_value());
    ++sent_;
    other_->receiver_->OnFrame(kLink, *std::move(arrived));
    return true;
  }
  void Taken(uint64_t /*link*/) override {}
  // As a peer that says anything.
  void Arrive(const SoftFrame& frame) { receiver_->OnFrame(kLink, frame); }
  // Both ends lose the link.
  void Lose() {
    for (FakeNetwork* const end : {this, std::exchange(other_, nullptr)}) {
      end->other_ = nullptr;
      end->receiver_->OnLost(kLink);
    }
  }
  int sent() const { return sent_; }

 private:
  const IpAddress host_;
  FakeNetwork* other_ = nullptr;
  Receiver* receiver_ = nullptr;
  int sent_ = 0;
};

// A daemon with one card, whose worker runs when the test says so.
struct FakeDaemon {
  FakeDaemon(const char* own, const char* peer)
      : network(std::make_shared<FakeNetwork>(*IpAddress::FromText(peer))),
        provider({.addresses = {*IpAddress::FromText(own)}, .network = network}, random,
                 std::unique_ptr<SoftWorker>(worker)) {}

  KernelRandom random;
  ManualWorker* const worker = new ManualWorker();
  const std::shared_ptr<FakeNetwork> network;
  SoftProvider provider;
};

// Near, of one daemon, connects to far, of another.
class TwoDaemons : public ::testing::Test {
 protected:
  TwoDaemons() {
    near_daemon_.network->Join(*far_daemon_.network);
    far_daemon_.network->Join(*near_daemon_.network);
    listener_ = *far_.adapter().Listen(far_address_, requests_);
  }
  ~TwoDaemons() override { RunAll(); }

  void RunAll() {
    while (near_daemon_.worker->RunJob() || far_daemon_.worker->RunJob()) {
    }
  }
  absl::Status Ask(const ConnectionOffer& offer = {}) {
    return near_connector_->Connect(near_.pair(), {.local = near_address_, .peer = far_address_}, offer);
  }
  void Request(const ConnectionOffer& offer = {}) {
    ASSERT_TRUE(Ask(offer).ok());
    RunAll();
    taken_ = requests_->Take();
  }
  void Connect() {
    Request();
    ASSERT_TRUE(taken_.request.connector->Accept(far_.pair(), {}).ok());
    RunAll();
    ASSERT_TRUE(near_connector_->CompleteConnect({}).ok());
    RunAll();
    ASSERT_EQ(near_heard(), (Events{"accepted", "established"}));
    ASSERT_EQ(far_heard(), Events{"established"});
  }
  Events near_heard() { return near_events_->WaitFor(0); }
  Events far_heard() { return taken_.events->WaitFor(0); }
  static void SetText(ProviderSide& side, size_t offset, std::string_view text) {
    std::memcpy(side.pages().bytes().data() + offset, text.data(), text.size());
  }
  static std::string Text(ProviderSide& side, size_t offset, size_t length) {
    return {reinterpret_cast<const char*>(side.pages().bytes().data()) + offset, length};
  }
  RemoteToken far_token() { return far_.region()->remote_token(); }

  FakeDaemon near_daemon_{"198.18.1.1", "198.18.2.1"};
  FakeDaemon far_daemon_{"198.18.2.1", "198.18.1.1"};
  ProviderSide near_{near_daemon_.provider, "soft0"};
  ProviderSide far_{far_daemon_.provider, "soft0"};
  const NetworkAddress near_address_{.ip = *IpAddress::FromText("198.18.1.1"), .port = 50000};
  const NetworkAddress far_address_{.ip = *IpAddress::FromText("198.18.2.1"), .port = 7};
  const std::shared_ptr<RecordingRequests> requests_ = std::make_shared<RecordingRequests>();
  std::unique_ptr<DeviceListener> listener_;
  const std::shared_ptr<RecordingConnector> near_events_ = std::make_shared<RecordingConnector>();
  std::unique_ptr<DeviceConnector> near_connector_ = *near_.adapter().CreateConnector(near_events_);
  RecordingRequests::Taken taken_;
};

}  // namespace rnicd::provider
