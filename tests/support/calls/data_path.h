#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "google/protobuf/message.h"
#include "ring/queue_end.h"
#include "rnicd/v1/memory_service.pb.h"
#include "rnicd/v1/queue_service.pb.h"
#include "tests/support/calls/call_result.h"
#include "tests/support/calls/ring_client.h"
#include "tests/support/process/memory_file.h"

namespace rnicd::test {

// How sessions of this run post: by calls, or through rings and mapped completion queues (RNICD_TEST_DATA_PATH=rings).
bool UsesRings();

// What went through shared memory so far, in this process.
struct SharedMemoryUse {
  uint64_t requests = 0;
  uint64_t completions = 0;
};
SharedMemoryUse UseOfSharedMemory();

// Carries the calls that a ring or a mapped completion queue can replace: Post, RegisterMr, DeregisterMr,
// GetRemoteToken, ArmCq, GetCqResults and GetCqResultsEx, each with the messages and refusals of the call. Completion
// queues are created mapped. What shared memory cannot say is left to calls: requests that may pend (an outcome of a
// ring just comes later), chains that do not fit or name no operation, and everything after the session has ended.
// Lifetime: outlived by the session's connection.
// Threads:  safe.
class DataPath {
 public:
  using Message = google::protobuf::Message;
  // The session's connection: a call, and a descriptor for a ticket.
  struct Connection {
    std::function<CallOutcome(const char* path, const Message& request, Message* response)> call;
    std::function<UniqueFd(const std::string& ticket)> fetch;
  };
  explicit DataPath(Connection connection) : connection_(std::move(connection)) {}

  // Nothing if the request is to be a call.
  std::optional<CallOutcome> Carry(const char* path, const Message& request, Message* response);

 private:
  // A completion queue whose completions are in shared memory.
  struct MappedQueue {
    MappedQueue(const UniqueFd& memory, uint64_t file_bytes)
        : mapping(memory.get(), file_bytes), reader(ring::QueueReader::Open(mapping.bytes())) {}

    const SharedMapping mapping;
    Mutex mutex;
    absl::StatusOr<ring::QueueReader> reader;
  };

  std::optional<CallOutcome> Post(const v1::PostRequest& request, v1::PostResponse* response);
  std::optional<CallOutcome> RegisterMr(const v1::RegisterMrRequest& request, v1::RegisterMrResponse* response);
  std::optional<CallOutcome> DeregisterMr(const v1::DeregisterMrRequest& request, v1::DeregisterMrResponse* response);
  std::optional<CallOutcome> GetRemoteToken(const v1::GetRemoteTokenRequest& request,
                                            v1::GetRemoteTokenResponse* response);
  std::optional<CallOutcome> ArmCq(const v1::ArmCqRequest& request, v1::ArmCqResponse* response);
  std::optional<CallOutcome> CreateCq(const v1::CreateCqRequest& request, v1::CreateCqResponse* response);
  std::optional<CallOutcome> CloseCq(const v1::CloseCqRequest& request, v1::CloseCqResponse* response);
  std::optional<CallOutcome> GetCqResults(const v1::GetCqResultsRequest& request, v1::GetCqResultsResponse* response);
  std::optional<CallOutcome> GetCqResultsEx(const v1::GetCqResultsExRequest& request,
                                            v1::GetCqResultsExResponse* response);

  // Runs one of the above for the messages of its call.
  template <auto method, typename Request, typename Response>
  static std::optional<CallOutcome> Run(DataPath& self, const Message& request, Message* response) {
    return (self.*method)(static_cast<const Request&>(request), static_cast<Response*>(response));
  }

  // Executes a request in the session's ring, which the first one opens.
  std::optional<RingReply> Execute(const RingRequest& request);
  // Null if the daemon refused to open one.
  std::shared_ptr<RingClient> Ring();
  std::shared_ptr<MappedQueue> Find(uint64_t cq_id);
  // Takes up to `max` completions of a mapped queue, and passes each to `add`.
  template <typename Add>
  std::optional<CallOutcome> Take(uint64_t cq_id, uint32_t max, uint32_t wait_ms, const Add& add);

  const Connection connection_;
  Mutex mutex_;
  std::shared_ptr<RingClient> ring_ RNICD_GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<MappedQueue>> queues_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::test
