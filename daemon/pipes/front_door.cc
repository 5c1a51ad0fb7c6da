#include "daemon/pipes/front_door.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "daemon/core/tenant/caller.h"
#include "daemon/core/tenant/observation.h"
#include "daemon/door/refusal.h"

namespace rnicd::pipes {
namespace {

// Instances of each pipe that wait for a client. While all of them are taken, and not yet replaced, a client is told
// that the pipe is busy, and waits.
constexpr size_t kWaiting = 8;
constexpr uint64_t kOperatorPipesMax = 256;

core::Role RoleOf(Door door) { return door == Door::kOperator ? core::Role::kOperator : core::Role::kWorkload; }

}  // namespace

FrontDoor::FrontDoor(const FrontDoorOptions& options, core::Node& node, core::SessionRegistry& registry,
                     const log::Logger& logger, door::Bulkhead& bulkhead, door::ConnectionServer& server)
    : options_(options),
      node_(node),
      registry_(registry),
      logger_(logger),
      server_(server),
      sections_(node, bulkhead),
      rates_(node.clock, options.connection_rate) {}

FrontDoor::~FrontDoor() { Stop(); }

// --- start and stop ---

absl::Status FrontDoor::Start(const PipeNames& names) {
  names_ = names;
  const std::string sid = SidOfThisProcess();
  for (const Door door : kDoors) {
    RNICD_ASSIGN_OR_RETURN(SecurityDescriptor security, SecurityDescriptor::Parse(DescriptorText(door, sid)));
    security_.emplace(door, std::move(security));
  }
  RNICD_ASSIGN_OR_RETURN(loop_, Loop::Create());
  RNICD_ASSIGN_OR_RETURN(tcp_, TcpDoor::Open());
  places_[Door::kWorkload] =
      std::make_shared<door::Places>(options_.max_connections, options_.max_connections_per_user);
  places_[Door::kOperator] = std::make_shared<door::Places>(kOperatorPipesMax, 0);
  clients_ = std::make_unique<Clients>(Clients::Context{
      .node = node_,
      .registry = registry_,
      .logger = logger_,
      .server = server_,
      .loop = *loop_,
      .places = std::make_shared<door::Places>(options_.max_connections, options_.max_connections_per_user),
      .rate = options_.connection_rate,
      .on_exit = [this](const Clients::Key& key) { DropAllOf(key); }});
  loop_->Start([this] { Tick(); });
  absl::Status opened;
  loop_->Call([&] { opened = OpenPipes(); });
  RNICD_RETURN_IF_ERROR(opened);
  tcp_->Start([this](Door door, uint32_t pid, UniqueSocket socket) {
    loop_->Call([&] { clients_->Adopt({door, static_cast<int32_t>(pid)}, std::move(socket)); });
  });
  logger_.Info("front door open", {{"workloads", names_.workloads},
                                   {"operators", names_.operators},
                                   {"port", std::to_string(tcp_->port(Door::kWorkload))}});
  return absl::OkStatus();
}

absl::Status FrontDoor::OpenPipes() {
  for (const Door door : kDoors) {
    RNICD_RETURN_IF_ERROR(Listen(door, /*is_first=*/true));
  }
  accepting_ = true;
  FillUp();
  return absl::OkStatus();
}

absl::Status FrontDoor::Listen(Door door, bool is_first) {
  RNICD_ASSIGN_OR_RETURN(
      const std::shared_ptr<Pipe> pipe,
      Pipe::Listen(*loop_, *this, {.door = door, .name = names_.Of(door), .is_first = is_first}, security_.at(door)));
  waiting_[pipe.get()] = pipe;
  return absl::OkStatus();
}

// What fails now is tried again at the next tick.
void FrontDoor::FillUp() {
  for (const Door door : kDoors) {
    auto count = static_cast<size_t>(std::count_if(waiting_.begin(), waiting_.end(),
                                                   [door](const auto& entry) { return entry.second->door() == door; }));
    while (accepting_ && count < kWaiting && Listen(door, /*is_first=*/false).ok()) {
      ++count;
    }
  }
}

void FrontDoor::StopAccepting() {
  if (tcp_ == nullptr) {
    return;
  }
  tcp_->Stop();
  loop_->Post([this] {
    accepting_ = false;
    for (const auto& [raw, pipe] : std::exchange(waiting_, {})) {
      pipe->Close();
    }
  });
}

void FrontDoor::Stop() {
  if (loop_ == nullptr) {
    return;
  }
  StopAccepting();
  loop_->Stop([this] { CloseAll(); });
}

void FrontDoor::Post(Thread thread, std::function<void()> task) {
  if (thread == Thread::kPipes) {
    loop_->Post(std::move(task));
  } else {
    tcp_->Post(std::move(task));
  }
}

void FrontDoor::CloseAll() {
  accepting_ = false;
  for (const auto& [raw, pipe] : std::exchange(waiting_, {})) {
    pipe->Close();
  }
  while (!visits_.empty()) {
    Drop(visits_.begin()->first);
  }
  clients_->EndAll();
}

// --- pipes ---

void FrontDoor::OnConnected(const std::shared_ptr<Pipe>& pipe) {
  waiting_.erase(pipe.get());
  FillUp();
  core::Caller caller;
  std::optional<Refusal> refusal = Admit(pipe, caller);
  if (!refusal.has_value()) {
    pipe->Read();
    return;
  }
  pipe->Close();
  if (refusal->reason == core::kRefusedBackoff) {
    node_.observer.Report(core::ConnectionRefused{core::kRefusedBackoff});
  } else {
    door::ReportRefusal(node_, logger_, refusal->reason, caller.handle == nullptr ? nullptr : &caller, refusal->cause);
  }
}

std::optional<FrontDoor::Refusal> FrontDoor::Admit(const std::shared_ptr<Pipe>& pipe, core::Caller& caller) {
  door::Places& places = *places_.at(pipe->door());
  if (places.IsFull()) {
    return Refusal{.reason = core::kRefusedLimit, .cause = {}};
  }
  absl::StatusOr<Peer> peer = IdentifyPeer(pipe->handle(), RoleOf(pipe->door()));
  if (!peer.ok()) {
    const bool is_full = absl::IsResourceExhausted(peer.status());
    return Refusal{.reason = is_full ? core::kRefusedNoDescriptors : core::kRefusedIdentity, .cause = peer.status()};
  }
  if (pipe->door() == Door::kOperator) {
    // Nobody else may open this pipe.
    peer->caller.role = node_.tenants.RoleOf(peer->caller, /*is_trusted=*/true).value_or(core::Role::kWorkload);
  }
  caller = peer->caller;
  const Instant now = node_.clock.Now();
  door::ConnectBackoff& backoff = backoff_[pipe->door()];
  if (backoff.Holds(caller.pid, now)) {
    return Refusal{.reason = core::kRefusedBackoff, .cause = {}};
  }
  std::shared_ptr<void> place = places.Take(core::OwnerOf(caller));
  if (place == nullptr) {
    backoff.Refused(caller.pid, now);
    return Refusal{.reason = places.IsFull() ? core::kRefusedLimit : core::kRefusedUidLimit, .cause = {}};
  }
  if (pipe->door() == Door::kWorkload && rates_.IsTooFast(core::OwnerOf(caller))) {
    backoff.Refused(caller.pid, now);
    return Refusal{.reason = core::kRefusedRate, .cause = {}};
  }
  backoff.Admitted(caller.pid);
  visits_[pipe.get()] = Visit{.pipe = pipe, .peer = *std::move(peer), .place = std::move(place), .last_active = now};
  return std::nullopt;
}

void FrontDoor::OnMessage(const std::shared_ptr<Pipe>& pipe, const absl::StatusOr<std::string_view>& message) {
  Visit& visit = visits_.at(pipe.get());
  visit.last_active = node_.clock.Now();
  if (absl::Status joined = Join(visit); !joined.ok()) {
    const bool is_full = absl::IsResourceExhausted(joined);
    door::ReportRefusal(node_, logger_, is_full ? core::kRefusedNoDescriptors : core::kRefusedIdentity,
                        &visit.peer.caller, joined);
    Drop(pipe.get());
    return;
  }
  const absl::StatusOr<Request> request = message.ok() ? ParseRequest(*message) : message.status();
  if (!request.ok()) {
    pipe->Send(ErrorReply(request.status()), /*last=*/true);
    return;
  }
  std::visit([this, &visit](const auto& asked) { Answer(visit, asked); }, *request);
}

// Windows names the user only once a message was read.
absl::Status FrontDoor::Join(Visit& visit) {
  if (!visit.joined) {
    RNICD_RETURN_IF_ERROR(VerifyUser(visit.pipe->handle(), visit.peer.caller));
    RNICD_RETURN_IF_ERROR(clients_->Join(KeyOf(visit), visit.peer));
    visit.joined = true;
  }
  return absl::OkStatus();
}

void FrontDoor::Answer(Visit& visit, const Hello& /*hello*/) {
  visit.pipe->Send(HelloReply(tcp_->port(visit.pipe->door()), clients_->SecretOf(KeyOf(visit))), /*last=*/false);
}

void FrontDoor::Answer(Visit& visit, const GiveSection& give) { Exchange(visit, give.ticket, give.handle); }

void FrontDoor::Answer(Visit& visit, const TakeSection& take) { Exchange(visit, take.ticket, 0); }

// The reply waits for the loop even if it is known at once. By then the client may have gone.
void FrontDoor::Exchange(Visit& visit, const core::FdTicket& ticket, uint32_t given) {
  visit.working = true;
  const auto on_done = [this, loop = std::weak_ptr<Loop>(loop_),
                        pipe = std::weak_ptr<Pipe>(visit.pipe)](const absl::StatusOr<uint32_t>& handle) {
    const std::shared_ptr<Loop> alive = loop.lock();
    if (alive == nullptr) {
      return;
    }
    alive->Post([this, pipe, reply = SectionReply(handle)] {
      const std::shared_ptr<Pipe> open = pipe.lock();
      const auto found = visits_.find(open.get());
      if (found != visits_.end()) {
        found->second.working = false;
        found->second.last_active = node_.clock.Now();
        open->Send(reply, /*last=*/false);
      }
    });
  };
  sections_.Serve({.peer = visit.peer, .ticket = ticket, .given = given, .on_done = on_done});
}

void FrontDoor::OnEnd(const std::shared_ptr<Pipe>& pipe) {
  waiting_.erase(pipe.get());
  Drop(pipe.get());
}

void FrontDoor::Drop(const Pipe* pipe) {
  const auto dropped = visits_.extract(pipe);
  if (dropped.empty()) {
    return;
  }
  const Visit& visit = dropped.mapped();
  visit.pipe->Close();
  if (visit.joined) {
    clients_->Leave(KeyOf(visit));
  }
}

void FrontDoor::DropAllOf(const Clients::Key& key) {
  std::vector<const Pipe*> pipes;
  for (const auto& [raw, visit] : visits_) {
    if (visit.joined && KeyOf(visit) == key) {
      pipes.push_back(raw);
    }
  }
  for (const Pipe* pipe : pipes) {
    Drop(pipe);
  }
}

// --- what takes too long ---

void FrontDoor::Tick() {
  FillUp();
  const Instant since = node_.clock.Now() - options_.silent_timeout;
  clients_->CloseSilent(since);
  std::vector<const Pipe*> silent;
  for (const auto& [raw, visit] : visits_) {
    const bool is_used = visit.working || (visit.joined && clients_->HasConnections(KeyOf(visit)));
    if (visit.last_active < since && !is_used) {
      silent.push_back(raw);
    }
  }
  for (const Pipe* pipe : silent) {
    door::ReportRefusal(node_, logger_, core::kRefusedSilent, &visits_.at(pipe).peer.caller);
    Drop(pipe);
  }
  registry_.EndExpired();
}

}  // namespace rnicd::pipes
