#include "daemon/transport/front_door.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/status.h"

namespace rnicd::transport {
namespace {

// Sockets whose clients block their close, while others are still accepted: at the shared sockets, and at the doors of
// grants, which go on when those at the shared ones have to wait.
constexpr size_t kBlockedMax = 4096;
constexpr size_t kBlockedMaxOfDoors = 2 * kBlockedMax;

void Append(std::vector<HandedSocket>& all, std::vector<HandedSocket> some) {
  all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
}

GrantDoors::Tenants TenantsOf(const core::TenantDirectory& directory) {
  GrantDoors::Tenants tenants;
  for (const core::GrantView& grant : directory.Grants()) {
    tenants.emplace(grant.id, grant.tenant);
  }
  return tenants;
}

}  // namespace

// A thread of its own: that of the operators has a listener that is lent.
struct FrontDoor::RetiredOperators {
  RetiredOperators(std::unique_ptr<Acceptor> its_acceptor, const SocketName& name, const log::Logger& logger)
      : acceptor(std::move(its_acceptor)), sockets({name}, logger, [this](SocketKind kind, NamedListener listener) {
          return acceptor->Listen(std::move(kind), std::move(listener));
        }) {}

  const std::unique_ptr<Acceptor> acceptor;
  DoorSockets sockets;
};

FrontDoor::FrontDoor(FrontDoorOptions options, const door::Services& services)
    : options_(std::move(options)), services_(services), watcher_(services, options_.limits.silent_timeout, [this] {
        sockets_->Restore();
        grant_doors_->Tick();
      }) {}

FrontDoor::~FrontDoor() { Stop(); }

// --- start and stop ---

absl::Status FrontDoor::Start(const SocketDirectories& directories, HandedDoor inherited) {
  RNICD_ASSIGN_OR_RETURN(rung_, ProbeIdentityRung());
  directories_.emplace(directories);
  Build();
  const bool inherits = !inherited.sockets.empty();
  const absl::StatusOr<SocketKind> kind = Open(std::move(inherited.sockets));
  if (!kind.ok()) {
    if (inherits) {
      (void)Lend();
    }
    return kind.status();
  }
  services_.logger.Info("front door open",
                        {{"identity", IdentityRungName(rung_)},
                         {"descriptors", kind->refuses_descriptors ? "refused_by_kernel" : "looked_for"}});
  return absl::OkStatus();
}

void FrontDoor::Build() {
  acceptors_ = {MakeAcceptor(kBlockedMax), MakeAcceptor(SIZE_MAX), MakeAcceptor(kBlockedMaxOfDoors)};
  grant_doors_ = std::make_unique<GrantDoors>(
      directories_->doors,
      GrantDoors::Options{.socket_mode = options_.socket_mode,
                          .run = [inbox = watcher_.inbox()](Inbox::Task task) { inbox->Post(std::move(task)); },
                          .disconnect = [this](const auto& tenant) { watcher_.CloseWithSessions(tenant); }},
      services_.node.clock, services_.logger, AcceptorOf(Thread::kDoors));
  std::vector<SocketName> names = WorkloadSockets(directories_->workloads, options_.socket_mode);
  names.insert(names.begin(), OperatorSocket(directories_->operators));
  sockets_ = std::make_unique<DoorSockets>(names, services_.logger, [this](SocketKind kind, NamedListener listener) {
    const Thread thread = kind.door == Door::kOperator ? Thread::kOperators : Thread::kWorkloads;
    return AcceptorOf(thread).Listen(std::move(kind), std::move(listener));
  });
}

// The kind of a socket for workloads.
absl::StatusOr<SocketKind> FrontDoor::Open(std::vector<HandedSocket> inherited) {
  std::vector<HandedSocket> shared;
  std::vector<HandedSocket> of_grants;
  for (HandedSocket& socket : inherited) {
    (socket.grant == GrantId{} ? shared : of_grants).push_back(std::move(socket));
  }
  RNICD_ASSIGN_OR_RETURN(const SocketKind kind, sockets_->Open(std::move(shared)));
  RNICD_RETURN_IF_ERROR(grant_doors_->Inherit(std::move(of_grants), TenantsOf(services_.node.tenants)));
  RNICD_RETURN_IF_ERROR(watcher_.Start());
  for (const Thread thread : {Thread::kOperators, Thread::kDoors, Thread::kWorkloads}) {
    RNICD_RETURN_IF_ERROR(AcceptorOf(thread).Start());
  }
  return kind;
}

// Places of its own, so that those at the shared sockets take none from those who have a door.
std::unique_ptr<Acceptor> FrontDoor::MakeAcceptor(size_t blocked_max) {
  auto places = std::make_shared<door::Places>(options_.limits.max, options_.limits.max_per_owner);
  Admission admission({.rung = rung_, .rate = options_.limits.rate, .proc_folder = options_.proc_folder},
                      services_.node, services_.logger, std::move(places));
  return std::make_unique<Acceptor>(std::move(admission), services_.node, services_.logger, services_.bulkhead,
                                    blocked_max,
                                    [this](AdmittedConnection admitted) { ServeOrRoute(std::move(admitted)); });
}

void FrontDoor::ServeOrRoute(AdmittedConnection admitted) {
  if (admitted.door() != Door::kOperator && options_.route && options_.route(admitted)) {
    admitted.socket->PassOn();
  } else {
    watcher_.Serve(std::move(admitted));
  }
}

std::optional<std::string> FrontDoor::trouble() const {
  std::optional<std::string> trouble = sockets_->trouble();
  return trouble.has_value() ? trouble : grant_doors_->trouble();
}

void FrontDoor::StopAccepting() {
  retired_operators_.reset();
  sockets_->Remove();
  grant_doors_->StopAccepting();
  for (const std::unique_ptr<Acceptor>& acceptor : acceptors_) {
    acceptor->Stop();
  }
}

void FrontDoor::Stop() {
  if (watcher_.running()) {
    StopAccepting();
    watcher_.Stop();
  }
}

void FrontDoor::Post(Thread thread, Inbox::Task task) {
  thread == Thread::kWatcher ? watcher_.inbox()->Post(std::move(task)) : AcceptorOf(thread).Post(std::move(task));
}

// --- another generation ---

absl::StatusOr<HandedDoor> FrontDoor::Give() {
  absl::StatusOr<HandedDoor> copies = Copies();
  if (!copies.ok()) {
    Resume();
  }
  return copies;
}

absl::StatusOr<HandedDoor> FrontDoor::Copies() {
  HandedDoor handed;
  RNICD_ASSIGN_OR_RETURN(handed.sockets, Lend());
  RNICD_ASSIGN_OR_RETURN(handed.workloads_lock, directories_->workloads.CopyLock());
  RNICD_ASSIGN_OR_RETURN(handed.operators_lock, directories_->operators.CopyLock());
  RNICD_ASSIGN_OR_RETURN(handed.doors_lock, directories_->doors.CopyLock());
  return handed;
}

// The names first: nobody makes a listener, or claims a directory anew, while the others are copied.
absl::StatusOr<std::vector<HandedSocket>> FrontDoor::Lend() {
  sockets_->SetLent(true);
  grant_doors_->SetLent(true);
  std::vector<HandedSocket> all;
  absl::Status status;
  for (const std::unique_ptr<Acceptor>& acceptor : acceptors_) {
    absl::StatusOr<std::vector<HandedSocket>> some = acceptor->Lend();
    status.Update(some.status());
    Append(all, some.ok() ? *std::move(some) : std::vector<HandedSocket>{});
  }
  if (!status.ok()) {
    return status;
  }
  return all;
}

void FrontDoor::Retire(uint32_t generation) {
  // The newer daemon is the one that operators and device plugins must speak with.
  watcher_.CloseOperators();
  retired_operators_ = std::make_unique<RetiredOperators>(
      MakeAcceptor(SIZE_MAX), OperatorSocketOf(directories_->operators, generation), services_.logger);
  absl::Status open = retired_operators_->sockets.Open().status();
  open.Update(retired_operators_->acceptor->Start());
  if (!open.ok()) {
    services_.logger.Warning("operators do not find this generation", {{"because", std::string(open.message())}});
  }
}

void FrontDoor::Resume() {
  retired_operators_.reset();
  for (const std::unique_ptr<Acceptor>& acceptor : acceptors_) {
    acceptor->TakeBack();
  }
  grant_doors_->SetLent(false);
  sockets_->SetLent(false);
  sockets_->Restore();
}

void FrontDoor::Receive(Door door, GrantId grant, UniqueSocket socket, HandBack hand_back,
                        std::function<bool(const core::ProcessKey&)> holds) {
  SocketKind kind = {.door = door,
                     .refuses_descriptors = door != Door::kFd && RefusesDescriptors(socket.get()),
                     .tenant = grant_doors_->TenantOf(grant)};
  const bool is_open = grant == GrantId{} || (kind.tenant != nullptr && !kind.tenant->closed());
  const Thread thread = grant == GrantId{} ? Thread::kWorkloads : Thread::kDoors;
  auto client = std::make_shared<ClientSocket>(std::move(socket), std::move(kind), services_.bulkhead);
  Post(thread,
       [this, thread, is_open, client = std::move(client), hand_back = std::move(hand_back), holds = std::move(holds)] {
         Admission& admission = AcceptorOf(thread).admission();
         const absl::StatusOr<core::ProcessKey> process = admission.ProcessOf(*client);
         if (hand_back && (!is_open || (holds && process.ok() && !holds(*process)))) {
           client->PassOn();
           return hand_back(ClientSocket::DescriptorOf(client));
         }
         if (std::optional<AdmittedConnection> admitted = is_open ? admission.Admit(client) : std::nullopt; admitted) {
           // A generation that is older still may be the one. What was handed back is nobody else's.
           hand_back ? ServeOrRoute(*std::move(admitted)) : watcher_.Serve(*std::move(admitted));
         }
       });
}

}  // namespace rnicd::transport
