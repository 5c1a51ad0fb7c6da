// Completions that failed say why. That every completion has a reason of its operation's list, with the NTSTATUS that
// belongs to it, is checked for all tests in tests/support/queue_client.cc.
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/support/calls/expect.h"
#include "tests/support/queue_client.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

constexpr uint32_t kWrongToken = 0x7ef05;

class CompletionReason : public DaemonTest {
 protected:
  void TearDown() override {
    pair_.reset();
    DaemonTest::TearDown();
  }
  // The name of the reason, or the whole completion when it did not fail.
  static std::string NameOf(const v1::CqResultEx& completion) {
    return completion.result().reason() == v1::ERROR_REASON_UNSPECIFIED
               ? completion.ShortDebugString()
               : std::string(RowOf(static_cast<ErrorReason>(completion.result().reason())).name);
  }
  TestQueue& near() { return pair_->near; }
  TestQueue& far() { return pair_->far; }

  std::optional<ConnectedPair> pair_{std::in_place, daemon()};
};

TEST_F(CompletionReason, OfAFlush) {
  near().MustPost({ReceiveRequest({})});
  v1::FlushRequest flush;
  flush.set_qp_id(near().qp_id());
  ExpectOk(pair_->near_session.Call(&QueueStub::Flush, flush));
  EXPECT_EQ(NameOf(near().NextReceive()), "REQUEST_FLUSHED");
}

TEST_F(CompletionReason, OfAnAccessThatOnesOwnMemoryRefuses) {
  TestMemory memory(pair_->far_session, kPage);
  const v1::Registration there = pair_->far_session.RegisterWhole(pair_->far_session.CreateMr(), memory.id(), kPage,
                                                                  v1::MR_FLAG_ALLOW_REMOTE_WRITE);
  EXPECT_EQ(NameOf(near().Run(WriteRequest({Sge(kBase, 1, kWrongToken)}, kBase, there.remote_token()))),
            "LOCAL_ACCESS_REFUSED");
}

TEST_F(CompletionReason, OfAnAccessThatThePeersMemoryRefuses) {
  EXPECT_EQ(NameOf(near().Run(InlineWriteRequest("x", kBase, kWrongToken))), "REMOTE_ACCESS_REFUSED");
}

TEST_F(CompletionReason, OfAReadThatThePeersMemoryRefuses) {
  TestMemory memory(pair_->near_session, kPage);
  const v1::Registration here = pair_->near_session.RegisterWhole(pair_->near_session.CreateMr(), memory.id(), kPage,
                                                                  v1::MR_FLAG_ALLOW_LOCAL_WRITE);
  EXPECT_EQ(NameOf(near().Run(ReadRequest({Sge(kBase, 1, here.local_token())}, kBase, kWrongToken))),
            "REMOTE_ACCESS_REFUSED");
}

TEST_F(CompletionReason, OfAPeerThatIsGone) {
  ExpectOk(CloseQp(pair_->far_session, far().qp_id()));
  EXPECT_EQ(NameOf(near().Run(WriteRequest({}, 0, 0))), "PEER_LOST");
}

TEST_F(CompletionReason, OfAReceiveThatIsTooShortOnBothSides) {
  far().MustPost({ReceiveRequest({})});
  EXPECT_EQ(NameOf(near().Run(SendRequest({InlineSge("long")}, v1::OP_FLAG_INLINE))), "PEER_FAILED");
  EXPECT_EQ(NameOf(far().NextReceive()), "RECEIVE_TOO_SHORT");
}

TEST_F(CompletionReason, OfATokenThatCannotBeInvalidated) {
  far().MustPost({ReceiveRequest({})});
  EXPECT_EQ(NameOf(near().Run(SendAndInvalidateRequest({}, kWrongToken))), "PEER_FAILED");
  EXPECT_EQ(NameOf(far().NextReceive()), "TOKEN_NOT_INVALIDATED");
}

TEST_F(CompletionReason, OfARegionThatIsNotRegistered) {
  const uint64_t region = FastRegion(pair_->near_session, 1);
  EXPECT_EQ(NameOf(near().Run(InvalidateMrRequest(region))), "REQUEST_OUT_OF_STATE");
}

}  // namespace
}  // namespace rnicd::test
