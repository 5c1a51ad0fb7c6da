#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strong_id.h"
#include "daemon/core/queue/completion_queue.h"
#include "daemon/core/request/event_queue.h"
#include "daemon/core/tenant/ledger.h"
#include "provider/api/queue_pair.h"
#include "tests/simulation/model/keys.h"
#include "tests/simulation/model/memory.h"
#include "tests/simulation/world/refusals.h"
#include "tests/simulation/world/shared_path.h"

namespace rnicd::simulation {

// How a pending request reports its end.
struct Report {
  // True for the event stream; otherwise the callback of this number.
  bool to_events = false;
  uint64_t callback = 0;
  core::RequestKind kind = core::RequestKind::kRegisterMr;
  uint64_t request_context = 0;
  uint64_t object_id = 0;
  // The call that does the same as this entry of a ring, for its audit line; empty for a call.
  std::string_view ring_call;
  // Resource that stays charged until the event is fetched.
  std::optional<core::Resource> charge;
};

// Close state of an object that can be held open by others.
struct Closing {
  bool begun = false;
  // Nullopt for a close that finished inline or at the end of the session.
  std::optional<Report> report;
};

struct Adapter {
  uint64_t number = 0;
  AdapterId id;
  Nic* nic = nullptr;
  Closing closing;
};

struct Domain {
  // Number of the domain; keys refer to the domain by it.
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
  // Number of jobs and binds that hold the region open.
  uint64_t requests = 0;
  // Charged pages; empty unless registered or being registered.
  std::vector<FilePage> pages;
  // Pieces of memory that the pages are in.
  uint64_t runs = 0;
  std::vector<MemoryUse> uses;
  // Non-null while registered.
  std::shared_ptr<Target> target;
  // Fast regions only: pages charged while initializing or initialized, and the requested remote access.
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

// A posted bind or a bound window: the region cannot be closed while this exists.
class RegionHold {
 public:
  // `on_release` finishes a waiting close.
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
  // What the client has mapped, and the highest depth; of a queue whose completions are in shared memory.
  std::shared_ptr<MappedUser> mapped;
  uint32_t mapped_depth_max = 0;
  // Notifications in shared memory.
  uint32_t notifications = 0;
  std::deque<Completion> results;
  bool overrun = false;
  // True once the overrun was reported.
  bool silent = false;
  std::optional<CqNotifyType> armed;
  // True while a notification is to be fetched.
  bool notifying = false;
  // Completions are numbered in order of arrival: the last one pushed, the last one taken, the last one that triggers a
  // SOLICITED notification, and the last one pushed when a notification was sent.
  uint64_t pushed = 0;
  uint64_t taken = 0;
  uint64_t waking = 0;
  uint64_t notified = 0;

  // True if the queue overran.
  bool Push(const Completion& completion, bool solicited);
  void Arm(CqNotifyType type);
  // Marks the notification as fetched.
  void Fetched();

 private:
  void NotifyWhenDue();
};

// A piece of a request's memory: bytes resolved at posting, or a token to be looked up at execution.
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
  // Sends only.
  std::optional<RemoteToken> invalidate;
  // Reads and writes only.
  uint64_t remote_address = 0;
  RemoteToken remote_token;
  bool local_invalidate = false;
  // Fast registrations, invalidations and binds only.
  std::shared_ptr<Key> key;
  uint64_t base = 0;
  uint64_t length = 0;
  AccessRights rights;
  Pieces pieces;
  // The token the card issued when it accepted the request.
  RemoteToken token;
  // Binds only.
  std::shared_ptr<Target> bound_to;
  std::shared_ptr<const RegionHold> hold;

  uint64_t serial = 0;
  Stage stage = Stage::kQueued;
  NtStatus status = NtStatus::kSuccess;
  // Why it was refused when it was posted without an outcome: it only waits to be reported. Otherwise none.
  Refusals refused;

  uint64_t size() const;
};

// A completion that must be reported.
struct DueReport {
  provider::Completion completion;
  // A refused request has one of these as its reason, and the status of that. None for others.
  Refusals refused;
};

struct Client;

struct QueuePair : std::enable_shared_from_this<QueuePair> {
  // Number of the queue pair; the witness uses the same number.
  uint64_t number = 0;
  QueuePairId id;
  Client* client = nullptr;
  std::shared_ptr<Domain> domain;
  std::shared_ptr<CompletionQueue> receive_queue;
  std::shared_ptr<CompletionQueue> initiator_queue;
  provider::QueuePairLimits limits;
  uint64_t context = 0;
  std::string address;

  provider::QueuePairState state = provider::QueuePairState::kInit;
  // Number of the peer; 0 before connecting.
  uint64_t peer_number = 0;
  std::weak_ptr<QueuePair> peer;
  // Queue pairs that connected to this one and wait for it to connect, by address, which is the card's order.
  std::map<std::string, std::weak_ptr<QueuePair>> early_visitors;
  bool peer_lost = false;
  bool told_peers = false;
  bool sender_waits = false;
  // True once no further request begins; requests in flight still finish.
  bool disconnecting = false;
  bool running = false;
  bool run_again = false;
  uint64_t next_serial = 1;
  std::deque<Request> slots;
  std::deque<Request> receives;
  bool closed = false;

  // Completions that must be reported in this step, in order.
  std::deque<DueReport> due[2];
  bool peer_gone_due = false;
  // True while the disconnect event is to be fetched.
  bool disconnect_waits = false;

  Nic& nic() const { return *domain->adapter->nic; }
  // A queue pair is dead if one of its completion queues is.
  bool dead() const { return receive_queue->overrun || initiator_queue->overrun; }
  provider::QueuePairState shown_state() const { return dead() ? provider::QueuePairState::kError : state; }
};

}  // namespace rnicd::simulation
