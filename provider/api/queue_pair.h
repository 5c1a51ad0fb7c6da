#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "base/access_rights.h"
#include "base/ntstatus.h"
#include "base/operation_type.h"
#include "base/units.h"

namespace rnicd::provider {

class DeviceMemoryRegion;

// A key that work requests register pages under, again and again; nothing is reachable through it in between.
// Lifetime: shared by its owner and the requests that name it; outlived by its protection domain.
// Threads:  safe.
class DeviceFastRegion {
 public:
  virtual ~DeviceFastRegion() = default;
  // The same for life.
  virtual LocalToken local_token() const = 0;
  // That of the last FastRegisterWork a queue pair accepted; before the first one a token that nothing answers to.
  virtual RemoteToken remote_token() const = 0;
  // True between the execution of a FastRegisterWork and that of its invalidation.
  virtual bool registered() const = 0;
  // Ends the registration, if any, for good: no transfer reaches the pages when it returns, and requests that name the
  // region fail when their turn comes.
  virtual void Retire() = 0;
};

// A window onto a memory region, of the kind that works through one queue pair (type 2).
// Lifetime, threads, Retire: as DeviceFastRegion. Source: ibv_alloc_mw(3).
class DeviceMemoryWindow {
 public:
  virtual ~DeviceMemoryWindow() = default;
  // That of the last BindWork a queue pair accepted; before the first one a token that nothing answers to.
  virtual RemoteToken remote_token() const = 0;
  virtual void Retire() = 0;
};

// A piece of memory of a request: either bytes of this process, or an address within the region of a local token.
struct ScatterGatherEntry {
  // Not null: the bytes themselves; token and address say nothing then.
  std::span<std::byte> host;
  LocalToken token;
  VirtualAddress address;
  uint32_t length = 0;
};

struct SendWork {
  bool solicit = false;
  // A token of the receiver's, to be invalidated before its receive completes.
  std::optional<RemoteToken> invalidate;
};
struct ReceiveWork {};
struct ReadWork {
  VirtualAddress remote_address;
  RemoteToken remote_token;
  // Invalidates the registration of the first entry's token after the bytes have arrived.
  bool local_invalidate = false;
};
struct WriteWork {
  VirtualAddress remote_address;
  RemoteToken remote_token;
};
struct FastRegisterWork {
  std::shared_ptr<DeviceFastRegion> region;
  VirtualAddress base;
  uint64_t length = 0;
  AccessRights rights;
  // Laid end to end they become [base, base + length). Populated memory; it stays mapped while `backing` lives.
  std::vector<std::span<std::byte>> runs;
  // Let go of when the device does not reach the runs any more: after the invalidation, or after a failure.
  std::shared_ptr<const void> backing;
};
struct InvalidateWork {
  // One of the two.
  std::shared_ptr<DeviceFastRegion> region;
  std::shared_ptr<DeviceMemoryWindow> window;
};
struct BindWork {
  std::shared_ptr<DeviceMemoryWindow> window;
  std::shared_ptr<DeviceMemoryRegion> region;
  VirtualAddress base;
  uint64_t length = 0;
  AccessRights rights;
  // Keeps the region; let go of when the window is not bound to it any more, or after a failure.
  std::shared_ptr<const void> backing;
};

// One request, as core judged it.
struct WorkRequest {
  uint64_t request_context = 0;
  bool silent_success = false;
  bool read_fence = false;
  // The payload, unless there is inline data.
  std::vector<ScatterGatherEntry> entries;
  std::optional<std::vector<std::byte>> inline_data;
  // Keeps what `entries` point at; let go of when the request is complete.
  std::shared_ptr<const void> keep_alive;
  std::variant<SendWork, ReceiveWork, ReadWork, WriteWork, FastRegisterWork, InvalidateWork, BindWork> work;
};

// What became of a request.
struct Completion {
  uint64_t request_context = 0;
  OperationType type = OperationType::kSend;
  NtStatus status = NtStatus::kSuccess;
  // Of a receive that succeeded.
  uint32_t bytes = 0;
  // With kReceiveAndInvalidate.
  RemoteToken invalidated;
  // A receive whose sender wants the receiver to be woken.
  bool solicited = false;
};

enum class WorkQueue : uint8_t { kInitiator, kReceive };

// Whom a queue pair tells.
// Lifetime: outlives the queue pair, or at least its Shutdown.
// Threads:  called from any thread, for each of the two queues one call at a time. Must be quick and must not call any
//           queue pair.
class QueuePairListener {
 public:
  virtual ~QueuePairListener() = default;
  // In posting order within a queue.
  virtual void OnCompletion(WorkQueue queue, const Completion& completion) = 0;
  // The peer disconnected, failed or is gone; at most once.
  virtual void OnPeerGone() = 0;
};

// The hardware's side of a completion queue; core keeps the completions themselves.
// Source: ibv_create_cq(3).
class DeviceCompletionQueue {
 public:
  virtual ~DeviceCompletionQueue() = default;
  // Errors: DEVICE_OUT_OF_RESOURCES, DEVICE_FAILED.
  virtual absl::Status Resize(uint32_t depth) = 0;
};

struct QueuePairLimits {
  uint32_t receive_depth = 0;
  uint32_t initiator_depth = 0;
  uint32_t receive_entries = 0;
  uint32_t initiator_entries = 0;
  uint32_t inline_bytes = 0;
};

// The states a user can tell apart; a card has more.
enum class QueuePairState : uint8_t { kInit, kReadyToSend, kError };

// Two queues of requests to one peer, reliable and in order (RC).
//
// Each queue is executed in order; a request begins when the one before has done all that can be seen, except that
// reads may still be under way unless a read fence asks for them. A request that fails is reported, takes the pair to
// kError, and all others complete with kCancelled, silent ones included. An access the peer's memory does not allow
// takes the peer to kError as well. A send without a receive at the peer waits for one.
// Lifetime: outlived by its protection domain and completion queues. Threads: safe.
// Source:   ibv_create_qp(3), ibv_post_send(3).
class DeviceQueuePair {
 public:
  virtual ~DeviceQueuePair() = default;
  virtual QueuePairState state() const = 0;
  // What the peer connects to; opaque, at most 64 bytes.
  virtual std::string address() const = 0;
  // Goes to kReadyToSend. What needs the peer waits until it has connected here too.
  // Errors: QP_NOT_CONNECTABLE, QP_ADDRESS_UNKNOWN.
  virtual absl::Status Connect(std::string_view peer_address) = 0;
  // Accepts a request; it begins with the next Ring at the latest. Of a FastRegisterWork or BindWork: its new remote
  // token, otherwise 0. A refusal changes nothing. Errors: QUEUE_FULL; QP_NOT_CONNECTED, of receives only once Shutdown
  // has begun; those of DeviceProtectionDomain::RegisterMemory where memory must be registered for it.
  virtual absl::StatusOr<RemoteToken> Enqueue(WorkRequest request) = 0;
  virtual void Ring() = 0;
  // Goes to kError; every request completes, maybe after this returned.
  virtual void Flush() = 0;
  // Likewise, and returns when no transfer to or from here is under way any more.
  virtual void Disconnect() = 0;
  // Likewise, and nothing is reported after it returned. The destructor does the same.
  virtual void Shutdown() = 0;
};

}  // namespace rnicd::provider
