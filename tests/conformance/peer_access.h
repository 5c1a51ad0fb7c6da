#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/conformance/queue_steps.h"

// What tests of transfers share: accesses that may be refused.
namespace rnicd::test {

inline constexpr uint32_t kMrReadSink = v1::MR_FLAG_RDMA_READ_SINK;

// Two queue pairs of these sessions, connected with each other. A refused access ends the connection that it came on,
// so what is to be refused gets one of its own.
struct FreshConnection {
  FreshConnection(TestSession& near_session, TestSession& far_session);
  TestQueue near;
  TestQueue far;
};

// Accesses of a peer to the memory of an owner, and of the owner to its own memory, each over a fresh connection. The
// completion says what became of it.
class AccessProbe {
 public:
  AccessProbe(TestSession& peer, TestSession& owner);

  // What the peer sends to, and takes from, the owner: it lies at kBase, and starts out as zeroes.
  TestMemory& peer_memory() { return peer_region_.memory; }

  v1::CqResultEx PeerWrites(const std::string& text, uint64_t address, uint32_t remote_token,
                            Where where = Where::current());
  // Into the start of the peer's memory.
  v1::CqResultEx PeerReads(uint64_t address, uint32_t length, uint32_t remote_token, Where where = Where::current());
  // Likewise, but from the owner's side: shows what the owner's own tokens allow.
  v1::CqResultEx OwnerWrites(const std::vector<v1::Sge>& sources, Where where = Where::current());
  // From the start of the peer's memory.
  v1::CqResultEx OwnerReads(const std::vector<v1::Sge>& sinks, Where where = Where::current());

 private:
  TestSession& peer_;
  TestSession& owner_;
  RegisteredMemory peer_region_;
};

// Runs a FastRegister or a Bind, which must succeed, and returns the remote token that it issued.
uint32_t RunForToken(TestQueue& queue, const v1::WorkRequest& request, Where where = Where::current());

CallResult<v1::ReleaseLamResponse> ReleaseMapping(TestSession& session, uint64_t lam_id);

}  // namespace rnicd::test
