#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "provider/api/device.h"
#include "provider/networkdirect/memory/nd_registration.h"

namespace rnicd::provider {

// A run of memory of a logical mapping, which a domain registers when a request first names a part of it. The
// registration has no remote right: peers reach its memory through windows only.
// Threads: safe. The lock is held while the memory is registered.
class NdMappedRun {
 public:
  explicit NdMappedRun(std::span<std::byte> bytes) : bytes_(bytes) {}

  std::span<std::byte> bytes() const { return bytes_; }
  // Errors: those of NdRegistration::Make.
  absl::StatusOr<std::shared_ptr<const NdRegistration>> RegisteredIn(const std::shared_ptr<NdDomain>& domain);
  // Forgets the registration of a domain that is closed.
  void Drop(const NdDomain& domain);

 private:
  const std::span<std::byte> bytes_;
  Mutex mutex_;
  std::map<const NdDomain*, std::shared_ptr<const NdRegistration>> registrations_ RNICD_GUARDED_BY(mutex_);
};

// The logical mappings of one opening of a card.
// Lifetime: shared by the domains and mappings of the opening.
// Threads:  safe.
class NdMappings : public std::enable_shared_from_this<NdMappings> {
 public:
  // The runs may be named until the result is destroyed, which deregisters them.
  std::unique_ptr<DeviceMapping> Add(std::span<const std::span<std::byte>> runs);
  // A run that has all of the bytes. Null if there is none, or if more than a few runs begin between it and the bytes.
  std::shared_ptr<NdMappedRun> Find(std::span<const std::byte> bytes) const;
  // Forgets the registrations of a domain that is closed.
  void Drop(const NdDomain& domain);

 private:
  class Mapping;
  // Key: the address of the first byte. They may overlap.
  using Runs = std::multimap<uint64_t, std::shared_ptr<NdMappedRun>>;

  mutable Mutex mutex_;
  Runs runs_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
