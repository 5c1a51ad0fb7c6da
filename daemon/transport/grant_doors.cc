#include "daemon/transport/grant_doors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "daemon/core/session/names.h"
#include "daemon/transport/door_sockets.h"

namespace rnicd::transport {
namespace {

// A container that has mounted the directory may look up its sockets; the directory around it is the daemon's alone.
constexpr mode_t kDirectoryMode = 0755;
constexpr size_t kNameBytes = 16;
constexpr int kRestoredAtOnce = 64;
constexpr std::chrono::hours kLeftoversKept{24};

std::string NameOf(GrantId grant) { return absl::StrCat(absl::Hex(grant.value, absl::kZeroPad16)); }

bool IsName(const std::string& name) {
  return name.size() == kNameBytes && std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c)) &&
                  !absl::ascii_isupper(static_cast<unsigned char>(c));
         });
}

void RemoveSocket(const std::string& path) {
  struct stat facts = {};
  if (lstat(path.c_str(), &facts) == 0 && S_ISSOCK(facts.st_mode)) {
    unlink(path.c_str());
  }
}

// Only an empty one.
void RemoveDirectory(const std::string& path) { unlinkat(AT_FDCWD, path.c_str(), AT_REMOVEDIR); }

}  // namespace

struct GrantDoors::GrantDoor {
  GrantDoor(SocketDirectory its_directory, std::shared_ptr<core::Tenant> its_tenant)
      : directory(std::move(its_directory)), tenant(std::move(its_tenant)) {}

  SocketDirectory directory;
  const std::shared_ptr<core::Tenant> tenant;
  std::optional<DoorSockets> sockets;
  // Those who came through it were disconnected, while it was lent.
  bool left = false;
};

GrantDoors::GrantDoors(SocketDirectory& directory, Options options, const Clock& clock, const log::Logger& logger,
                       Acceptor& acceptor)
    : directory_(directory),
      options_(std::move(options)),
      clock_(clock),
      logger_(logger),
      acceptor_(acceptor),
      leftovers_end_(clock.Now() + kLeftoversKept) {}

std::string GrantDoors::DirectoryOf(GrantId grant) const { return absl::StrCat(directory_.path(), "/", NameOf(grant)); }

void GrantDoors::Open(std::shared_ptr<core::Tenant> tenant, OnOpen done) {
  options_.run([this, tenant = std::move(tenant), done = std::move(done)] { done(OpenNow(tenant)); });
}

absl::Status GrantDoors::OpenNow(const std::shared_ptr<core::Tenant>& tenant, std::vector<HandedSocket> inherited) {
  MutexLock lock(mutex_);
  if (stopped_ || lent_) {
    return MakeErrorWithDetail(ErrorReason::DOOR_UNAVAILABLE,
                               stopped_ ? "the daemon is stopping" : "another daemon takes over");
  }
  const std::string path = DirectoryOf(tenant->grant());
  std::error_code unknown;
  const bool is_new = !std::filesystem::exists(path, unknown);
  absl::Status status = directory_.KeepClaim();
  absl::StatusOr<SocketDirectory> directory = directory_.Sub(NameOf(tenant->grant()), kDirectoryMode);
  status.Update(directory.status());
  if (status.ok()) {
    auto door = std::make_unique<GrantDoor>(*std::move(directory), tenant);
    door->sockets.emplace(WorkloadSockets(door->directory, options_.socket_mode), logger_,
                          [this, tenant](SocketKind kind, NamedListener listener) {
                            kind.tenant = tenant;
                            return acceptor_.Listen(std::move(kind), std::move(listener));
                          });
    status = door->sockets->Open(std::move(inherited)).status();
    if (status.ok()) {
      doors_[tenant->grant()] = std::move(door);
      return absl::OkStatus();
    }
    acceptor_.Leave(tenant, [] {});
  }
  if (is_new) {
    RemoveDirectory(path);
  }
  return MakeErrorWithDetail(ErrorReason::DOOR_UNAVAILABLE, std::string(status.message()));
}

absl::Status GrantDoors::Inherit(std::vector<HandedSocket> sockets, const Tenants& tenants) {
  std::map<GrantId, std::vector<HandedSocket>> of_grants;
  for (HandedSocket& socket : sockets) {
    of_grants[socket.grant].push_back(std::move(socket));
  }
  for (auto& [grant, inherited] : of_grants) {
    if (const auto tenant = tenants.find(grant); tenant != tenants.end()) {
      RNICD_RETURN_IF_ERROR(OpenNow(tenant->second, std::move(inherited)));
      continue;
    }
    for (HandedSocket& socket : inherited) {
      acceptor_.Discard({.door = socket.door, .refuses_descriptors = false, .tenant = nullptr},
                        std::move(socket.listener));
    }
    CloseNow(grant, [] {});
  }
  return absl::OkStatus();
}

