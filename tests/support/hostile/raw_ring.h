#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/files/unique_fd.h"
#include "ring/layout.h"
#include "tests/support/calls/raw_client.h"
#include "tests/support/process/memory_file.h"

namespace rnicd::test {

// A ring by hand, as docs/RINGS.md describes it: its descriptors and its memory, to be used correctly or not.
// Lifetime: the session owns the ring.
// Threads:  none.
class RawRing {
 public:
  // In the session of the client's connection. Null if a call or a ticket was refused.
  static std::unique_ptr<RawRing> Open(RawClient& client, const std::string& fd_socket, uint32_t entries = 0);
  // The ring of another process, whose descriptors this one has come by. It has no id and no pipe. Null if the memory
  // cannot be mapped.
  static std::unique_ptr<RawRing> Adopt(UniqueFd memory, UniqueFd doorbell, uint64_t file_bytes);

  uint64_t id() const { return id_; }
  int memory() const { return memory_.get(); }
  int doorbell() const { return doorbell_.get(); }
  int pipe() const { return pipe_.get(); }
  // All of the file.
  std::span<std::byte> bytes() const { return mapping_->bytes(); }
  ring::RingHeader& header() const { return *reinterpret_cast<ring::RingHeader*>(bytes().data()); }
  // As the daemon described it at first.
  const ring::Description& description() const { return description_; }
  std::span<std::byte> payload() const {
    return bytes().subspan(description_.payload_offset, description_.payload_bytes);
  }
  // Number n is in slot n modulo the number of entries.
  void WriteEntry(uint32_t number, const ring::Submission& entry) const;
  // Never blocks as long as the eventfd does not.
  void RingDoorbell() const;

 private:
  RawRing() = default;
  // False if the kernel refuses.
  bool Map(uint64_t file_bytes);

  uint64_t id_ = 0;
  UniqueFd memory_;
  UniqueFd doorbell_;
  UniqueFd pipe_;
  std::unique_ptr<SharedMapping> mapping_;
  ring::Description description_;
};

// The descriptor of a ticket; invalid if it was refused.
UniqueFd FetchDescriptor(const std::string& fd_socket, const std::string& ticket);

}  // namespace rnicd::test
