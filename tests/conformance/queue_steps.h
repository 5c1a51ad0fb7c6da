#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/queue_client.h"

namespace rnicd::test {

inline constexpr uint32_t kInline = v1::OP_FLAG_INLINE;
inline constexpr uint32_t kSilent = v1::OP_FLAG_SILENT_SUCCESS;
inline constexpr uint32_t kMrLocalWrite = v1::MR_FLAG_ALLOW_LOCAL_WRITE;
// For what reads are to fill, on adapters of every kind.
inline constexpr uint32_t kMrSink = v1::MR_FLAG_ALLOW_LOCAL_WRITE | v1::MR_FLAG_RDMA_READ_SINK;
inline constexpr uint32_t kMrRemoteRead = v1::MR_FLAG_ALLOW_REMOTE_READ;
inline constexpr uint32_t kMrRemoteWrite = v1::MR_FLAG_ALLOW_REMOTE_WRITE;

// NDK_ADAPTER_FLAG_ bits.
inline constexpr uint32_t kAdapterInOrderDma = 0x1;
inline constexpr uint32_t kAdapterReadSinkNotRequired = 0x2;
// RDMA_READ_LOCAL_INVALIDATE_SUPPORTED.
inline constexpr uint32_t kAdapterReadLocalInvalidate = 0x10;
inline constexpr uint32_t kAdapterCqResize = 0x100;

// Memory whose first bytes are a normal region, registered at kBase.
// Lifetime: the session must outlive this.
struct RegisteredMemory {
  RegisteredMemory(TestSession& session, uint64_t size, uint32_t mr_flags);
  // Registers only the first `length` bytes.
  RegisteredMemory(TestSession& session, uint64_t size, uint64_t length, uint32_t mr_flags);

  // `length` bytes from `offset`, for a request of the memory's owner.
  v1::Sge Piece(uint64_t offset, uint32_t length) const;
  uint32_t remote_token() const { return registration.remote_token(); }

  TestMemory memory;
  uint64_t mr_id;
  v1::Registration registration;
};

// The logical address of byte `offset` of the memory.
uint64_t LogicalAddressOf(TestMemory& memory, uint64_t offset);

// Expects that the completion has this context and this status.
void ExpectCompletion(const v1::CqResultEx& completion, NtStatus status, uint64_t context = 1,
                      Where where = Where::current());
// Expects that the queue pair enters the error state.
void ExpectInError(TestQueue& queue, Where where = Where::current());

// The flags of a daemon whose adapter lacks one of its usual adapter flags.
std::vector<std::string> AdapterFlagsWithout(uint32_t adapter_flag);

// The adapter's information.
v1::NdkAdapterInfo AdapterInfo(TestSession& session);

// Calls that TestQueue does not wrap.
CallResult<v1::FlushResponse> Flush(TestQueue& queue);
CallResult<v1::DisconnectQpResponse> Disconnect(TestQueue& queue);
CallResult<v1::ResizeCqResponse> Resize(TestSession& session, uint64_t cq_id, uint32_t depth);
CallResult<v1::GetCqResultsResponse> Results(TestSession& session, uint64_t cq_id, uint32_t max_results);
CallResult<v1::GetCqResultsExResponse> ResultsEx(TestSession& session, uint64_t cq_id, uint32_t max_results);

// A write of no bytes: completes soon on a connected queue pair, whatever the peer does.
v1::WorkRequest Tick(uint64_t context = 1, uint32_t flags = 0);

// Adds completions of cancelled receives with the contexts from `first` to `last` to the queue. They are in the queue
// when this returns, also on an asynchronous card, because the close of their queue pair waits for them.
void QueueUp(TestSession& session, uint64_t cq_id, uint64_t first, uint64_t last);

}  // namespace rnicd::test
