#include "tests/conformance/peer_access.h"

#include <gtest/gtest.h>

namespace rnicd::test {
namespace {

constexpr uint64_t kPeerBytes = 4 * kPage;

}  // namespace

FreshConnection::FreshConnection(TestSession& near_session, TestSession& far_session)
    : near(near_session), far(far_session) {
  ConnectPair(near, far);
}

AccessProbe::AccessProbe(TestSession& peer, TestSession& owner)
    : peer_(peer), owner_(owner), peer_region_(peer, kPeerBytes, kMrRemoteRead | kMrRemoteWrite | kMrReadSink) {}

v1::CqResultEx AccessProbe::PeerWrites(const std::string& text, uint64_t address, uint32_t remote_token, Where where) {
  return FreshConnection(peer_, owner_).near.Run(InlineWriteRequest(text, address, remote_token), where);
}

v1::CqResultEx AccessProbe::PeerReads(uint64_t address, uint32_t length, uint32_t remote_token, Where where) {
  const v1::WorkRequest request = ReadRequest({peer_region_.Piece(0, length)}, address, remote_token);
  return FreshConnection(peer_, owner_).near.Run(request, where);
}

v1::CqResultEx AccessProbe::OwnerWrites(const std::vector<v1::Sge>& sources, Where where) {
  const v1::WorkRequest request = WriteRequest(sources, kBase, peer_region_.remote_token());
  return FreshConnection(peer_, owner_).far.Run(request, where);
}

v1::CqResultEx AccessProbe::OwnerReads(const std::vector<v1::Sge>& sinks, Where where) {
  const v1::WorkRequest request = ReadRequest(sinks, kBase, peer_region_.remote_token());
  return FreshConnection(peer_, owner_).far.Run(request, where);
}

void MustReadLater(TestSession& reader, TestSession& owner, Where where) {
  const RegisteredMemory source(owner, kPage, kMrRemoteRead);
  ExpectCompletion(AccessProbe(reader, owner).PeerReads(kBase, 8, source.remote_token(), where), NtStatus::kSuccess, 1,
                   where);
}

uint32_t RunForToken(TestQueue& queue, const v1::WorkRequest& request, Where where) {
  const v1::PostResponse posted = queue.MustPost({request});
  ExpectCompletion(queue.NextInitiator(where), NtStatus::kSuccess, request.request_context(), where);
  if (posted.issued_tokens_size() != 1 || posted.issued_tokens(0).remote_token() == 0) {
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
        << "expected one token, got: " << posted.ShortDebugString();
    return 0;
  }
  return posted.issued_tokens(0).remote_token();
}

CallResult<v1::ReleaseLamResponse> ReleaseMapping(TestSession& session, uint64_t lam_id) {
  v1::ReleaseLamRequest request;
  request.set_lam_id(lam_id);
  return session.Call(&MemoryStub::ReleaseLam, request);
}

}  // namespace rnicd::test
