#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/secrets/random.h"
#include "base/status.h"
#include "provider/api/recording_listener_test.h"
#include "provider/api/requests_test.h"
#include "provider/soft/net/soft_worker.h"
#include "provider/soft/soft_endpoint.h"
#include "provider/soft/soft_fabric.h"
#include "provider/soft/soft_memory_region.h"
#include "provider/soft/soft_nic.h"
#include "provider/soft/soft_provider.h"

namespace rnicd::provider {

inline constexpr uint64_t kPage = kNdkPageBytes;
// The protection domain of objects that are made without one.
inline constexpr uint64_t kDomain = 7;

// A worker controlled by the test: a job waits until the test runs it.
class ManualWorker final : public SoftWorker {
 public:
  void Post(std::function<void()> job) override { PostAfter(std::chrono::microseconds(0), std::move(job)); }
  void PostAfter(std::chrono::microseconds /*delay*/, std::function<void()> job) override {
    MutexLock lock(mutex_);
    if (!stopped_) {
      jobs_.push_back(std::move(job));
    }
  }
  void Stop() override {
    std::deque<std::function<void()>> dropped;
    MutexLock lock(mutex_);
    stopped_ = true;
    dropped.swap(jobs_);
  }

  size_t size() const {
    MutexLock lock(mutex_);
    return jobs_.size();
  }
  // The oldest job is number 0. False when there is no such job.
  bool RunJob(size_t number = 0) {
    std::function<void()> job;
    {
      MutexLock lock(mutex_);
      if (number >= jobs_.size()) {
        return false;
      }
      job = std::move(jobs_[number]);
      jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(number));
    }
    job();
    return true;
  }
  void RunAll() {
    while (RunJob()) {
    }
  }

 private:
  mutable Mutex mutex_;
  std::deque<std::function<void()>> jobs_ RNICD_GUARDED_BY(mutex_);
  bool stopped_ RNICD_GUARDED_BY(mutex_) = false;
};

// One card, assembled without a provider.
class SoftCard {
 public:
  explicit SoftCard(const SoftOptions& options = {}, std::unique_ptr<SoftWorker> worker = nullptr)
      : manual_(worker == nullptr ? new ManualWorker() : nullptr),
        fabric_(std::make_shared<SoftFabric>(
            random_, manual_ == nullptr ? std::move(worker) : std::unique_ptr<SoftWorker>(manual_))),
        nic_(std::make_shared<SoftNic>("soft0", IpAddress(), options, random_, fabric_)) {}
  ~SoftCard() { fabric_->worker().Stop(); }
  SoftCard(const SoftCard&) = delete;
  SoftCard& operator=(const SoftCard&) = delete;

  const std::shared_ptr<SoftNic>& nic() const { return nic_; }
  SoftFabric& fabric() { return *fabric_; }
  // Null when the card was given a worker.
  ManualWorker* worker() { return manual_; }

 private:
  KernelRandom random_;
  // Owned by the fabric.
  ManualWorker* const manual_;
  const std::shared_ptr<SoftFabric> fabric_;
  const std::shared_ptr<SoftNic> nic_;
};

// A queue pair, its listener, and memory of its domain with all access rights.
class SoftSide {
 public:
  static constexpr uint64_t kBase = kSideBase;

  explicit SoftSide(SoftCard& card, const QueuePairLimits& limits = kRoomyLimits, uint64_t bytes = 4 * kNdkPageBytes)
      : worker_(card.worker()),
        nic_(card.nic()),
        domain_(nic_->NextDomain()),
        bytes_(bytes),
        region_(Register(kAllRights)),
        endpoint_(SoftEndpoint::Create(nic_, domain_, limits, listener_)) {}
  // A further queue pair of the same domain, with memory of its own.
  SoftSide(const SoftSide& sibling, uint64_t bytes)
      : worker_(sibling.worker_),
        nic_(sibling.nic_),
        domain_(sibling.domain_),
        bytes_(bytes),
        region_(Register(kAllRights)),
        endpoint_(SoftEndpoint::Create(nic_, domain_, kRoomyLimits, listener_)) {}
  ~SoftSide() {
    // Shutdown waits for the worker's jobs, even after a test that has failed.
    if (worker_ != nullptr) {
      worker_->RunAll();
    }
    Shutdown();
  }
  SoftSide(const SoftSide&) = delete;
  SoftSide& operator=(const SoftSide&) = delete;

  QueuePairEngine& endpoint() { return *endpoint_; }
  RecordingListener& listener() { return listener_; }
  SoftMemoryRegion& region() { return *region_; }
  uint64_t domain() const { return domain_; }
  std::vector<std::byte>& bytes() { return bytes_; }
  QueuePairState state() const { return endpoint_->state(); }
  Outcomes initiated() const { return listener_.outcomes(WorkQueue::kInitiator); }
  Outcomes received() const { return listener_.outcomes(WorkQueue::kReceive); }
  int peer_gone() const { return listener_.peer_gone(); }

  void Shutdown() {
    endpoint_->Shutdown();
    listener_.Close();
  }
  void Flush() {
    endpoint_->Fail();
    endpoint_->Run();
  }
  absl::Status ConnectTo(const SoftSide& peer) { return endpoint_->Connect(peer.endpoint_->address()); }
  // The memory once more, as a registration of its own.
  std::unique_ptr<SoftMemoryRegion> Register(const AccessRights& rights) {
    std::span<std::byte> run(bytes_);
    auto region = SoftMemoryRegion::Register(
        nic_, domain_, {.base = {kBase}, .length = run.size(), .runs = {&run, 1}, .rights = rights});
    EXPECT_TRUE(region.ok()) << region.status();
    return *std::move(region);
  }

  RemoteToken Post(WorkRequest request) {
    const absl::StatusOr<RemoteToken> token = endpoint_->Enqueue(std::move(request));
    EXPECT_TRUE(token.ok()) << token.status();
    endpoint_->Run();
    return token.value_or(RemoteToken{});
  }
  absl::Status TryPost(WorkRequest request) {
    absl::Status status = endpoint_->Enqueue(std::move(request)).status();
    endpoint_->Run();
    return status;
  }
  bool Refuses(WorkRequest request, ErrorReason reason) {
    return FailedWith(endpoint_->Enqueue(std::move(request)).status(), reason);
  }
  ScatterGatherEntry Entry(uint64_t offset, uint32_t length) const {
    return {.address = {kBase + offset}, .length = length, .token = region_->local_token()};
  }
  void SetText(uint64_t offset, std::string_view text) {
    std::memcpy(bytes_.data() + offset, text.data(), text.size());
  }
  std::string Text(uint64_t offset, size_t length) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + offset, length};
  }

 private:
  // Null when the worker runs its jobs itself.
  ManualWorker* const worker_;
  const std::shared_ptr<SoftNic> nic_;
  const uint64_t domain_;
  std::vector<std::byte> bytes_;
  RecordingListener listener_;
  const std::unique_ptr<SoftMemoryRegion> region_;
  const std::shared_ptr<QueuePairEngine> endpoint_;
};

inline void Connect(SoftSide& first, SoftSide& second) {
  EXPECT_TRUE(first.ConnectTo(second).ok());
  EXPECT_TRUE(second.ConnectTo(first).ok());
}

}  // namespace rnicd::provider
