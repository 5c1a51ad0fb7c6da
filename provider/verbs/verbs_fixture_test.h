#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/random.h"
#include "base/status.h"
#include "provider/api/recording_listener_test.h"
#include "provider/verbs/qp_address.h"
#include "provider/verbs/verbs_fake_test.h"
#include "provider/verbs/verbs_provider.h"

namespace rnicd::provider {

inline constexpr QueuePairLimits kRoomyLimits{
    .receive_depth = 64, .initiator_depth = 64, .receive_entries = 16, .initiator_entries = 16, .inline_bytes = 256};
inline constexpr uint64_t kPage = kNdkPageBytes;

// Looks until `holds` does; false when it never does.
inline bool Eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    usleep(200);
  }
  return true;
}

// Pages of a memory file, as core gives them to a card: shared, writable, populated.
class SharedPages {
 public:
  explicit SharedPages(size_t count) : bytes_(count * kPage) {
    const int file = memfd_create("verbs_test", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(file, static_cast<off_t>(bytes_)), 0);
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    EXPECT_NE(memory, MAP_FAILED);
    data_ = static_cast<std::byte*>(memory);
    close(file);
  }
  ~SharedPages() { munmap(data_, bytes_); }
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  std::span<std::byte> bytes() const { return {data_, bytes_}; }
  std::span<std::byte> page(size_t number) const { return bytes().subspan(number * kPage, kPage); }

 private:
  const size_t bytes_;
  std::byte* data_ = nullptr;
};

// Nothing moves by itself: no probe, no window. A card that does nothing is soon given up.
inline VerbsOptions QuietOptions() {
  return {.fast_engine = FastEngine::kRegistration,
          .probe_interval = std::chrono::hours(1),
          .card_timeout = std::chrono::milliseconds(500)};
}

// The daemon's part of a card, which remembers what the card said by itself.
class Daemon {
 public:
  explicit Daemon(FakeVerbs& fake, VerbsOptions options = QuietOptions()) : Daemon(fake, fake, std::move(options)) {}
  // `api` leads to `fake`.
  Daemon(FakeVerbs& fake, VerbsApi& api, VerbsOptions options) : fake_(fake) {
    options.on_event = [this](const DeviceEvent& event) {
      MutexLock lock(mutex_);
      events_.push_back(event.adapter + " " + std::string(event.what));
    };
    auto provider = VerbsProvider::Create(options, random_, api);
    EXPECT_TRUE(provider.ok()) << provider.status();
    provider_ = provider.ok() ? *std::move(provider) : nullptr;
  }

  FakeVerbs& fake() { return fake_; }
  VerbsProvider& provider() { return *provider_; }
  std::vector<std::string> events() const {
    MutexLock lock(mutex_);
    return events_;
  }

 private:
  FakeVerbs& fake_;
  KernelRandom random_;
  mutable Mutex mutex_;
  std::vector<std::string> events_ RNICD_GUARDED_BY(mutex_);
  std::unique_ptr<VerbsProvider> provider_;
};

// A session's queue pair, who listens to it, and a region of its domain that everybody may use in every way.
class Side {
 public:
  static constexpr uint64_t kBase = 0x100000;

  explicit Side(Daemon& daemon, const QueuePairLimits& limits = kRoomyLimits, std::string_view adapter = "fake0")
      : fake_(daemon.fake()),
        adapter_(*daemon.provider().OpenAdapter(adapter)),
        domain_(*adapter_->CreateProtectionDomain()) {
    MakeQueuePair(limits);
  }
  // A further queue pair of the same domain, with a region of its own.
  explicit Side(const Side& sibling) : fake_(sibling.fake_), adapter_(sibling.adapter_), domain_(sibling.domain_) {
    MakeQueuePair(kRoomyLimits);
  }
  ~Side() { Shutdown(); }
  Side& operator=(const Side&) = delete;

  DeviceAdapter& adapter() { return *adapter_; }
  DeviceProtectionDomain& domain() { return *domain_; }
  DeviceQueuePair& pair() { return *pair_; }
  RecordingListener& listener() { return listener_; }
  const std::shared_ptr<DeviceMemoryRegion>& region() { return region_; }
  SharedPages& pages() { return pages_; }
  // The card's number of the queue pair.
  uint32_t number() const { return ParseQpAddress(pair_->address())->qpn; }
  QueuePairState state() const { return pair_->state(); }
  Outcomes initiated() const { return listener_.outcomes(WorkQueue::kInitiator); }
  Outcomes received() const { return listener_.outcomes(WorkQueue::kReceive); }
  int peer_gone() const { return listener_.peer_gone(); }
  std::vector<PostedSend> posted() const { return fake_.PostedSends(number()); }

  void Shutdown() {
    pair_->Shutdown();
    listener_.Close();
  }
  absl::Status ConnectTo(const Side& peer) { return pair_->Connect(peer.pair_->address()); }
  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> Register(const AccessRights& rights) {
    std::span<std::byte> run = pages_.bytes();
    return domain_->RegisterMemory({.base = {kBase}, .length = run.size(), .runs = {&run, 1}, .rights = rights});
  }

