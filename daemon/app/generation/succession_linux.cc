#include "daemon/app/generation/succession.h"

#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "daemon/app/config/system_config_linux.h"
#include "daemon/app/generation/contents_linux.h"
#include "daemon/app/generation/giving_side_linux.h"
#include "daemon/app/generation/taking_side_linux.h"
#include "daemon/app/host/socket_names_linux.h"
#include "daemon/handover/channel.h"
#include "daemon/transport/door_sockets.h"
#include "daemon/transport/socket_directory.h"

namespace rnicd::app {
namespace {

constexpr mode_t kHandoverMode = 0600;

class SocketSuccession final : public Succession {
 public:
  SocketSuccession(const SystemConfig& config, const Clock& clock) : config_(config), clock_(clock) {}

  bool takes_over() const override { return config_.predecessor != nullptr; }
  absl::StatusOr<DoorNames*> TakeNames(const Config& config, const SuccessionParts& parts) override;
  absl::Status Commit() override { return older_ != nullptr ? older_->Commit() : absl::OkStatus(); }
  absl::Status Offer(SystemDoor& door) override;
  void Stop() override;
  void NarrowGrant(GrantId grant, const std::string& pod_uid) override {
    if (older_ != nullptr) {
      older_->NarrowGrant(grant, pod_uid);
    }
  }

  uint32_t generation() const override { return older_ != nullptr ? older_->generation() + 1 : 1; }
  bool retired() const override { return giving_ != nullptr && giving_->retired(); }
  std::vector<core::OlderGeneration> older() const override {
    return older_ != nullptr ? older_->generations() : std::vector<core::OlderGeneration>();
  }

 private:
  absl::Status Claim(const Config& config);
  absl::Status TakeOver(const Config& config);
  void GiveUpNames();
  // One that was killed has left it.
  void RemoveNameOfOlder() const;
  // A connection whose process has no session in the older generation any more.
  void TakeBack(const v1::HandoverFile& from, UniqueSocket socket);

  const SystemConfig& config_;
  const Clock& clock_;
  std::optional<SuccessionParts> parts_;
  // Null where this one took over from nobody.
  std::unique_ptr<TakingSide> older_;
  std::unique_ptr<DoorNames> names_;
  // That of handover.sock.
  std::optional<transport::SocketDirectory> directory_;
  // In it, until Offer.
  UniqueFd listener_;
  std::unique_ptr<GivingSide> giving_;
  transport::FrontDoor* door_ = nullptr;
};

absl::StatusOr<DoorNames*> SocketSuccession::TakeNames(const Config& config, const SuccessionParts& parts) {
  parts_.emplace(parts);
  RNICD_RETURN_IF_ERROR(takes_over() ? TakeOver(config) : Claim(config));
  return names_.get();
}

absl::Status SocketSuccession::Claim(const Config& config) {
  RNICD_ASSIGN_OR_RETURN(names_, ClaimDoorNames(config));
  RNICD_ASSIGN_OR_RETURN(directory_, transport::SocketDirectory::Claim(config_.handover_dir, kOperatorDirectoryMode));
  RNICD_ASSIGN_OR_RETURN(transport::NamedListener named,
                         directory_->Listen(handover::kSocketName, SOCK_SEQPACKET, kHandoverMode));
  listener_ = std::move(named.listener);
  return absl::OkStatus();
}

absl::Status SocketSuccession::TakeOver(const Config& config) {
  older_ = std::make_unique<TakingSide>(config_.predecessor, *parts_, clock_);
  RNICD_ASSIGN_OR_RETURN(TakingSide::Taken taken, older_->Take());
  listener_ = std::move(taken.handover_listener);
  RNICD_ASSIGN_OR_RETURN(directory_, transport::SocketDirectory::Adopt(config_.handover_dir, kOperatorDirectoryMode,
                                                                       std::move(taken.handover_lock)));
  RNICD_ASSIGN_OR_RETURN(
      names_, AdoptDoorNames(config, std::move(taken.door), [this](const transport::AdmittedConnection& connection) {
        return older_->Route(connection);
      }));
  return absl::OkStatus();
}

absl::Status SocketSuccession::Offer(SystemDoor& door) {
  door_ = &FrontDoorOf(door);
  giving_ = std::make_unique<GivingSide>(
      GivingSide::Options{.generation = generation(), .deadline = config_.handover_deadline, .directory = *directory_},
      *parts_, clock_, *door_, older_.get());
  if (older_ != nullptr) {
    RNICD_RETURN_IF_ERROR(older_->Serve(
        {.on_process_ended = [this](const core::ProcessKey& process) { giving_->OnProcessEnded(process); },
         .on_handed_back = [this](const v1::HandoverFile& from,
                                  UniqueSocket socket) { TakeBack(from, std::move(socket)); },
         .on_ended = [this] { RemoveNameOfOlder(); }}));
  }
  // The one that a newer generation finds by SO_PEERCRED.
  listen(listener_.get(), SOMAXCONN);
  return giving_->Start(std::move(listener_));
}

void SocketSuccession::RemoveNameOfOlder() const {
  unlink(absl::StrCat(config_.admin_socket_dir, "/", transport::OperatorSocketNameOf(older_->generation())).c_str());
}

void SocketSuccession::TakeBack(const v1::HandoverFile& from, UniqueSocket socket) {
  if (giving_->retired()) {
    giving_->Receive(from, std::move(socket));
  } else {
    door_->Receive(DoorOf(from.kind()), GrantId{from.grant_id()}, std::move(socket));
  }
}

void SocketSuccession::Stop() {
  if (giving_ != nullptr) {
    giving_->Stop();
  }
  if (giving_ == nullptr || !giving_->has_given()) {
    GiveUpNames();
  }
  if (older_ != nullptr) {
    older_->Stop();
  }
}

// An older generation that is there serves again when this process has ended, and not before, as the sessions here have
// what it would then take. So it gets back the names.
void SocketSuccession::GiveUpNames() {
  const bool has_heir = older_ != nullptr && !older_->ended();
  if (older_ != nullptr && !has_heir) {
    RemoveNameOfOlder();
  }
  if (has_heir && door_ != nullptr && door_->Give().ok()) {
    door_->Retire(generation());
  } else if (!has_heir && directory_.has_value()) {
    unlink(absl::StrCat(directory_->path(), "/", handover::kSocketName).c_str());
  }
}

}  // namespace

std::unique_ptr<Succession> MakeSuccession(const Config& config, const Clock& clock) {
  return std::make_unique<SocketSuccession>(*config.system, clock);
}

}  // namespace rnicd::app
