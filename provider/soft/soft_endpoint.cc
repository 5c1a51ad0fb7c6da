#include "provider/soft/soft_endpoint.h"

#include <utility>

#include "base/status.h"
#include "provider/soft/soft_execute.h"
#include "provider/soft/soft_fast_region.h"
#include "provider/soft/soft_window.h"

namespace rnicd::provider {
namespace {

// Bytes a runner moves before it hands the rest to the card's thread, so that no caller is blocked for long.
constexpr uint64_t kBytesPerTurn = 1 << 20;
// Bytes charged for each request in addition to its payload: many empty requests also block a caller.
constexpr uint64_t kBytesPerRequest = 256;

// A read under way whose bytes land when the delay is over and it is not held.
struct SlowRead {
  // Runs its jobs, so outlives them.
  SoftWorker& worker;
  std::chrono::microseconds delay;
  std::function<bool()> held;
  std::weak_ptr<QueuePairEngine> pair;
  uint64_t serial = 0;
};

void LandLater(SlowRead read) {
  SoftWorker& worker = read.worker;
  const std::chrono::microseconds delay = read.delay;
  worker.PostAfter(delay, [read = std::move(read)]() mutable {
    const std::shared_ptr<QueuePairEngine> pair = read.pair.lock();
    if (pair == nullptr) {
      return;
    }
    if (read.held != nullptr && read.held()) {
      LandLater(std::move(read));
    } else {
      pair->Resume(read.serial);
    }
  });
}

}  // namespace

std::shared_ptr<QueuePairEngine> SoftEndpoint::Create(std::shared_ptr<SoftNic> nic, uint64_t domain,
                                                      const QueuePairLimits& limits, QueuePairListener& listener) {
  const uint64_t number = nic->fabric().NewNumber();
  return Publish(std::unique_ptr<SoftEndpoint>(new SoftEndpoint(std::move(nic), domain, number)), limits, listener);
}

std::shared_ptr<QueuePairEngine> SoftEndpoint::Publish(std::unique_ptr<SoftEndpoint> card,
                                                       const QueuePairLimits& limits, QueuePairListener& listener) {
  SoftFabric& fabric = card->nic_->fabric();
  QueuePairEngine::Options options{.address = SoftFabric::AddressOf(card->number_),
                                   .limits = limits,
                                   .rules = {.read_limit = card->nic_->info().max_outbound_read_limit,
                                             // The wire delay is only simulated.
                                             .finishes_reads = true,
                                             .bytes_per_turn = kBytesPerTurn}};
  auto engine = std::make_shared<QueuePairEngine>(std::move(card), std::move(options), fabric, listener);
  fabric.Add(engine->address(), engine);
  return engine;
}

RemoteToken SoftEndpoint::Issue(EngineRequest& request) {
  if (const auto* work = std::get_if<FastRegisterWork>(&request.work.work)) {
    return static_cast<SoftFastRegion&>(*work->region).IssueToken();
  }
  if (const auto* work = std::get_if<BindWork>(&request.work.work)) {
    return static_cast<SoftWindow&>(*work->window).IssueToken();
  }
  return RemoteToken{};
}

absl::StatusOr<EnginePeer> SoftEndpoint::Connect(std::string_view peer_address) {
  if (const auto remote = SoftRemotePair::FromAddress(peer_address); remote.has_value()) {
    RNICD_RETURN_IF_ERROR(remote_.Connect(*remote));
    return EnginePeer{.address = std::string(peer_address), .engine = nullptr};
  }
  std::shared_ptr<QueuePairEngine> peer = nic_->fabric().Find(peer_address);
  if (peer == nullptr) {
    return MakeError(ErrorReason::QP_ADDRESS_UNKNOWN, "peer_address");
  }
  return EnginePeer{.address = peer->address(), .engine = std::move(peer)};
}

BeginResult SoftEndpoint::Begin(EngineRequest& request, EngineTurn& turn) {
  const bool starts_slow_read = !turn.resumed && nic_->read_delay().count() > 0 && request.IsRead();
  SoftExecution execution{.self = *this, .turn = turn, .request = request.work, .token = request.token};
  turn.moved += kBytesPerRequest;
  if (remote_.connected() && !request.IsLocal()) {
    return remote_.Begin(request, turn);
  }
  const std::optional<NtStatus> status = starts_slow_read ? Reach(execution) : Execute(execution);
  if (!status.has_value()) {
    return BeginResult::Blocked();
  }
  if (!starts_slow_read || *status != NtStatus::kSuccess) {
    // The peer may not have reported its error yet, and once this side is in error its report would be ignored.
    const bool peer_lost =
        *status == NtStatus::kIoTimeout && turn.peer != nullptr && turn.peer->state() == QueuePairState::kError;
    return BeginResult::Done({.status = *status, .at_peer = execution.refused_by_peer, .peer_lost = peer_lost});
  }
  LandLater({.worker = nic_->fabric().worker(),
             .delay = nic_->read_delay(),
             .held = nic_->hold_reads(),
             .pair = engine().weak_from_this(),
             .serial = request.serial});
  return BeginResult::Started();
}

}  // namespace rnicd::provider