  RemoteToken Post(WorkRequest request) {
    const absl::StatusOr<RemoteToken> token = pair_->Enqueue(std::move(request));
    EXPECT_TRUE(token.ok()) << token.status();
    pair_->Ring();
    return token.value_or(RemoteToken{});
  }
  bool Refuses(WorkRequest request, ErrorReason reason) {
    const absl::Status status = pair_->Enqueue(std::move(request)).status();
    EXPECT_TRUE(FailedWith(status, reason)) << status;
    return FailedWith(status, reason);
  }
  ScatterGatherEntry Entry(uint64_t offset, uint32_t length) const {
    return {.token = region_->local_token(), .address = {kBase + offset}, .length = length};
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

  FakeVerbs& fake_;
  SharedPages pages_{4};
  RecordingListener listener_;
  const std::shared_ptr<DeviceAdapter> adapter_;
  const std::shared_ptr<DeviceProtectionDomain> domain_;
  std::unique_ptr<DeviceCompletionQueue> queue_;
  std::shared_ptr<DeviceMemoryRegion> region_;
  std::unique_ptr<DeviceQueuePair> pair_;
};

inline void Connect(Side& first, Side& second) {
  EXPECT_TRUE(first.ConnectTo(second).ok());
  EXPECT_TRUE(second.ConnectTo(first).ok());
}

// --- requests ---

using Entries = std::vector<ScatterGatherEntry>;

inline WorkRequest Request(uint64_t context, Entries entries, decltype(WorkRequest::work) work) {
  WorkRequest request;
  request.request_context = context;
  request.entries = std::move(entries);
  request.work = std::move(work);
  return request;
}
inline WorkRequest Send(uint64_t context, Entries entries = {}, const SendWork& work = {}) {
  return Request(context, std::move(entries), work);
}
inline WorkRequest Receive(uint64_t context, Entries entries = {}) {
  return Request(context, std::move(entries), ReceiveWork{});
}
inline WorkRequest Write(uint64_t context, Entries entries = {}, RemoteToken token = {}, uint64_t offset = 0) {
  return Request(context, std::move(entries),
                 WriteWork{.remote_address = {Side::kBase + offset}, .remote_token = token});
}
inline WorkRequest Read(uint64_t context, Entries entries = {}, RemoteToken token = {}, uint64_t offset = 0) {
  return Request(context, std::move(entries),
                 ReadWork{.remote_address = {Side::kBase + offset}, .remote_token = token});
}
inline WorkRequest ReadAndInvalidate(uint64_t context, Entries entries) {
  return Request(context, std::move(entries),
                 ReadWork{.remote_address = {Side::kBase}, .remote_token = {7}, .local_invalidate = true});
}
inline WorkRequest FastRegister(uint64_t context, const std::shared_ptr<DeviceFastRegion>& region,
                                std::vector<std::span<std::byte>> runs, const AccessRights& rights = kAllRights,
                                std::shared_ptr<const void> backing = nullptr) {
  uint64_t length = 0;
  for (const std::span<std::byte> run : runs) {
    length += run.size();
  }
  return Request(context, {},
                 FastRegisterWork{.region = region,
                                  .base = {Side::kBase},
                                  .length = length,
                                  .rights = rights,
                                  .runs = std::move(runs),
                                  .backing = std::move(backing)});
}
inline WorkRequest Invalidate(uint64_t context, const std::shared_ptr<DeviceFastRegion>& region) {
  return Request(context, {}, InvalidateWork{.region = region, .window = nullptr});
}
inline WorkRequest Invalidate(uint64_t context, const std::shared_ptr<DeviceMemoryWindow>& window) {
  return Request(context, {}, InvalidateWork{.region = nullptr, .window = window});
}
inline WorkRequest Bind(uint64_t context, const std::shared_ptr<DeviceMemoryWindow>& window,
                        const std::shared_ptr<DeviceMemoryRegion>& region, uint64_t offset = 0, uint64_t length = kPage,
                        std::shared_ptr<const void> backing = nullptr) {
  return Request(context, {},
                 BindWork{.window = window,
                          .region = region,
                          .base = {Side::kBase + offset},
                          .length = length,
                          .rights = {.remote_read = true, .remote_write = true},
                          .backing = std::move(backing)});
}
inline WorkRequest Silent(WorkRequest request) {
  request.silent_success = true;
  return request;
}
inline WorkRequest Fenced(WorkRequest request) {
  request.read_fence = true;
  return request;
}

inline constexpr NtStatus kOk = NtStatus::kSuccess;
inline constexpr NtStatus kCancelled = NtStatus::kCancelled;
inline constexpr NtStatus kRefused = NtStatus::kInvalidDeviceRequest;

// A card in memory, and a daemon that owns it.
class VerbsTest : public ::testing::Test {
 protected:
  explicit VerbsTest(const VerbsOptions& options = QuietOptions()) : daemon_(WorkingByItself(fake_), options) {
    fake_.set_automatic(false);
  }
  ~VerbsTest() override { EXPECT_THAT(fake_.violations(), ::testing::IsEmpty()); }

  // Returns when the daemon has seen all that the card has said so far: the last of it is a message to a queue pair
  // that stands behind all others.
  void Settle() {
    if (!barrier_.has_value()) {
      barrier_.emplace(daemon_);
      ASSERT_TRUE(barrier_->ConnectTo(*barrier_).ok());
    }
    const size_t count = barrier_->received().size() + 1;
    barrier_->Post(Receive(count));
    ASSERT_TRUE(fake_.Receive(barrier_->number(), 0));
    ASSERT_TRUE(barrier_->Received(count));
  }

  // As a start-up probe of the card's windows needs it.
  static FakeVerbs& WorkingByItself(FakeVerbs& fake) {
    fake.set_automatic(true);
    return fake;
  }

  FakeVerbs fake_;
  Daemon daemon_;
  std::optional<Side> barrier_;
};

}  // namespace rnicd::provider
