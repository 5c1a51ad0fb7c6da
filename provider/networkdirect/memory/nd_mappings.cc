#include "provider/networkdirect/memory/nd_mappings.h"

#include <utility>
#include <vector>

#include "base/status.h"
#include "provider/engine/byte_runs.h"

namespace rnicd::provider {
namespace {

// Windows for remote writes need the local right; a read may have any part as its sink.
constexpr AccessRights kOwnerRights{.local_write = true, .read_sink = true};
// An owner may map the same pages many times, and a search must not take long.
constexpr int kRunsSearched = 16;

uint64_t AddressOf(std::span<const std::byte> bytes) { return reinterpret_cast<uint64_t>(bytes.data()); }

}  // namespace

absl::StatusOr<std::shared_ptr<const NdRegistration>> NdMappedRun::RegisteredIn(
    const std::shared_ptr<NdDomain>& domain) {
  MutexLock lock(mutex_);
  std::shared_ptr<const NdRegistration>& registration = registrations_[domain.get()];
  if (registration == nullptr) {
    absl::StatusOr<std::unique_ptr<NdRegistration>> made =
        NdRegistration::Make(domain, {&bytes_, 1}, NdAccessFlags(kOwnerRights));
    if (!made.ok()) {
      registrations_.erase(domain.get());
      return made.status();
    }
    registration = *std::move(made);
  }
  return registration;
}

void NdMappedRun::Drop(const NdDomain& domain) {
  std::shared_ptr<const NdRegistration> dropped;
  MutexLock lock(mutex_);
  const auto found = registrations_.find(&domain);
  if (found != registrations_.end()) {
    dropped = std::move(found->second);
    registrations_.erase(found);
  }
}

// Removes its runs, and with them their registrations, when it is destroyed.
class NdMappings::Mapping final : public DeviceMapping {
 public:
  Mapping(std::shared_ptr<NdMappings> mappings, std::vector<Runs::iterator> runs)
      : mappings_(std::move(mappings)), runs_(std::move(runs)) {}
  ~Mapping() override {
    std::vector<std::shared_ptr<NdMappedRun>> removed;
    MutexLock lock(mappings_->mutex_);
    for (const auto run : runs_) {
      removed.push_back(std::move(run->second));
      mappings_->runs_.erase(run);
    }
  }

 private:
  const std::shared_ptr<NdMappings> mappings_;
  const std::vector<Runs::iterator> runs_;
};

std::unique_ptr<DeviceMapping> NdMappings::Add(std::span<const std::span<std::byte>> runs) {
  std::vector<Runs::iterator> added;
  MutexLock lock(mutex_);
  for (const std::span<std::byte> run : JoinRuns(runs)) {
    added.push_back(runs_.emplace(AddressOf(run), std::make_shared<NdMappedRun>(run)));
  }
  return std::make_unique<Mapping>(shared_from_this(), std::move(added));
}

std::shared_ptr<NdMappedRun> NdMappings::Find(std::span<const std::byte> bytes) const {
  MutexLock lock(mutex_);
  auto next = runs_.upper_bound(AddressOf(bytes));
  for (int searched = 0; searched < kRunsSearched && next != runs_.begin(); ++searched) {
    --next;
    const std::span<std::byte> run = next->second->bytes();
    if (AddressOf(bytes) + bytes.size() <= AddressOf(run) + run.size()) {
      return next->second;
    }
  }
  return nullptr;
}

void NdMappings::Drop(const NdDomain& domain) {
  std::vector<std::shared_ptr<NdMappedRun>> runs;
  {
    MutexLock lock(mutex_);
    for (const auto& [address, run] : runs_) {
      runs.push_back(run);
    }
  }
  for (const std::shared_ptr<NdMappedRun>& run : runs) {
    run->Drop(domain);
  }
}

}  // namespace rnicd::provider
