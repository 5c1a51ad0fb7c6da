#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/ndk/completion.h"
#include "base/ndk/post_outcome.h"
#include "base/ndk/registration.h"
#include "base/ndk/work_request.h"
#include "base/strong_id.h"
#include "client/cpp/client_options.h"
#include "client/cpp/rings/ring_channel.h"

namespace rnicd::inline client {

// The requests that travel through the connection's ring, if it has one. It is opened by the first post, or by another
// request when there were kCallsFirst of them; with DataPath::kRings by the first of any kind.
// Each returns nothing when its caller must make the call instead: the ring is not open yet, not wanted or not served,
// has ended, or the request does not fit. The outcome is that of the call, errors included. With DataPath::kRings a
// ring that cannot be opened or has ended fails the request with the reason.
// Lifetime: owned by its connection.
// Threads: safe.
class RingPath {
 public:
  using Opener = std::function<absl::StatusOr<std::unique_ptr<RingChannel>>()>;
  // To open a ring takes as long as some six calls, so a program that registers a little memory is better off without.
  static constexpr int kCallsFirst = 8;
  // `open` is called once at most, if `data_path` allows rings.
  RingPath(DataPath data_path, Opener open) : data_path_(data_path), open_(std::move(open)) {}

  // A chain that is larger than the ring's payload area is posted in pieces.
  std::optional<absl::StatusOr<PostOutcome>> Post(QueuePairId pair, std::span<const WorkRequest> chain);
  // As Post, but returns once the requests are in the ring: the daemon completes what it refuses.
  std::optional<absl::Status> PostWithoutOutcome(QueuePairId pair, std::span<const WorkRequest> chain);
  // Waits until the daemon has executed what was posted without an outcome. Errors: why it may never do so.
  absl::Status AwaitPosts(std::chrono::milliseconds wait_max);
  std::optional<absl::StatusOr<Registration>> Register(MemoryRegionId region, std::span<const MdlEntry> chain,
                                                       uint64_t length, uint32_t flags);
  std::optional<absl::Status> Deregister(MemoryRegionId region);
  std::optional<absl::StatusOr<RemoteToken>> GetRemoteToken(MemoryRegionId region);
  std::optional<absl::Status> Arm(CompletionQueueId queue, CqNotifyType type);

  // As RingChannel::TakeLost.
  std::vector<Completion> TakeLost();

  // The session has ended. `why` must not be ok. The first call wins.
  void End(const absl::Status& why);
  // The processor that serves the ring, plus 1; 0 if unknown or without a ring.
  uint32_t daemon_cpu() const;

 private:
  using Reply = std::optional<absl::StatusOr<RingReply>>;

  // The ring, opened if need be. Nothing: make the call. Errors: with DataPath::kRings, why there is none.
  std::optional<absl::StatusOr<RingChannel*>> Channel();
  absl::StatusOr<RingChannel*> OpenOnce();
  // As RingChannel::Execute, with nothing also where there is no ring.
  Reply Execute(const RingRequest& request, absl::FunctionRef<void(std::byte*)> encode);

  const DataPath data_path_;

  // Null until the ring was opened; then constant.
  std::atomic<RingChannel*> opened_ = nullptr;
  // Nothing is opened any more.
  std::atomic<bool> refused_ = false;
  // Requests, other than posts, before the ring was opened.
  std::atomic<int> calls_ = 0;

  // Held while the ring is being opened.
  mutable Mutex mutex_;
  const Opener open_;
  std::unique_ptr<RingChannel> channel_ RNICD_GUARDED_BY(mutex_);
  // Why there is no ring; ok before the first request.
  absl::Status failure_ RNICD_GUARDED_BY(mutex_);

  mutable Mutex end_mutex_;
  absl::Status ended_ RNICD_GUARDED_BY(end_mutex_);
};

}  // namespace rnicd::inline client
