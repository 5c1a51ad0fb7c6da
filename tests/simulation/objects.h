#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/strong_id.h"
#include "daemon/core/completion_queue.h"
#include "daemon/core/event_queue.h"
#include "daemon/core/ledger.h"
#include "provider/api/queue_pair.h"
#include "tests/simulation/keys.h"
#include "tests/simulation/memory.h"
#include "tests/simulation/refusals.h"

namespace rnicd::simulation {

// How a request that pends tells its end.
struct Report {
  // On the event stream; otherwise to the callback of this number.
  bool to_events = false;
  uint64_t callback = 0;
  core::RequestKind kind = core::RequestKind::kRegisterMr;
  uint64_t request_context = 0;
  uint64_t object_id = 0;
  // What stays charged until the event is fetched.
  std::optional<core::Resource> charge;
};

// What can be closed while something holds it open.
struct Closing {
  bool begun = false;
  // None for a close that was over at once, or by the end of the session.
  std::optional<Report> report;
};

struct Adapter {
  uint64_t number = 0;
  AdapterId id;
  Nic* nic = nullptr;
  Closing closing;
};

struct Domain {
  // Also what the model's keys know it by.
  uint64_t number = 0;
  ProtectionDomainId id;
  std::shared_ptr<Adapter> adapter;
  LocalToken privileged;
  Closing closing;
};

struct Region {
  enum class State : uint8_t { kCreated, kRegistering, kRegistered, kDeregistering, kInitializing, kInitialized };

  uint64_t number = 0;
  MemoryRegionId id;
  std::shared_ptr<Domain> domain;
  bool fast = false;
  State state = State::kCreated;
  Closing closing;
  // Jobs and binds that hold the region open.
  uint64_t requests = 0;
  // Charged; none unless registered or about to be.
  std::vector<FilePage> pages;
  std::vector<MemoryUse> uses;
  // While registered.
  std::shared_ptr<Target> target;
  // Of the fast kind: charged while it is or becomes ready, and what was asked for.
  uint64_t fast_pages = 0;
  bool remote_access = false;
  std::shared_ptr<Key> key;
};

struct Mapping {
  uint64_t number = 0;
  LogicalMappingId id;
  std::shared_ptr<Adapter> adapter;
  uint64_t first = 0;
  std::shared_ptr<const MappedPages> pages;
};

// A bind that is posted, or a window that is bound: the region cannot be closed as long as this lives.
class RegionHold {
 public:
  // `on_release` finishes a close that waited.
  RegionHold(std::shared_ptr<Region> region, std::function<void()> on_release)
      : region_(std::move(region)), on_release_(std::move(on_release)) {
    ++region_->requests;
  }
  RegionHold(const RegionHold&) = delete;
  RegionHold& operator=(const RegionHold&) = delete;
  ~RegionHold() {
    --region_->requests;
    on_release_();
  }

 private:
  const std::shared_ptr<Region> region_;
  const std::function<void()> on_release_;
};

struct Window {
  uint64_t number = 0;
  MemoryWindowId id;
  std::shared_ptr<Domain> domain;
  std::shared_ptr<Key> key;
  bool ever_bound = false;
};

struct CompletionQueue {
  uint64_t number = 0;
  CompletionQueueId id;
  std::shared_ptr<Adapter> adapter;
  uint64_t context = 0;
  uint32_t depth = 0;
  Closing closing;
  std::deque<core::CqResult> results;
  bool overrun = false;
  // The overrun was told.
  bool silent = false;
  std::optional<core::CqNotifyType> armed;
  // A notification waits to be fetched.
  bool notifying = false;
  // Completions are numbered as they come: the last one, the last that was taken, the last that wakes whoever asked for
  // solicited ones, the last there was when a notification was sent.
  uint64_t pushed = 0;
  uint64_t taken = 0;
  uint64_t waking = 0;
  uint64_t notified = 0;

  // True when it became one too many.
  bool Push(const core::CqResult& result);
  void Arm(core::CqNotifyType type);
  // The notification was fetched.
  void Fetched();

 private:
  void NotifyWhenDue();
};

// A piece of a request's memory: bytes that were found when it was posted, or a token to be looked up.
struct Entry {
  Pieces host;
  LocalToken token;
  uint64_t address = 0;
  uint32_t length = 0;
};

enum class RequestKind : uint8_t { kSend, kReceive, kRead, kWrite, kFastRegister, kInvalidate, kBind };

struct Request {
  enum class Stage : uint8_t { kQueued, kReading, kLanding, kDone };

  RequestKind kind = RequestKind::kSend;
  uint64_t context = 0;
  bool silent = false;
  bool fence = false;
  std::vector<Entry> entries;
  std::optional<std::vector<std::byte>> inline_data;
  std::shared_ptr<const Backing> backing;
  bool solicit = false;
  // Of a send.
  std::optional<RemoteToken> invalidate;
  // Of reads and writes.
  uint64_t remote_address = 0;
  RemoteToken remote_token;
  bool local_invalidate = false;
  // Of fast registrations, invalidations and binds.
  std::shared_ptr<Key> key;
  uint64_t base = 0;
  uint64_t length = 0;
  AccessRights rights;
  Pieces pieces;
  // The token the card issued when it accepted the request.
  RemoteToken token;
  // Of a bind.
  std::shared_ptr<Target> bound_to;
  std::shared_ptr<const RegionHold> hold;

  uint64_t serial = 0;
  Stage stage = Stage::kQueued;
  NtStatus status = NtStatus::kSuccess;

  uint64_t size() const;
};

struct Client;

struct QueuePair : std::enable_shared_from_this<QueuePair> {
  // Also what the card's witness knows it by.
  uint64_t number = 0;
  QueuePairId id;
  Client* client = nullptr;
  std::shared_ptr<Domain> domain;
  std::shared_ptr<CompletionQueue> receive_queue;
  std::shared_ptr<CompletionQueue> initiator_queue;
  provider::QueuePairLimits limits;
  uint64_t context = 0;
  std::string address;
  // The place of its address among others.
  std::string rank;

  provider::QueuePairState state = provider::QueuePairState::kInit;
  // Whom it connected to; 0 before.
  uint64_t peer_number = 0;
  std::weak_ptr<QueuePair> peer;
  // Who connected here and waits for this side to connect, in the soft card's order.
  std::map<std::string, std::weak_ptr<QueuePair>> early_visitors;
  bool peer_lost = false;
  bool told_peers = false;
  bool sender_waits = false;
  // Nothing begins any more; what is under way arrives.
  bool disconnecting = false;
  bool running = false;
  bool run_again = false;
  uint64_t next_serial = 1;
  std::deque<Request> slots;
  std::deque<Request> receives;
  bool closed = false;

  // What must be reported in this step, in order.
  std::deque<provider::Completion> due[2];
  bool peer_gone_due = false;
  // The event that says so waits to be fetched.
  bool disconnect_waits = false;

  Nic& nic() const { return *domain->adapter->nic; }
  // With a dead completion queue its queue pairs are dead.
  bool dead() const { return receive_queue->overrun || initiator_queue->overrun; }
  provider::QueuePairState shown_state() const { return dead() ? provider::QueuePairState::kError : state; }
};

}  // namespace rnicd::simulation
