#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/conformance/queue_steps.h"

// Helpers for tests of transfers: accesses that may be refused.
namespace rnicd::test {

inline constexpr uint32_t kMrReadSink = v1::MR_FLAG_RDMA_READ_SINK;

// Two connected queue pairs of these sessions. A refused access ends its connection, so each access to be refused uses
// a new one.
struct FreshConnection {
  FreshConnection(TestSession& near_session, TestSession& far_session);
  TestQueue near;
  TestQueue far;
};

// Accesses of a peer to the memory of an owner, and of the owner to its own memory, each over a fresh connection. Each
// returns the completion.
class AccessProbe {
 public:
  AccessProbe(TestSession& peer, TestSession& owner);

  // The peer's buffer for transfers to and from the owner: at kBase, initially zeroes.
  TestMemory& peer_memory() { return peer_region_.memory; }

  v1::CqResultEx PeerWrites(const std::string& text, uint64_t address, uint32_t remote_token,
                            Where where = Where::current());
  // Reads into the start of the peer's memory.
  v1::CqResultEx PeerReads(uint64_t address, uint32_t length, uint32_t remote_token, Where where = Where::current());
  // Same from the owner's side: tests the rights of the owner's tokens.
  v1::CqResultEx OwnerWrites(const std::vector<v1::Sge>& sources, Where where = Where::current());
  // Reads from the start of the peer's memory.
  v1::CqResultEx OwnerReads(const std::vector<v1::Sge>& sinks, Where where = Where::current());

 private:
  TestSession& peer_;
  TestSession& owner_;
  RegisteredMemory peer_region_;
};

// A read over a new connection, from its beginning to its end: whatever was under way before is over.
void MustReadLater(TestSession& reader, TestSession& owner, Where where = Where::current());

// Runs a FastRegister or a Bind, which must succeed, and returns the remote token that it issued.
uint32_t RunForToken(TestQueue& queue, const v1::WorkRequest& request, Where where = Where::current());

CallResult<v1::ReleaseLamResponse> ReleaseMapping(TestSession& session, uint64_t lam_id);

}  // namespace rnicd::test
