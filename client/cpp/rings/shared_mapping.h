#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace rnicd::inline client {

// Memory that the daemon shares with this process: a ring, or a mapped completion queue. A child made by fork does not
// have it: parent and child would write the same indices.
// Lifetime: unmaps, unless moved from.
// Threads:  safe but for moving and destroying.
class SharedMapping {
 public:
  // Redeems the ticket, and maps the file. Errors: those of FetchDescriptor; transport failures for a file that is
  // shorter, or cannot be mapped.
  static absl::StatusOr<SharedMapping> Fetch(const std::string& fd_socket_path, const std::string& ticket,
                                             uint64_t file_bytes, std::chrono::milliseconds deadline);
  // Maps a file of the caller. Errors: as Fetch.
  static absl::StatusOr<SharedMapping> Map(int fd, uint64_t file_bytes);

  SharedMapping(SharedMapping&& other) noexcept;
  SharedMapping& operator=(SharedMapping&&) = delete;
  ~SharedMapping();

  std::span<std::byte> bytes() const { return bytes_; }
  // False in a child made by fork, which does not have the mapping: bytes() must not be used there.
  bool IsOfThisProcess() const;

 private:
  explicit SharedMapping(std::span<std::byte> bytes);

  std::span<std::byte> bytes_;
  const int32_t process_;
};

}  // namespace rnicd::inline client
