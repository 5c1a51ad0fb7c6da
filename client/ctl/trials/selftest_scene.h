#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/client.h"
#include "client/cpp/fast_region.h"
#include "client/cpp/logical_mapping.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"
#include "client/ctl/trials/queue_end.h"

namespace rnicd::ctl {

struct SelftestOptions {
  std::string socket_dir;
  // Grant of both sessions, as ClientOptions::grant.
  std::string grant;
  // Name of the adapter; empty means the node's first.
  std::string adapter;
  bool bench = true;
};

inline constexpr uint64_t kSelftestPageBytes = 4096;
// Pages of the owner's memory; a card that takes fewer in one fast registration is not known.
inline constexpr uint64_t kSelftestPages = 8;

// A connection between owner and peer. A refused access ends it, so each such access uses a new one.
struct SelftestLink {
  QueueEnd owner;
  QueueEnd peer;
};

// What the checks use: two sessions on one adapter, memory of the owner whose every byte is known, and a buffer of the
// peer.
// Errors: the daemon's refusals, transport failures, and kInternal with a sentence that says what went wrong.
class SelftestScene {
 public:
  static absl::StatusOr<std::unique_ptr<SelftestScene>> Open(const SelftestOptions& options);

  const Client& owner() const { return owner_; }
  const Client& peer() const { return peer_; }
  const Memory& memory() const { return memory_; }
  // Memory of the peer, as large as the owner's, and registered for its own requests.
  const Memory& buffer() const { return buffer_; }
  LocalToken buffer_token() const { return buffer_region_.local_token(); }

  // Gives every page of the owner's memory its own known bytes.
  void Reset();
  // The owner's memory at this offset.
  std::string_view Text(uint64_t offset, uint64_t length) const;

  // With room for this many outstanding requests at each end.
  absl::StatusOr<SelftestLink> Connect(uint32_t depth = 16) const;

  // The peer's accesses; each returns its completion. `text` and what is read is at the start of the peer's buffer.
  absl::StatusOr<Completion> Write(SelftestLink& link, const RemoteMemory& remote, std::string_view text);
  absl::StatusOr<Completion> Read(SelftestLink& link, const RemoteMemory& remote, uint64_t length);
  // Start of the peer's buffer.
  std::string_view ReadText(uint64_t length) const;
  // Errors unless the access succeeds, and what it writes or reads is the same as in the owner's memory at `offset`.
  absl::Status MustReach(SelftestLink& link, const RemoteMemory& remote, uint64_t offset, uint64_t length);
  // Errors unless a write of one byte, over a connection of its own, is refused and changes nothing of the owner's.
  absl::Status MustRefuseWrite(const RemoteMemory& remote, const std::string& what);
  absl::Status MustRefuseRead(const RemoteMemory& remote, const std::string& what);

  // A region of the owner for fast registrations.
  absl::StatusOr<FastRegion> NewFastRegion() const;
  // These pages of the owner's memory, without the first `fbo` bytes, as one range at an address that is none of its
  // process.
  FastRegistration Pages(const std::vector<size_t>& order, uint32_t fbo = 0) const;
  // Registers them, with all remote rights unless told otherwise; the peer's view of it.
  absl::StatusOr<RemoteMemory> FastRegister(SelftestLink& link, const FastRegion& region,
                                            const FastRegistration& registration, uint32_t flags = kEveryRight);

 private:
  static constexpr uint32_t kEveryRight = kOpFlagRemoteRead | kOpFlagRemoteWrite;

  SelftestScene(Client owner, Client peer, Memory memory, LogicalMapping mapping, Memory buffer, MemoryRegion region)
      : owner_(std::move(owner)),
        peer_(std::move(peer)),
        memory_(std::move(memory)),
        mapping_(std::move(mapping)),
        buffer_(std::move(buffer)),
        buffer_region_(std::move(region)) {
    Reset();
  }

  Client owner_;
  Client peer_;
  Memory memory_;
  LogicalMapping mapping_;
  Memory buffer_;
  MemoryRegion buffer_region_;
};

// A kInternal error.
absl::Status SelftestWrong(const std::string& sentence);

}  // namespace rnicd::ctl
