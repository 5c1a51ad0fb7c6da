// The C interface against the real daemon: transfers, fast registrations, windows, completion queues.
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/integration/library/librnicd_c_fixture.h"

namespace rnicd::test {
namespace {

class RnicdQueuesInC : public RnicdInC {};

TEST_F(RnicdQueuesInC, WriteReadAndSendArriveInOrder) {
  LoopInC loop(daemon());
  std::strcpy(loop.at(0), "hello");
  const rnicd_sge source = loop.sge(0, 6);
  const rnicd_sge sink = loop.sge(8192, 6);
  const rnicd_sge received = loop.sge(12288, 100);
  EXPECT_EQ(rnicd_chain_receive(loop.chain.get(), &received, 1, 1), 0);
  EXPECT_EQ(rnicd_chain_write(loop.chain.get(), &source, 1, loop.info.address + 4096, loop.info.remote_token, 0, 2), 0);
  EXPECT_EQ(rnicd_chain_read(loop.chain.get(), &sink, 1, loop.info.address + 4096, loop.info.remote_token, 0, 3), 0);
  EXPECT_EQ(rnicd_chain_write_inline(loop.chain.get(), "in", 2, loop.info.address + 5000, loop.info.remote_token,
                                     RNICD_OP_SILENT_SUCCESS, 4),
            0);
  EXPECT_EQ(rnicd_chain_send_inline(loop.chain.get(), "bye", 4, 0, 5), 0);
  loop.Post();
  std::vector<uint64_t> contexts;
  for (int number = 0; number < 4; ++number) {
    const rnicd_completion completion = loop.Next();
    EXPECT_EQ(completion.ntstatus, 0u) << rnicd_reason_name(completion.reason);
    contexts.push_back(completion.context);
    if (completion.operation == RNICD_RECEIVE) {
      EXPECT_EQ(completion.bytes, 4u);
    }
  }
  std::sort(contexts.begin(), contexts.end());
  EXPECT_EQ(contexts, (std::vector<uint64_t>{1, 2, 3, 5}));
  EXPECT_STREQ(loop.at(4096), "hello");
  EXPECT_STREQ(loop.at(8192), "hello");
  EXPECT_STREQ(loop.at(5000), "in");
  EXPECT_STREQ(loop.at(12288), "bye");
  EXPECT_EQ(rnicd_qp_state(loop.qp.get()), RNICD_QP_READY_TO_SEND);
}

TEST_F(RnicdQueuesInC, ChainIssuesTokensOfFastRegistrationsAndWindows) {
  LoopInC loop(daemon());
  const InC<rnicd_mapping> mapping =
      MakeInC<rnicd_mapping>(rnicd_create_mapping, loop.memory.get(), uint64_t{100}, uint64_t{5000});
  const InC<rnicd_fast_mr> fast =
      MakeInC<rnicd_fast_mr>(rnicd_create_fast_mr, loop.session.get(), 4u, RNICD_FAST_MR_REMOTE_ACCESS);
  const InC<rnicd_mw> mw = MakeInC<rnicd_mw>(rnicd_create_mw, loop.session.get());
  const rnicd_pages pages = QueryInC(mapping.get());
  EXPECT_EQ(pages.page_count, 2u);
  EXPECT_EQ(pages.fbo, 100u);
  uint32_t token = 0;
  EXPECT_EQ(rnicd_mw_token(mw.get(), &token), -EBADFD);
  EXPECT_EQ(rnicd_chain_fast_register(loop.chain.get(), fast.get(), &pages, RNICD_OP_REMOTE_WRITE, 1), 0);
  EXPECT_EQ(
      rnicd_chain_bind(loop.chain.get(), loop.mr.get(), mw.get(), loop.info.address, 10, RNICD_OP_REMOTE_WRITE, 2), 0);
  EXPECT_EQ(rnicd_post(loop.qp.get(), loop.chain.get()), 0) << rnicd_last_error()->message;
  EXPECT_EQ(rnicd_chain_posted(loop.chain.get()), 2u);
  const uint32_t of_pages = rnicd_chain_token(loop.chain.get(), 0);
  const uint32_t of_window = rnicd_chain_token(loop.chain.get(), 1);
  EXPECT_EQ(loop.Next().operation, RNICD_FAST_REGISTER);
  EXPECT_EQ(loop.Next().operation, RNICD_BIND);
  EXPECT_EQ(rnicd_fast_mr_token(fast.get(), &token), 0);
  EXPECT_EQ(token, of_pages);
  EXPECT_EQ(rnicd_mw_token(mw.get(), &token), 0);
  EXPECT_EQ(token, of_window);

  auto info = RNICD_INIT(rnicd_fast_mr_info);
  EXPECT_EQ(rnicd_query_fast_mr(fast.get(), &info), 0);
  EXPECT_NE(info.local_token, 0u);
  EXPECT_EQ(rnicd_reset_chain(loop.chain.get()), 0);
  EXPECT_EQ(rnicd_chain_write_inline(loop.chain.get(), "fast", 5, pages.address, of_pages, 0, 3), 0);
  EXPECT_EQ(rnicd_chain_write_inline(loop.chain.get(), "mw", 3, loop.info.address, of_window, 0, 4), 0);
  EXPECT_EQ(rnicd_chain_invalidate_fast_mr(loop.chain.get(), fast.get(), 0, 5), 0);
  EXPECT_EQ(rnicd_chain_invalidate_mw(loop.chain.get(), mw.get(), 0, 6), 0);
  loop.Post();
  for (uint64_t context = 3; context <= 6; ++context) {
    const rnicd_completion completion = loop.Next();
    EXPECT_EQ(completion.context, context);
    EXPECT_EQ(completion.ntstatus, 0u) << rnicd_reason_name(completion.reason);
  }
  EXPECT_STREQ(loop.at(100), "fast");
  EXPECT_STREQ(loop.at(0), "mw");
}

TEST_F(RnicdQueuesInC, PrivilegedTokenNamesLogicalAddresses) {
  LoopInC loop(daemon());
  const rnicd_mdl whole = {loop.memory.get(), 0, LoopInC::kBytes, 0};
  const InC<rnicd_mapping> mapping =
      MakeInC<rnicd_mapping>(rnicd_create_mapping_mdl, loop.session.get(), &whole, 1u, LoopInC::kBytes);
  uint32_t token = 0;
  ASSERT_EQ(rnicd_privileged_token(loop.session.get(), &token), 0);
  std::strcpy(loop.at(4096), "page");
  const rnicd_sge page = {QueryInC(mapping.get()).pages[1], 5, token};
  EXPECT_EQ(rnicd_chain_write(loop.chain.get(), &page, 1, loop.info.address, loop.info.remote_token, 0, 1), 0);
  loop.Post();
  EXPECT_EQ(loop.Next().ntstatus, 0u);
  EXPECT_STREQ(loop.at(0), "page");
}

TEST_F(RnicdQueuesInC, RefusedRequestIsNamedAndThoseBeforeItArePosted) {
  LoopInC loop(daemon());
  EXPECT_EQ(rnicd_post(loop.qp.get(), loop.chain.get()), -EINVAL);
  EXPECT_EQ(rnicd_last_error()->reason, static_cast<uint32_t>(RNICD_REASON_BATCH_SIZE));
  const rnicd_sge sges[5] = {};
  EXPECT_EQ(rnicd_chain_send_inline(loop.chain.get(), "x", 1, RNICD_OP_SILENT_SUCCESS, 1), 0);
  EXPECT_EQ(rnicd_chain_send(loop.chain.get(), sges, 5, 0, 2), 0);
  EXPECT_EQ(rnicd_post(loop.qp.get(), loop.chain.get()), -EINVAL);
  EXPECT_EQ(rnicd_last_error()->reason, static_cast<uint32_t>(RNICD_REASON_SGE_COUNT));
  EXPECT_EQ(std::string(rnicd_last_error()->field).substr(0, 11), "requests[1]");
  EXPECT_EQ(rnicd_chain_posted(loop.chain.get()), 1u);
  EXPECT_EQ(rnicd_flush_qp(loop.qp.get()), 0);
  const rnicd_completion flushed = loop.Next();
  EXPECT_EQ(flushed.reason, static_cast<uint32_t>(RNICD_REASON_REQUEST_FLUSHED));
  EXPECT_EQ(flushed.context, 1u);
  EXPECT_EQ(rnicd_qp_state(loop.qp.get()), RNICD_QP_ERROR);
  EXPECT_EQ(rnicd_disconnect_qp(loop.qp.get()), -ENOTCONN);
}

TEST_F(RnicdQueuesInC, FullQueueSaysTryAgain) {
  LoopInC loop(daemon(), 256);
  for (int number = 0; number < 65; ++number) {
    EXPECT_EQ(rnicd_chain_receive(loop.chain.get(), nullptr, 0, 0), 0);
  }
  EXPECT_EQ(rnicd_post(loop.qp.get(), loop.chain.get()), -EAGAIN);
  EXPECT_EQ(rnicd_last_error()->reason, static_cast<uint32_t>(RNICD_REASON_QUEUE_FULL));
  EXPECT_EQ(rnicd_chain_posted(loop.chain.get()), 64u);
}

TEST_F(RnicdQueuesInC, ArmedQueueNotifiesOnceAndManyAreTakenAtATime) {
  LoopInC loop(daemon());
  EXPECT_EQ(rnicd_wait_cq(loop.cq.get(), 0), 0);
  EXPECT_EQ(rnicd_arm_cq(loop.cq.get(), RNICD_NOTIFY_ANY), 0);
  for (uint64_t context = 0; context < 10; ++context) {
    EXPECT_EQ(rnicd_chain_write(loop.chain.get(), nullptr, 0, 0, 0, 0, context), 0);
  }
  loop.Post();
  EXPECT_EQ(rnicd_wait_cq(loop.cq.get(), -1), 1);
  rnicd_completion completions[16] = {};
  int count = 0;
  while (count < 10) {
    const int more = rnicd_poll_cq_for(loop.cq.get(), completions + count, static_cast<uint32_t>(16 - count), -1);
    ASSERT_GT(more, 0);
    count += more;
  }
  EXPECT_EQ(count, 10);
  for (uint64_t context = 0; context < 10; ++context) {
    EXPECT_EQ(completions[context].context, context);
  }
  EXPECT_EQ(rnicd_poll_cq(loop.cq.get(), completions, 16), 0);
  EXPECT_EQ(rnicd_poll_cq_for(loop.cq.get(), completions, 16, 1), 0);
  EXPECT_EQ(rnicd_arm_cq(loop.cq.get(), static_cast<rnicd_notify>(3)), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "type");
}

TEST_F(RnicdQueuesInC, QueueGrowsUpToTheDepthThatWasReserved) {
  const InC<rnicd_session> session = SessionInC(daemon());
  const InC<rnicd_cq> cq = MakeInC<rnicd_cq>(rnicd_create_cq, session.get(), 64u, 128u);
  EXPECT_EQ(rnicd_resize_cq(cq.get(), 128), 0);
  EXPECT_EQ(UsedInC(session.get(), "cq_entries"), 128u);
}

// More than are taken from the library at a time.
TEST_F(RnicdQueuesInC, LargeArraysAreFilled) {
  LoopInC loop(daemon(), 512);
  const InC<rnicd_qp> qp = [&] {
    auto options = RNICD_INIT(rnicd_qp_options);
    options.receive_queue_depth = 400;
    return MakeInC<rnicd_qp>(rnicd_create_qp, loop.cq.get(), loop.cq.get(), &options);
  }();
  for (uint64_t context = 0; context < 400; ++context) {
    EXPECT_EQ(rnicd_chain_receive(loop.chain.get(), nullptr, 0, context), 0);
  }
  EXPECT_EQ(rnicd_post(qp.get(), loop.chain.get()), 0) << rnicd_last_error()->message;
  EXPECT_EQ(rnicd_flush_qp(qp.get()), 0);
  std::vector<rnicd_completion> completions(500);
  size_t taken = 0;
  ASSERT_TRUE(Eventually([&] {
    const int more = rnicd_poll_cq(loop.cq.get(), completions.data() + taken, static_cast<uint32_t>(500 - taken));
    taken += static_cast<size_t>(std::max(more, 0));
    return taken == 400;
  }));
  for (uint64_t context = 0; context < 400; ++context) {
    EXPECT_EQ(completions[context].context, context);
    EXPECT_EQ(completions[context].reason, static_cast<uint32_t>(RNICD_REASON_REQUEST_FLUSHED));
  }
}

TEST_F(RnicdQueuesInC, PostWithoutOutcomeCompletesARefusedRequestInItsPlace) {
  LoopInC loop(daemon());
  auto info = RNICD_INIT(rnicd_qp_info);
  EXPECT_EQ(rnicd_query_qp(loop.qp.get(), &info), 0);
  const rnicd_sge outside = {1, 1, 1};
  EXPECT_EQ(rnicd_chain_write(loop.chain.get(), nullptr, 0, 0, 0, 0, 1), 0);
  EXPECT_EQ(rnicd_chain_write(loop.chain.get(), &outside, 1, 0, 0, 0x8000, 2), 0);
  EXPECT_EQ(rnicd_chain_write(loop.chain.get(), nullptr, 0, 0, 0, RNICD_OP_SILENT_SUCCESS, 3), 0);
  EXPECT_EQ(rnicd_post_without_outcome(loop.qp.get(), loop.chain.get()), 0) << rnicd_last_error()->message;
  EXPECT_EQ(rnicd_chain_posted(loop.chain.get()), 3u);
  rnicd_outstanding outstanding = {};
  EXPECT_EQ(rnicd_query_outstanding(loop.qp.get(), &outstanding), 0);
  EXPECT_EQ(outstanding.initiator, 3u);
  EXPECT_EQ(outstanding.receive, 0u);
  const rnicd_completion first = loop.Next();
  EXPECT_EQ(first.ntstatus, 0u);
  EXPECT_EQ(first.qp_id, info.id);
  EXPECT_EQ(first.request_number, 1u);
  const rnicd_completion refused = loop.Next();
  EXPECT_EQ(refused.context, 2u);
  EXPECT_EQ(refused.reason, static_cast<uint32_t>(RNICD_REASON_FLAGS_UNKNOWN));
  EXPECT_EQ(refused.request_number, 2u);
  EXPECT_EQ(loop.Next().reason, static_cast<uint32_t>(RNICD_REASON_REQUEST_FLUSHED));
  EXPECT_EQ(rnicd_query_outstanding(loop.qp.get(), &outstanding), 0);
  EXPECT_EQ(outstanding.initiator, 0u);
}

TEST_F(RnicdQueuesInC, DescriptorOfAQueueWakesTheCallersOwnLoop) {
  auto options = RNICD_INIT(rnicd_session_options);
  options.data_path = RNICD_DATA_PATH_CALLS;
  const InC<rnicd_session> by_calls = SessionInC(daemon(), options);
  const InC<rnicd_cq> without = MakeInC<rnicd_cq>(rnicd_create_cq, by_calls.get(), 64u, 0u);
  EXPECT_EQ(rnicd_cq_fd(without.get()), -EOPNOTSUPP);

  LoopInC loop(daemon());
  EXPECT_EQ(rnicd_prepare_cq(loop.cq.get()), -ENOENT);
  pollfd descriptor = {.fd = rnicd_cq_fd(loop.cq.get()), .events = POLLIN, .revents = 0};
  if (descriptor.fd == -EOPNOTSUPP) {
    return;  // The tests run by calls.
  }
  EXPECT_EQ(rnicd_prepare_cq(loop.cq.get()), 1);
  EXPECT_EQ(poll(&descriptor, 1, 0), 0);
  EXPECT_EQ(rnicd_chain_write(loop.chain.get(), nullptr, 0, 0, 0, 0, 1), 0);
  loop.Post();
  EXPECT_EQ(poll(&descriptor, 1, -1), 1);
  EXPECT_EQ(rnicd_stop_cq(loop.cq.get()), 0);
  EXPECT_EQ(rnicd_prepare_cq(loop.cq.get()), 0);
  EXPECT_EQ(loop.Next().context, 1u);
}

TEST_F(RnicdQueuesInC, QueuePairFlushesWithItsPeerWhereAsked) {
  LoopInC loop(daemon());
  auto options = RNICD_INIT(rnicd_qp_options);
  options.flags = RNICD_QP_FLUSH_WITH_PEER;
  const InC<rnicd_qp> qp = MakeInC<rnicd_qp>(rnicd_create_qp, loop.cq.get(), loop.cq.get(), &options);
  options.flags = 2;
  rnicd_qp* none = nullptr;
  EXPECT_EQ(rnicd_create_qp(loop.cq.get(), loop.cq.get(), &options, &none), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "options.flags");
  auto self = RNICD_INIT(rnicd_qp_info);
  auto other = RNICD_INIT(rnicd_qp_info);
  EXPECT_EQ(rnicd_query_qp(qp.get(), &self), 0);
  {
    const InC<rnicd_qp> peer = MakeInC<rnicd_qp>(rnicd_create_qp, loop.cq.get(), loop.cq.get(), nullptr);
    EXPECT_EQ(rnicd_query_qp(peer.get(), &other), 0);
    EXPECT_EQ(rnicd_connect_qp(qp.get(), other.address, other.address_bytes), 0);
    EXPECT_EQ(rnicd_connect_qp(peer.get(), self.address, self.address_bytes), 0);
    EXPECT_EQ(rnicd_chain_receive(loop.chain.get(), nullptr, 0, 9), 0);
    EXPECT_EQ(rnicd_post(qp.get(), loop.chain.get()), 0);
  }
  const rnicd_completion flushed = loop.Next();
  EXPECT_EQ(flushed.context, 9u);
  EXPECT_EQ(flushed.reason, static_cast<uint32_t>(RNICD_REASON_REQUEST_FLUSHED));
}

TEST_F(RnicdQueuesInC, OverrunQueueSaysSo) {
  LoopInC loop(daemon(), 1);
  EXPECT_EQ(rnicd_chain_write(loop.chain.get(), nullptr, 0, 0, 0, 0, 1), 0);
  EXPECT_EQ(rnicd_chain_write(loop.chain.get(), nullptr, 0, 0, 0, 0, 2), 0);
  EXPECT_EQ(rnicd_arm_cq(loop.cq.get(), RNICD_NOTIFY_ERRORS), 0);
  loop.Post();
  EXPECT_EQ(rnicd_wait_cq(loop.cq.get(), -1), -EOVERFLOW);
  rnicd_completion completion = {};
  EXPECT_EQ(rnicd_poll_cq(loop.cq.get(), &completion, 1), -EOVERFLOW);
}

// Each has a queue pair of its own, in one session, and fails in its own way too.
TEST_F(RnicdQueuesInC, TwoThreadsOfOneSessionDoNotMeet) {
  LoopInC loop(daemon());
  const auto run = [&](uint64_t offset) {
    const InC<rnicd_cq> cq = MakeInC<rnicd_cq>(rnicd_create_cq, loop.session.get(), 64u, 0u);
    const InC<rnicd_qp> qp = MakeInC<rnicd_qp>(rnicd_create_qp, cq.get(), cq.get(), nullptr);
    const InC<rnicd_chain> chain = ChainInC();
    auto self = RNICD_INIT(rnicd_qp_info);
    EXPECT_EQ(rnicd_query_qp(qp.get(), &self), 0);
    EXPECT_EQ(rnicd_connect_qp(qp.get(), self.address, self.address_bytes), 0);
    for (uint64_t context = 0; context < 500; ++context) {
      EXPECT_EQ(rnicd_reset_chain(chain.get()), 0);
      EXPECT_EQ(rnicd_chain_write_inline(chain.get(), &context, sizeof(context), loop.info.address + offset,
                                         loop.info.remote_token, 0, context),
                0);
      EXPECT_EQ(rnicd_post(qp.get(), chain.get()), 0);
      rnicd_completion completion = {};
      EXPECT_EQ(rnicd_poll_cq_for(cq.get(), &completion, 1, -1), 1);
      EXPECT_EQ(completion.context, context);
      EXPECT_EQ(std::memcmp(loop.at(offset), &context, sizeof(context)), 0);
    }
    rnicd_mr* none = nullptr;
    EXPECT_EQ(rnicd_register_mr(loop.memory.get(), LoopInC::kBytes + 1 + offset, 1, 0, &none), -EINVAL);
    EXPECT_STREQ(rnicd_last_error()->field, "offset");
  };
  std::thread other(run, 4096);
  run(0);
  other.join();
}

}  // namespace
}  // namespace rnicd::test
