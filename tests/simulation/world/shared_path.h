#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/files/unique_fd.h"
#include "daemon/core/ring/ring.h"
#include "ring/client_end.h"
#include "ring/queue_end.h"
#include "tests/simulation/world/findings.h"
#include "tests/simulation/world/witness.h"

// What a client does through memory that it shares with the daemon.
namespace rnicd::simulation {

// A client's mapping of a file of the daemon; the destructor unmaps it.
class ClientMapping {
 public:
  ClientMapping(const UniqueFd& file, uint64_t bytes);
  ClientMapping(const ClientMapping&) = delete;
  ClientMapping& operator=(const ClientMapping&) = delete;
  ~ClientMapping();
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

// A client's end of its ring. Each request has one outcome, at once or later, unless its flags say that it has none.
class RingUser {
 public:
  struct Request {
    ring::Submission entry;
    std::vector<std::byte> payload;
    uint32_t tokens = 0;
  };
  struct Reply {
    absl::Status status;
    ring::Outcome outcome;
    // As many as were asked for; 0 where none was issued.
    std::vector<uint32_t> tokens;
  };
  using Done = std::function<void(const Reply&)>;

  RingUser(std::shared_ptr<core::Ring> ring, const UniqueFd& file, uint64_t bytes);

  const std::shared_ptr<core::Ring>& ring() const { return ring_; }
  // True if there is room for the request.
  bool Reserve(const Request& request);
  // After a Reserve that returned true. `done` gets the outcome, in a later Poll.
  void Submit(const Request& request, Done done);
  // Reads all outcomes, and reports those of requests that have none to come.
  void Poll(Findings& findings);
  uint64_t file_bytes() const { return mapping_.bytes().size(); }
  size_t outstanding() const { return outstanding_.size(); }

 private:
  struct Outstanding {
    uint32_t result_offset = 0;
    uint32_t tokens = 0;
    Done done;
  };
  Reply Read(const Outstanding& request, const ring::Outcome& outcome) const;

  const std::shared_ptr<core::Ring> ring_;
  const ClientMapping mapping_;
  ring::ClientEnd end_;
  std::optional<uint32_t> reserved_;
  // Requests by number.
  std::map<uint64_t, Outstanding> outstanding_;
};

// A client's end of a mapped completion queue.
class MappedUser {
 public:
  MappedUser(const UniqueFd& file, uint64_t bytes) : mapping_(file, bytes), reader_(OpenReader(mapping_)) {}

  // Heap bytes that such a queue costs beyond those of every queue.
  static uint64_t HeapOf(uint32_t depth_max);

  // Takes up to `max` completions.
  std::vector<Completion> Take(uint32_t max, Witness& witness);
  uint32_t notifications() const { return reader_.notifications(); }
  uint32_t status() const { return reader_.status(); }

 private:
  static ring::QueueReader OpenReader(const ClientMapping& mapping);
  // Exchanges the next two completions in the shared memory.
  void SwapNextTwo();

  const ClientMapping mapping_;
  ring::QueueReader reader_;
};

}  // namespace rnicd::simulation