void GrantDoors::SetLent(bool lent) {
  MutexLock lock(mutex_);
  lent_ = lent;
  for (const auto& [grant, door] : doors_) {
    door->sockets->SetLent(lent);
  }
  MutexLock trouble_lock(trouble_mutex_);
  trouble_.clear();
}

std::shared_ptr<core::Tenant> GrantDoors::TenantOf(GrantId grant) const {
  MutexLock lock(mutex_);
  const auto found = doors_.find(grant);
  return found == doors_.end() ? nullptr : found->second->tenant;
}

void GrantDoors::Close(GrantId grant, OnClosed done) {
  options_.run([this, grant, done = std::move(done)] { CloseNow(grant, done); });
}

// The names first, so that nobody finds what is going; then those who came before.
void GrantDoors::CloseNow(GrantId grant, const OnClosed& done) {
  std::shared_ptr<core::Tenant> tenant;
  bool lent = false;
  {
    MutexLock lock(mutex_);
    lent = lent_;
    tenant = lent ? LeaveDoor(grant) : RemoveDoor(grant);
  }
  if (tenant != nullptr && lent) {
    options_.disconnect(tenant);
  }
  if (tenant == nullptr || lent) {
    return done();
  }
  acceptor_.Leave(tenant, [this, tenant, done] {
    options_.run([this, tenant, done] {
      options_.disconnect(tenant);
      done();
    });
  });
}

std::shared_ptr<core::Tenant> GrantDoors::LeaveDoor(GrantId grant) {
  const auto found = doors_.find(grant);
  const bool leaves =
      found != doors_.end() && found->second->tenant->closed() && !std::exchange(found->second->left, true);
  return leaves ? found->second->tenant : nullptr;
}

std::shared_ptr<core::Tenant> GrantDoors::RemoveDoor(GrantId grant) {
  const auto found = doors_.find(grant);
  if (found == doors_.end()) {
    RemoveLeftover(NameOf(grant));
    return nullptr;
  }
  std::shared_ptr<core::Tenant> tenant = found->second->tenant;
  if (!tenant->closed()) {
    return nullptr;
  }
  found->second->sockets.reset();
  RemoveDirectory(found->second->directory.path());
  doors_.erase(found);
  return tenant;
}

void GrantDoors::Tick() {
  std::vector<GrantId> ended;
  {
    MutexLock lock(mutex_);
    if (stopped_) {
      return;
    }
    for (const auto& [grant, door] : doors_) {
      if (door->tenant->closed() && !(lent_ && door->left)) {
        ended.push_back(grant);
      }
    }
    if (!lent_) {
      Restore();
    }
    if (!lent_ && clock_.Now() >= leftovers_end_ && !std::exchange(leftovers_removed_, true)) {
      RemoveLeftovers();
    }
  }
  for (const GrantId grant : ended) {
    CloseNow(grant, [] {});
  }
}

void GrantDoors::Restore() {
  const absl::Status kept = directory_.KeepClaim();
  {
    MutexLock lock(trouble_mutex_);
    trouble_ = std::string(kept.message());
  }
  for (int looked_at = 0; kept.ok() && looked_at < kRestoredAtOnce; ++looked_at) {
    const auto next = doors_.upper_bound(restored_);
    if (next == doors_.end()) {
      restored_ = {};
      return;
    }
    restored_ = next->first;
    if (!next->second->tenant->closed()) {
      next->second->sockets->Restore();
    }
  }
}

// What a daemon that was killed in the middle of a change may have left, too.
void GrantDoors::RemoveLeftover(const std::string& name) const {
  const std::string path = absl::StrCat(directory_.path(), "/", name);
  for (const char* const socket : {core::kRpcSocketName, core::kFdSocketName}) {
    RemoveSocket(absl::StrCat(path, "/", socket));
    RemoveSocket(absl::StrCat(path, "/", socket, kUnfinishedSuffix));
  }
  RemoveDirectory(path);
}

void GrantDoors::RemoveLeftovers() {
  std::set<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory_.path(), error), end; !error && entry != end;
       entry.increment(error)) {
    names.insert(entry->path().filename().string());
  }
  for (const auto& [grant, door] : doors_) {
    names.erase(NameOf(grant));
  }
  for (const std::string& name : names) {
    if (IsName(name)) {
      RemoveLeftover(name);
    }
  }
}

void GrantDoors::StopAccepting() {
  MutexLock lock(mutex_);
  stopped_ = true;
  for (const auto& [grant, door] : doors_) {
    door->sockets->Remove();
  }
}

std::optional<std::string> GrantDoors::trouble() const {
  MutexLock lock(trouble_mutex_);
  return trouble_.empty() ? std::nullopt : std::optional(trouble_);
}

}  // namespace rnicd::transport
