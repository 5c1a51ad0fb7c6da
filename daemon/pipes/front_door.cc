#include "daemon/pipes/front_door.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "daemon/core/tenant/caller.h"
#include "daemon/core/tenant/observation.h"
#include "daemon/pipes/section_service.h"

namespace rnicd::pipes {
namespace {

// Instances of each pipe that wait for a client. While all of them are taken, and not yet replaced, a client is told
// that the pipe is busy, and waits.
constexpr size_t kWaiting = 8;
constexpr uint64_t kOperatorPipesMax = 256;

core::Role RoleOf(Door door) { return door == Door::kOperator ? core::Role::kOperator : core::Role::kWorkload; }

}  // namespace

FrontDoor::FrontDoor(const door::ConnectionLimits& limits, const door::Services& services)
    : limits_(limits), services_(services), handover_(services.node, services.bulkhead) {}

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
  const Clock& clock = services_.node.clock;
  entrances_.try_emplace(Door::kWorkload, clock, WorkloadPlaces(), limits_.rate);
  entrances_.try_emplace(Door::kOperator, clock, std::make_shared<door::Places>(kOperatorPipesMax, 0), core::Rate{});
  clients_ = std::make_unique<Clients>(services_, door::Entrance(clock, WorkloadPlaces(), limits_.rate), *loop_,
                                       [this](const Clients::Key& key) { DropAllOf(key); });
  loop_->Start([this] { Tick(); });
  absl::Status opened;
  loop_->Call([&] { opened = OpenPipes(); });
  RNICD_RETURN_IF_ERROR(opened);
  tcp_->Start([this](Door door, uint32_t pid, UniqueSocket socket) {
    loop_->Call([&] { clients_->Adopt({door, static_cast<int32_t>(pid)}, std::move(socket)); });
  });
  services_.logger.Info("front door open", {{"workloads", names_.workloads},
                                            {"operators", names_.operators},
                                            {"port", std::to_string(tcp_->port(Door::kWorkload))}});
  return absl::OkStatus();
}

// Pipes and connections are counted apart.
std::shared_ptr<door::Places> FrontDoor::WorkloadPlaces() const {
  return std::make_shared<door::Places>(limits_.max, limits_.max_per_owner);
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
  while (!connections_.empty()) {
    Drop(connections_.begin()->first);
  }
  clients_->EndAll();
}

// --- pipes ---

void FrontDoor::OnConnected(const std::shared_ptr<Pipe>& pipe) {
  waiting_.erase(pipe.get());
  FillUp();
  core::Caller caller;
  std::optional<door::Refusal> refusal = Admit(pipe, caller);
  if (!refusal.has_value()) {
    pipe->Read();
    return;
  }
  pipe->Close();
  if (refusal->reason == core::kRefusedBackoff) {
    services_.node.observer.Report(core::ConnectionRefused{core::kRefusedBackoff});
  } else {
    door::ReportRefusal(services_.node, services_.logger, *refusal, caller.handle == nullptr ? nullptr : &caller);
  }
}

std::optional<door::Refusal> FrontDoor::Admit(const std::shared_ptr<Pipe>& pipe, core::Caller& caller) {
  door::Entrance& entrance = entrances_.at(pipe->door());
  if (entrance.IsFull()) {
    return door::Refusal{.reason = core::kRefusedLimit, .cause = {}};
  }
  absl::StatusOr<Peer> peer = IdentifyPeer(pipe->handle(), RoleOf(pipe->door()));
  if (!peer.ok()) {
    return door::RefusalOfIdentity(peer.status());
  }
  if (pipe->door() == Door::kOperator) {
    // Nobody else may open this pipe.
    peer->caller.role =
        services_.node.tenants.RoleOf(peer->caller, /*is_trusted=*/true).value_or(core::Role::kWorkload);
  }
  caller = peer->caller;
  const Instant now = services_.node.clock.Now();
  door::ConnectBackoff& backoff = backoff_[pipe->door()];
  if (backoff.Holds(caller.pid, now)) {
    return door::Refusal{.reason = core::kRefusedBackoff, .cause = {}};
  }
  door::Entrance::Outcome outcome = entrance.Admit(core::OwnerOf(caller));
  if (outcome.place == nullptr) {
    backoff.Refused(caller.pid, now);
    return door::Refusal{.reason = outcome.refusal, .cause = {}};
  }
  backoff.Admitted(caller.pid);
  connections_[pipe.get()] =
      PipeConnection{.pipe = pipe, .peer = *std::move(peer), .place = std::move(outcome.place), .last_active = now};
  return std::nullopt;
}

