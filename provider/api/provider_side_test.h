#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "provider/api/device.h"
#include "provider/api/recording_listener_test.h"
#include "provider/api/requests_test.h"
#include "provider/api/shared_pages_test.h"

namespace rnicd::provider {

// A session's queue pair on any provider, its listener, and a region of its domain with all rights.
// Lifetime: the provider outlives it.
class ProviderSide {
 public:
  static constexpr uint64_t kBase = kSideBase;

  ProviderSide(Provider& provider, std::string_view adapter, const QueuePairLimits& limits = kRoomyLimits)
      : adapter_(*provider.OpenAdapter(adapter)), domain_(*adapter_->CreateProtectionDomain()) {
    MakeQueuePair(limits);
  }
  // A further queue pair of the same domain, with a region of its own.
  ProviderSide(const ProviderSide& sibling) : adapter_(sibling.adapter_), domain_(sibling.domain_) {
    MakeQueuePair(kRoomyLimits);
  }
  // Without Shutdown, because the queue pair's destructor must do the same.
  ~ProviderSide() {
    pair_.reset();
    listener_.Close();
  }
  ProviderSide& operator=(const ProviderSide&) = delete;

  DeviceAdapter& adapter() { return *adapter_; }
  DeviceProtectionDomain& domain() { return *domain_; }
  DeviceCompletionQueue& queue() { return *queue_; }
  DeviceQueuePair& pair() const { return *pair_; }
  RecordingListener& listener() { return listener_; }
  const std::shared_ptr<DeviceMemoryRegion>& region() { return region_; }
  SharedPages& pages() { return pages_; }
  QueuePairState state() const { return pair_->state(); }
  Outcomes initiated() const { return listener_.outcomes(WorkQueue::kInitiator); }
  Outcomes received() const { return listener_.outcomes(WorkQueue::kReceive); }
  int peer_gone() const { return listener_.peer_gone(); }

  void Shutdown() {
    pair_->Shutdown();
    listener_.Close();
  }
  absl::Status ConnectTo(const ProviderSide& peer) { return pair_->Connect(peer.pair_->address()); }
  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> Register(const AccessRights& rights) {
    std::span<std::byte> run = pages_.bytes();
    return domain_->RegisterMemory({.base = {kBase}, .length = run.size(), .runs = {&run, 1}, .rights = rights});
  }

  RemoteToken Post(WorkRequest request) {
    const absl::StatusOr<RemoteToken> token = pair_->Enqueue(std::move(request));
    EXPECT_TRUE(token.ok()) << token.status();
    pair_->Kick();
    return token.value_or(RemoteToken{});
  }
  absl::Status TryPost(WorkRequest request) {
    absl::Status status = pair_->Enqueue(std::move(request)).status();
    pair_->Kick();
    return status;
  }
  bool Refuses(WorkRequest request, ErrorReason reason) {
    const absl::Status status = pair_->Enqueue(std::move(request)).status();
    EXPECT_TRUE(FailedWith(status, reason)) << status;
    return FailedWith(status, reason);
  }
  ScatterGatherEntry Entry(uint64_t offset, uint32_t length) const {
    return {.address = {kBase + offset}, .length = length, .token = region_->local_token()};
  }
  bool Initiated(size_t count) { return listener_.WaitFor(WorkQueue::kInitiator, count); }
  bool Received(size_t count) { return listener_.WaitFor(WorkQueue::kReceive, count); }

 private:
  void MakeQueuePair(const QueuePairLimits& limits) {
    queue_ = *adapter_->CreateCompletionQueue(16);
    region_ = *Register(kAllRights);
    auto pair = domain_->CreateQueuePair(limits, *queue_, *queue_, listener_);
    EXPECT_TRUE(pair.ok()) << pair.status();
    pair_ = *std::move(pair);
  }

  SharedPages pages_{4};
  RecordingListener listener_;
  const std::shared_ptr<DeviceAdapter> adapter_;
  const std::shared_ptr<DeviceProtectionDomain> domain_;
  std::unique_ptr<DeviceCompletionQueue> queue_;
  std::shared_ptr<DeviceMemoryRegion> region_;
  std::unique_ptr<DeviceQueuePair> pair_;
};

inline void Connect(ProviderSide& first, ProviderSide& second) {
  EXPECT_TRUE(first.ConnectTo(second).ok());
  EXPECT_TRUE(second.ConnectTo(first).ok());
}

}  // namespace rnicd::provider
