#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "base/system/os.h"
#include "daemon/core/memory/lingering_memory.h"
#include "daemon/core/tenant/ledger.h"

namespace rnicd::core {

// RINGS_UNAVAILABLE, with the cause as its detail.
absl::Status RingsUnavailable(const absl::Status& cause);

// Memory of the daemon that one client maps too: a ring, or a mapped completion queue. Its size is sealed. It is not
// sealed against holes: a client that punches one finds zeros there, as the daemon does, and a seal after the client
// has mapped the file could block without a limit (ADR 0032). It stays charged until the client, too, has released it.
// Lifetime: outlived by the LingeringMemory.
// Threads:  safe.
class SharedFile {
 public:
  // Zeros; `bytes` are whole pages, and counted by `charge`. Errors: RINGS_UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<SharedFile>> Create(Os& os, LingeringMemory& lingering, uint64_t bytes,
                                                            Charge charge);
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile();

  std::span<std::byte> bytes() const { return mapping_; }
  // For the client. Errors: RINGS_UNAVAILABLE.
  absl::StatusOr<UniqueFd> Duplicate() const;

 private:
  SharedFile(Os& os, LingeringMemory& lingering, FileWatch::Id watch, UniqueFd file, std::span<std::byte> mapping,
             Charge charge)
      : os_(os),
        lingering_(lingering),
        watch_(watch),
        file_(std::move(file)),
        mapping_(mapping),
        charge_(std::move(charge)) {}

  Os& os_;
  LingeringMemory& lingering_;
  const FileWatch::Id watch_;
  UniqueFd file_;
  const std::span<std::byte> mapping_;
  Charge charge_;
};

}  // namespace rnicd::core