void FrontDoor::OnMessage(const std::shared_ptr<Pipe>& pipe, const absl::StatusOr<std::string_view>& message) {
  PipeConnection& connection = connections_.at(pipe.get());
  connection.last_active = services_.node.clock.Now();
  if (absl::Status joined = Join(connection); !joined.ok()) {
    door::ReportRefusal(services_.node, services_.logger, door::RefusalOfIdentity(joined), &connection.peer.caller);
    Drop(pipe.get());
    return;
  }
  const absl::StatusOr<Request> request = message.ok() ? ParseRequest(*message) : message.status();
  if (!request.ok()) {
    pipe->Send(ErrorReply(request.status()), /*last=*/true);
    return;
  }
  std::visit([this, &connection](const auto& asked) { Answer(connection, asked); }, *request);
}

// Windows names the user only once a message was read.
absl::Status FrontDoor::Join(PipeConnection& connection) {
  if (!connection.joined) {
    RNICD_RETURN_IF_ERROR(VerifyUser(connection.pipe->handle(), connection.peer.caller));
    RNICD_RETURN_IF_ERROR(clients_->Join(KeyOf(connection), connection.peer));
    connection.joined = true;
  }
  return absl::OkStatus();
}

void FrontDoor::Answer(PipeConnection& connection, const Hello& /*hello*/) {
  connection.pipe->Send(HelloReply(tcp_->port(connection.pipe->door()), clients_->SecretOf(KeyOf(connection))),
                        /*last=*/false);
}

void FrontDoor::Answer(PipeConnection& connection, const GiveSection& give) {
  Exchange(connection, give.ticket, give.handle);
}

void FrontDoor::Answer(PipeConnection& connection, const TakeSection& take) { Exchange(connection, take.ticket, 0); }

// The reply waits for the loop even if it is known at once. By then the client may have gone.
void FrontDoor::Exchange(PipeConnection& connection, const core::FdTicket& ticket, uint32_t given) {
  connection.working = true;
  const auto on_done = [this, loop = std::weak_ptr<Loop>(loop_),
                        pipe = std::weak_ptr<Pipe>(connection.pipe)](const absl::StatusOr<uint32_t>& handle) {
    const std::shared_ptr<Loop> alive = loop.lock();
    if (alive == nullptr) {
      return;
    }
    alive->Post([this, pipe, reply = SectionReply(handle)] {
      const std::shared_ptr<Pipe> open = pipe.lock();
      const auto found = connections_.find(open.get());
      if (found != connections_.end()) {
        found->second.working = false;
        found->second.last_active = services_.node.clock.Now();
        open->Send(reply, /*last=*/false);
      }
    });
  };
  ServeSection(handover_, services_.node.os,
               {.peer = connection.peer, .ticket = ticket, .given = given, .on_done = on_done});
}

void FrontDoor::OnEnd(const std::shared_ptr<Pipe>& pipe) {
  waiting_.erase(pipe.get());
  Drop(pipe.get());
}

void FrontDoor::Drop(const Pipe* pipe) {
  const auto dropped = connections_.extract(pipe);
  if (dropped.empty()) {
    return;
  }
  const PipeConnection& connection = dropped.mapped();
  connection.pipe->Close();
  if (connection.joined) {
    clients_->Leave(KeyOf(connection));
  }
}

void FrontDoor::DropAllOf(const Clients::Key& key) {
  std::vector<const Pipe*> pipes;
  for (const auto& [raw, connection] : connections_) {
    if (connection.joined && KeyOf(connection) == key) {
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
  const Instant since = services_.node.clock.Now() - limits_.silent_timeout;
  clients_->CloseSilent(since);
  std::vector<const Pipe*> silent;
  for (const auto& [raw, connection] : connections_) {
    const bool is_used = connection.working || (connection.joined && clients_->HasConnections(KeyOf(connection)));
    if (connection.last_active < since && !is_used) {
      silent.push_back(raw);
    }
  }
  for (const Pipe* pipe : silent) {
    door::ReportRefusal(services_.node, services_.logger, {.reason = core::kRefusedSilent, .cause = {}},
                        &connections_.at(pipe).peer.caller);
    Drop(pipe);
  }
  services_.registry.EndExpired();
}

}  // namespace rnicd::pipes
