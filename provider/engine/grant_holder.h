#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "provider/engine/engine_request.h"
#include "provider/engine/invalidatable.h"

namespace rnicd::provider {

// Access to memory that a card gives for one request, a FastRegisterWork or a BindWork.
class EngineGrant {
 public:
  struct Shape {
    bool is_remote() const { return rights.remote_read || rights.remote_write; }

    VirtualAddress base;
    uint64_t length = 0;
    AccessRights rights;
    std::span<const std::span<std::byte>> runs;
  };

  virtual ~EngineGrant() = default;
  // True when the card must bind a window in queue order.
  virtual bool needs_bind() const = 0;
  // When it returns ok, no transfer uses the grant; otherwise the grant stays in force.
  virtual absl::Status End() = 0;
};

// What a card keeps for a request that may have a grant.
struct GrantRequest : CardRequest {
  // kBegun: GrantHolder::BeginBind has succeeded, and ConcludeBind must follow.
  enum class Stage : uint8_t { kPrepared, kBegun, kInForce };

  void Clear() override {
    grant.reset();
    stage = Stage::kPrepared;
  }

  // Null for other requests, and once it is in force.
  std::unique_ptr<EngineGrant> grant;
  Stage stage = Stage::kPrepared;
};

// A fast region or a window: holds at most one grant at a time, which is in force under its tokens from the execution
// of the request until its invalidation. A card adds what its tokens reach, and retires the holder before it is gone.
// Threads: safe. Executions on different queue pairs are serialized.
class GrantHolder : public Invalidatable, public std::enable_shared_from_this<GrantHolder> {
 public:
  // `local_token`: that of a fast region, by which a read may invalidate it. `first`: the remote token before the first
  // request.
  GrantHolder(std::optional<LocalToken> local_token, RemoteToken first) : local_token_(local_token), issued_(first) {}

  // Records the token of a request that was accepted.
  void Issue(RemoteToken token);
  RemoteToken issued() const;
  bool in_force() const;
  // Puts the grant of a request in force. Where the holder has another or is retired, the request fails and its grant
  // ends.
  NtStatus Execute(EngineRequest& request, RemoteToken token, uint64_t queue_pair);
  // The same in two steps, where the card binds a window in between. Only after a BeginBind that is true; a window's
  // region then stays registered. ConcludeBind has the status of the card's request, and adds what it put in force.
  bool BeginBind(EngineRequest& request);
  NtStatus ConcludeBind(EngineRequest& request, RemoteToken token, uint64_t queue_pair, BoundWindows& bound);
  // Returns when no transfer uses the grant. False when there was none or the card refused.
  bool Invalidate();
  bool InvalidateToken(uint32_t token, std::optional<uint64_t> arrived_at) override;

 protected:
  // Invalidates it, and refuses all that come later.
  void RetireForGood();
  // Null unless the queue pair has bound the grant in force.
  const EngineGrant* GrantBoundBy(uint64_t queue_pair) const RNICD_REQUIRES(mutex_) {
    return held_.queue_pair == queue_pair ? held_.grant.get() : nullptr;
  }

  const std::optional<LocalToken> local_token_;
  mutable Mutex mutex_;

 private:
  struct Held {
    // Destroyed after the grant.
    std::shared_ptr<DeviceMemoryRegion> region;
    std::shared_ptr<const void> backing;
    std::unique_ptr<EngineGrant> grant;
    RemoteToken token;
    uint64_t queue_pair = 0;
  };

  // For the card, under the lock. The tokens reach the grant from now on, or again, because the card refused to end it.
  virtual void Publish(const EngineGrant& grant, RemoteToken token) = 0;
  // The tokens reach nothing, while the grant ends.
  virtual void Suspend(RemoteToken /*token*/) {}
  // The grant has ended: its remote token may be given to another.
  virtual void Withdraw(RemoteToken token) = 0;
  virtual void Count(const EngineGrant& /*grant*/) {}

  bool MayHold(const WorkRequest& request);
  bool Hold(EngineRequest& request, RemoteToken token, uint64_t queue_pair);
  bool EndHeld(Held& ended) RNICD_REQUIRES(mutex_);

  RemoteToken issued_ RNICD_GUARDED_BY(mutex_);
  Held held_ RNICD_GUARDED_BY(mutex_);
  bool retired_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::provider
