#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/files/unique_fd.h"
#include "base/strong_id.h"
#include "daemon/core/session/session_registry.h"

namespace rnicd::fuzz {

// Memory of a daemon's file, mapped as its client does.
class ClientMapping {
 public:
  // Empty if the descriptor is not one.
  explicit ClientMapping(int file);
  ~ClientMapping();
  ClientMapping(const ClientMapping&) = delete;
  ClientMapping& operator=(const ClientMapping&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  // Writes as much as fits; the offset counts modulo the size.
  void Write(size_t offset, std::string_view bytes) const;

 private:
  std::span<std::byte> bytes_;
};

// The client's side of the rings and mapped completion queues of all sessions, by their ids. An id that does not exist
// is ignored, as is a queue that is not mapped.
// Lifetime: the registry outlives it.
// Threads:  one.
class RingSide {
 public:
  explicit RingSide(core::SessionRegistry& registry) : registry_(registry) {}

  // An entry, and behind its 64 bytes the start of the payload area; then the tail, and the doorbell.
  void Submit(RingId id, std::string_view entry);
  // Any bytes anywhere in the file of the ring, and the doorbell.
  void Poke(RingId id, size_t offset, std::string_view bytes);
  // The same for a mapped queue.
  void Scribble(CompletionQueueId id, size_t offset, std::string_view bytes);

 private:
  struct Ring {
    std::unique_ptr<ClientMapping> memory;
    UniqueFd doorbell;
    // Its memory may have anything in it.
    bool poked = false;
  };

  // Null if there is none.
  Ring* Find(RingId id);
  ClientMapping* Find(CompletionQueueId id);
  static void RingDoorbell(const Ring& ring);
  // Fails unless every outcome that was not read is one that the daemon may write.
  static void CheckOutcomes(const Ring& ring);

  core::SessionRegistry& registry_;
  std::map<uint64_t, Ring> rings_;
  std::map<uint64_t, std::unique_ptr<ClientMapping>> queues_;
};

}  // namespace rnicd::fuzz
