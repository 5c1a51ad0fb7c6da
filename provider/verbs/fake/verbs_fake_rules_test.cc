#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>
#include <thread>

#include "provider/verbs/fake/verbs_fake.h"

// FakeVerbs replaces a card in every other test of this folder; these tests compare it with the measured behaviour of a
// card.
namespace rnicd::provider {
namespace {

short Polled(int fd) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&entry, 1, 0) < 0 ? short{-1} : entry.revents;
}

class FakeVerbsRules : public testing::Test {
 protected:
  FakeVerbsRules() { cq_ = verbs_.CreateCq(context_, 16, channel_); }
  ~FakeVerbsRules() override {
    if (qp_ != nullptr) {
      verbs_.DestroyQp(qp_);
    }
    verbs_.DestroyCq(cq_);
    verbs_.DestroyChannel(channel_);
    verbs_.DeregMr(mr_);
    verbs_.DeallocPd(pd_);
    verbs_.Close(context_);
    EXPECT_EQ(verbs_.live(), FakeLive{});
  }

  void MakeQp(uint32_t depth = 4) {
    ibv_qp_init_attr init = {};
    init.send_cq = init.recv_cq = cq_;
    init.cap = {
        .max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64};
    init.qp_type = IBV_QPT_RC;
    qp_ = verbs_.CreateQp(pd_, init);
    ASSERT_NE(qp_, nullptr);
  }
  int ToInit() {
    ibv_qp_attr attributes = {};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    return verbs_.ModifyQp(qp_, attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  }
  int ToReadyToReceive(uint8_t gid_index = 1, uint8_t last_byte = 2) {
    ibv_qp_attr attributes = {};
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = IBV_MTU_1024;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.grh.sgid_index = gid_index;
    attributes.ah_attr.grh.dgid.raw[15] = last_byte;
    return verbs_.ModifyQp(qp_, attributes,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  }
  int ToReadyToSend() {
    ibv_qp_attr attributes = {};
    attributes.qp_state = IBV_QPS_RTS;
    return verbs_.ModifyQp(
        qp_, attributes,
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  }
  int To(ibv_qp_state state) {
    ibv_qp_attr attributes = {};
    attributes.qp_state = state;
    return verbs_.ModifyQp(qp_, attributes, IBV_QP_STATE);
  }
  void Connect() {
    MakeQp();
    ASSERT_EQ(ToInit(), 0);
    ASSERT_EQ(ToReadyToReceive(), 0);
    ASSERT_EQ(ToReadyToSend(), 0);
  }
  int Send(uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_send_wr request = {};
    request.wr_id = wr_id;
    request.opcode = IBV_WR_SEND;
    request.send_flags = flags;
    return verbs_.PostSend(qp_, request);
  }
  int Receive(uint64_t wr_id) {
    ibv_sge entry{.addr = 4096, .length = 128, .lkey = mr_->lkey};
    ibv_recv_wr request = {.wr_id = wr_id, .next = nullptr, .sg_list = &entry, .num_sge = 1};
    return verbs_.PostRecv(qp_, request);
  }
  int Bind(ibv_mw* mw, uint64_t address, uint64_t length, uint32_t rkey) {
    ibv_send_wr request = {};
    request.opcode = IBV_WR_BIND_MW;
    request.send_flags = IBV_SEND_SIGNALED;
    request.bind_mw = {.mw = mw, .rkey = rkey, .bind_info = {mr_, address, length, IBV_ACCESS_REMOTE_WRITE}};
    return verbs_.PostSend(qp_, request);
  }
  int InvalidateKey(uint32_t rkey) {
    ibv_send_wr request = {};
    request.opcode = IBV_WR_LOCAL_INV;
    request.send_flags = IBV_SEND_SIGNALED;
    request.invalidate_rkey = rkey;
    return verbs_.PostSend(qp_, request);
  }
  // Everything that can be polled: "wr_id:status".
  std::vector<std::pair<uint64_t, ibv_wc_status>> Polls() {
    std::vector<std::pair<uint64_t, ibv_wc_status>> polled;
    ibv_wc completion = {};
    while (verbs_.PollCq(cq_, 1, &completion) == 1) {
      polled.emplace_back(completion.wr_id, completion.status);
    }
    return polled;
  }
  using Results = std::vector<std::pair<uint64_t, ibv_wc_status>>;

  FakeVerbs verbs_;
  ibv_context* context_ = verbs_.Open({.name = "fake0"});
  ibv_pd* pd_ = verbs_.AllocPd(context_);
  ibv_mr* mr_ = verbs_.RegMr(pd_, nullptr, 65536, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  ibv_comp_channel* channel_ = verbs_.CreateChannel(context_);
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
};

TEST_F(FakeVerbsRules, AQueuePairGoesItsStatesInOrder) {
  MakeQp();
  EXPECT_EQ(ToReadyToReceive(), EINVAL);
  ASSERT_EQ(ToInit(), 0);
  EXPECT_EQ(Send(1), EINVAL) << "not before RTS";
  EXPECT_EQ(ToReadyToSend(), EINVAL);
  EXPECT_EQ(ToReadyToReceive(9), ENODATA) << "an empty place of the GID table";
  EXPECT_EQ(ToReadyToReceive(1, 0), EINVAL) << "to nowhere";
  ibv_port_attr port = FakePortAttributes();
  port.state = IBV_PORT_DOWN;
  verbs_.SetPort("fake0", port);
  EXPECT_EQ(ToReadyToReceive(), ENETUNREACH);
  verbs_.SetPort("fake0", FakePortAttributes());
  ASSERT_EQ(ToReadyToReceive(), 0);
  EXPECT_EQ(Send(1), EINVAL);
  ASSERT_EQ(ToReadyToSend(), 0);
  EXPECT_EQ(Send(1), 0);
  EXPECT_EQ(To(IBV_QPS_RESET), 0);
  EXPECT_EQ(ToInit(), 0);
}

TEST_F(FakeVerbsRules, AFailureFlushesWhatIsBehindItInOrder) {
  Connect();
  for (const uint64_t wr_id : {1, 2, 3}) {
    ASSERT_EQ(Send(wr_id, 0), 0);
  }
  ASSERT_EQ(Receive(11), 0);
  ASSERT_EQ(Receive(12), 0);
  EXPECT_TRUE(verbs_.Complete(qp_->qp_num));
  EXPECT_TRUE(verbs_.Complete(qp_->qp_num, IBV_WC_REM_ACCESS_ERR));
  EXPECT_EQ(
      Polls(),
      (Results{
          {2, IBV_WC_REM_ACCESS_ERR}, {3, IBV_WC_WR_FLUSH_ERR}, {11, IBV_WC_WR_FLUSH_ERR}, {12, IBV_WC_WR_FLUSH_ERR}}))
      << "an unsignalled success is silent, a failure never";
  EXPECT_EQ(verbs_.state(qp_->qp_num), IBV_QPS_ERR);
  EXPECT_EQ(Send(4, 0), 0);
  EXPECT_EQ(Receive(13), 0);
  EXPECT_EQ(Polls(), (Results{{4, IBV_WC_WR_FLUSH_ERR}, {13, IBV_WC_WR_FLUSH_ERR}})) << "posted in ERR";
}

TEST_F(FakeVerbsRules, ASlotIsFreeWhenItsCompletionWasPolled) {
  Connect();
  for (const uint64_t wr_id : {1, 2, 3}) {
    ASSERT_EQ(Send(wr_id, 0), 0);
  }
  ASSERT_EQ(Send(4), 0);
  EXPECT_EQ(Send(5), ENOMEM);
  EXPECT_EQ(verbs_.CompleteAll(qp_->qp_num), 4u);
  EXPECT_EQ(Send(5), ENOMEM) << "complete, but not polled";
  EXPECT_EQ(Polls(), (Results{{4, IBV_WC_SUCCESS}}));
  for (const uint64_t wr_id : {5, 6, 7, 8}) {
    EXPECT_EQ(Send(wr_id), 0) << "one completion frees the silent ones before it";
  }
  EXPECT_EQ(Send(9), ENOMEM);
  for (const uint64_t wr_id : {11, 12, 13, 14}) {
    EXPECT_EQ(Receive(wr_id), 0);
  }
  EXPECT_EQ(Receive(15), ENOMEM);
}

TEST_F(FakeVerbsRules, AnEventIsRaisedOnceForEachArming) {
  Connect();
  verbs_.set_automatic(true);
  ASSERT_EQ(Send(1), 0);
  EXPECT_EQ(Polled(channel_->fd), 0) << "not armed";
  ASSERT_EQ(verbs_.ArmCq(cq_), 0);
  EXPECT_EQ(Polled(channel_->fd), 0) << "what was there before the arming raises nothing";
  ASSERT_EQ(Send(2), 0);
  ASSERT_EQ(Send(3), 0);
  EXPECT_EQ(Polled(channel_->fd), POLLIN);
  EXPECT_EQ(verbs_.NextCqEvent(channel_), cq_);
  EXPECT_EQ(Polled(channel_->fd), 0);
  EXPECT_EQ(verbs_.NextCqEvent(channel_), nullptr);
}

TEST_F(FakeVerbsRules, AWindowKeepsItsRegionUntilItIsInvalidated) {
  Connect();
  ibv_mw* const mw = verbs_.AllocMw(pd_);
  const uint32_t key = ibv_inc_rkey(mw->rkey);
  ASSERT_EQ(Bind(mw, 4096, 4096, key), 0);
  EXPECT_EQ(verbs_.DeallocPd(pd_), EBUSY);
  ASSERT_TRUE(verbs_.Complete(qp_->qp_num));
  EXPECT_EQ(verbs_.BoundTo(mw), mr_);
  EXPECT_EQ(verbs_.DeregMr(mr_), EINVAL);
  ASSERT_EQ(InvalidateKey(key), 0);
  ASSERT_TRUE(verbs_.Complete(qp_->qp_num));
  EXPECT_EQ(verbs_.BoundTo(mw), nullptr);
  EXPECT_EQ(Polls(), (Results{{0, IBV_WC_SUCCESS}, {0, IBV_WC_SUCCESS}}));
  EXPECT_EQ(verbs_.DeallocMw(mw), 0);
  EXPECT_TRUE(verbs_.violations().empty());
}

TEST_F(FakeVerbsRules, ABindAgainstTheRulesFailsAndTakesTheQueuePairDown) {
  struct Row {
    const char* what;
    uint64_t address;
    uint64_t length;
    bool stale_key;
  };
  for (const Row& row : {Row{"beyond the region", 4096, 65537, false}, Row{"before the region", 4095, 16, false},
                         Row{"of nothing", 4096, 0, false}, Row{"of a key that is not up to date", 4096, 16, true}}) {
    Connect();
    ibv_mw* const mw = verbs_.AllocMw(pd_);
    mw->rkey += row.stale_key ? 1 : 0;
    ASSERT_EQ(Bind(mw, row.address, row.length, ibv_inc_rkey(mw->rkey)), 0);
    ASSERT_TRUE(verbs_.Complete(qp_->qp_num));
    EXPECT_EQ(Polls(), (Results{{0, IBV_WC_MW_BIND_ERR}})) << row.what;
    EXPECT_EQ(verbs_.state(qp_->qp_num), IBV_QPS_ERR) << row.what;
    EXPECT_EQ(verbs_.DeallocMw(mw), 0);
    EXPECT_EQ(verbs_.DestroyQp(std::exchange(qp_, nullptr)), 0);
  }
}

TEST_F(FakeVerbsRules, AWindowIsBoundAgainOnlyAfterItsInvalidation) {
  Connect();
  ibv_mw* const mw = verbs_.AllocMw(pd_);
  for (int round = 0; round < 3; ++round) {
    // Cards leave the key that a bind gave to the user to remember.
    const uint32_t key = ibv_inc_rkey(mw->rkey);
    ASSERT_EQ(Bind(mw, 4096, 16, key), 0);
    ASSERT_TRUE(verbs_.Complete(qp_->qp_num));
    mw->rkey = key;
    if (round < 1) {
      ASSERT_EQ(InvalidateKey(key), 0);
      ASSERT_TRUE(verbs_.Complete(qp_->qp_num));
    } else if (round == 1) {
      EXPECT_EQ(Polls(), Results(3, {0, IBV_WC_SUCCESS}));
    }
  }
  EXPECT_EQ(Polls(), (Results{{0, IBV_WC_MW_BIND_ERR}}));
  EXPECT_EQ(verbs_.DeallocMw(mw), 0);
}

TEST_F(FakeVerbsRules, CompletionsFromBeforeAResetFreeNothing) {
  Connect();
  ASSERT_EQ(Send(1), 0);
  ASSERT_EQ(Send(2), 0);
  EXPECT_EQ(verbs_.CompleteAll(qp_->qp_num), 2u);
  ASSERT_EQ(To(IBV_QPS_RESET), 0);
  ASSERT_EQ(ToInit(), 0);
  ASSERT_EQ(ToReadyToReceive(), 0);
  ASSERT_EQ(ToReadyToSend(), 0);
  ASSERT_EQ(Send(3), 0);
  EXPECT_EQ(Polls(), (Results{{1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}}));
  for (const uint64_t wr_id : {4, 5, 6}) {
    EXPECT_EQ(Send(wr_id), 0);
  }
  EXPECT_EQ(Send(7), ENOMEM);
}

TEST_F(FakeVerbsRules, APeerMayInvalidateAWindowAndNothingElse) {
  Connect();
  ibv_mw* const mw = verbs_.AllocMw(pd_);
  const uint32_t key = ibv_inc_rkey(mw->rkey);
  ASSERT_EQ(Bind(mw, 4096, 16, key), 0);
  ASSERT_TRUE(verbs_.Complete(qp_->qp_num));
  ASSERT_EQ(Receive(1), 0);
  ASSERT_EQ(Receive(2), 0);
  ASSERT_EQ(Receive(3), 0);
  EXPECT_TRUE(verbs_.Arrive(qp_->qp_num, {.wc_flags = IBV_WC_WITH_INV, .invalidate = key}));
  EXPECT_EQ(verbs_.BoundTo(mw), nullptr);
  EXPECT_TRUE(verbs_.Arrive(qp_->qp_num, {.wc_flags = IBV_WC_WITH_INV, .invalidate = mr_->lkey}));
  EXPECT_EQ(Polls(),
            (Results{{0, IBV_WC_SUCCESS}, {1, IBV_WC_SUCCESS}, {2, IBV_WC_REM_INV_REQ_ERR}, {3, IBV_WC_WR_FLUSH_ERR}}));
  EXPECT_EQ(verbs_.DeallocMw(mw), 0);
}

TEST_F(FakeVerbsRules, WhatHangsAMachineIsAViolation) {
  Connect();
  ibv_mw* const mw = verbs_.AllocMw(pd_);
  ASSERT_EQ(Bind(mw, 4096, 16, ibv_inc_rkey(mw->rkey)), 0);
  ASSERT_TRUE(verbs_.Complete(qp_->qp_num));
  verbs_.DestroyQp(std::exchange(qp_, nullptr));
  EXPECT_EQ(verbs_.violations().size(), 1u);
  verbs_.DeallocMw(mw);
}

TEST_F(FakeVerbsRules, AKeyMustCoverWhatARequestNames) {
  ibv_mr* const read_only = verbs_.RegMr(pd_, nullptr, 4096, 4096, IBV_ACCESS_REMOTE_READ);
  struct Row {
    ibv_sge entry;
    ibv_wr_opcode opcode;
    ibv_wc_status status;
  };
  const Row rows[] = {{{4096, 65536, mr_->lkey}, IBV_WR_SEND, IBV_WC_SUCCESS},
                      {{4096, 65537, mr_->lkey}, IBV_WR_SEND, IBV_WC_LOC_QP_OP_ERR},
                      {{4095, 1, mr_->lkey}, IBV_WR_SEND, IBV_WC_LOC_QP_OP_ERR},
                      {{4096, 1, mr_->lkey + 1}, IBV_WR_SEND, IBV_WC_LOC_QP_OP_ERR},
                      {{0, 0, 0}, IBV_WR_SEND, IBV_WC_SUCCESS},
                      {{4096, 8, read_only->lkey}, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS},
                      {{4096, 8, read_only->lkey}, IBV_WR_RDMA_READ, IBV_WC_LOC_QP_OP_ERR}};
  for (Row row : rows) {
    Connect();
    ibv_send_wr request = {};
    request.opcode = row.opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    request.sg_list = &row.entry;
    request.num_sge = 1;
    ASSERT_EQ(verbs_.PostSend(qp_, request), 0);
    ASSERT_TRUE(verbs_.Complete(qp_->qp_num));
    EXPECT_EQ(Polls(), (Results{{0, row.status}})) << row.entry.addr << " " << row.entry.length;
    EXPECT_EQ(verbs_.DestroyQp(std::exchange(qp_, nullptr)), 0);
  }
  EXPECT_EQ(verbs_.DeregMr(read_only), 0);
}

TEST_F(FakeVerbsRules, InlineBytesAreTakenWhilePosting) {
  Connect();
  char text[] = "hello";
  ibv_sge entry{.addr = reinterpret_cast<uintptr_t>(text), .length = 5, .lkey = 0};
  ibv_send_wr request = {};
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
  request.sg_list = &entry;
  request.num_sge = 1;
  ASSERT_EQ(verbs_.PostSend(qp_, request), 0);
  text[0] = 'j';
  const auto posted = verbs_.PostedSends(qp_->qp_num);
  ASSERT_EQ(posted.size(), 1u);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(posted[0].inline_bytes.data()), 5), "hello");
  EXPECT_TRUE(verbs_.Complete(qp_->qp_num));
  EXPECT_EQ(Polls(), (Results{{0, IBV_WC_SUCCESS}}));
}

TEST_F(FakeVerbsRules, RegistrationsAreRefusedAsTheKernelDoes) {
  const auto error_of = [&](uintptr_t address, size_t length, uint64_t iova, int access) {
    errno = 0;
    EXPECT_EQ(verbs_.RegMr(pd_, reinterpret_cast<void*>(address), length, iova, access), nullptr);
    return errno;
  };
  EXPECT_EQ(error_of(4096, 0, 4096, 0), EINVAL);
  EXPECT_EQ(error_of(4096, 8, 4097, 0), EINVAL) << "not the same place within a page";
  EXPECT_EQ(error_of(4096, 8, 4096, IBV_ACCESS_REMOTE_WRITE), EINVAL) << "without local write";
  verbs_.FailNext("RegMr", EFAULT, 1, 1);
  ibv_mr* const mr = verbs_.RegMr(pd_, nullptr, 8, 0, IBV_ACCESS_REMOTE_READ);
  ASSERT_NE(mr, nullptr) << "one call is let through";
  EXPECT_EQ(mr->rkey, mr->lkey);
  EXPECT_EQ(mr_->rkey, 0u) << "no remote right, no remote key";
  EXPECT_EQ(error_of(4096, 8, 4096, 0), EFAULT);
  EXPECT_EQ(verbs_.DeregMr(mr), 0);
  EXPECT_EQ(verbs_.calls("RegMr"), 6u);
}

TEST_F(FakeVerbsRules, ParentsWaitForTheirChildren) {
  MakeQp();
  EXPECT_EQ(verbs_.DestroyCq(cq_), EBUSY);
  EXPECT_EQ(verbs_.DestroyChannel(channel_), EBUSY);
  EXPECT_EQ(verbs_.DeallocPd(pd_), EBUSY);
  EXPECT_TRUE(verbs_.violations().empty());
  ibv_context* const other = verbs_.Open({.name = "fake0"});
  verbs_.AllocPd(other);
  EXPECT_EQ(verbs_.Close(other), 0);
  EXPECT_EQ(verbs_.violations().size(), 1u);
  EXPECT_EQ(verbs_.Close(other), EINVAL);
  EXPECT_EQ(verbs_.violations().size(), 2u);
}

TEST_F(FakeVerbsRules, ACompletionQueueThatOverrunsIsAViolationAndAnEvent) {
  ibv_cq* const small = verbs_.CreateCq(context_, 1, nullptr);
  ibv_cq* const roomy = std::exchange(cq_, small);
  Connect();
  EXPECT_EQ(Polled(context_->async_fd), 0);
  verbs_.set_automatic(true);
  ASSERT_EQ(Send(1), 0);
  ASSERT_EQ(Send(2), 0);
  EXPECT_EQ(verbs_.violations().size(), 1u);
  EXPECT_EQ(Polled(context_->async_fd), POLLIN);
  ibv_async_event event = {};
  ASSERT_EQ(verbs_.NextAsyncEvent(context_, event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, small);
  EXPECT_EQ(verbs_.NextAsyncEvent(context_, event), EAGAIN);
  verbs_.DestroyQp(std::exchange(qp_, nullptr));
  verbs_.DestroyCq(std::exchange(cq_, roomy));
}

TEST_F(FakeVerbsRules, ARemovedCardSaysSoOnceAndThenHangsUp) {
  Connect();
  ASSERT_EQ(Send(1), 0);
  ASSERT_TRUE(verbs_.Complete(qp_->qp_num));
  verbs_.RemoveDevice("fake0", EIO);
  EXPECT_TRUE(verbs_.cards().List().empty());
  EXPECT_EQ(verbs_.Open({.name = "fake0"}), nullptr);
  EXPECT_EQ(errno, ENODEV);
  ibv_async_event event = {};
  ASSERT_EQ(verbs_.NextAsyncEvent(context_, event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_DEVICE_FATAL);
  EXPECT_EQ(verbs_.NextAsyncEvent(context_, event), EIO);
  EXPECT_EQ(Polled(context_->async_fd), POLLHUP);
  EXPECT_EQ(Polled(channel_->fd), POLLHUP);
  ibv_port_attr port = {};
  EXPECT_EQ(verbs_.QueryPort(context_, 1, port), ENODEV);
  EXPECT_EQ(Send(2), EIO);
  EXPECT_EQ(verbs_.AllocPd(context_), nullptr);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(Polls(), (Results{{1, IBV_WC_SUCCESS}}));
  EXPECT_EQ(verbs_.DestroyQp(std::exchange(qp_, nullptr)), EIO);
  EXPECT_EQ(verbs_.live().qps, 0u) << "it is gone all the same";
}

TEST_F(FakeVerbsRules, ThreadsDoNotHurtEachOther) {
  std::vector<std::thread> threads;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        ibv_pd* const pd = verbs_.AllocPd(context_);
        ibv_mr* const mr = verbs_.RegMr(pd, nullptr, 4096, 0, IBV_ACCESS_REMOTE_READ);
        EXPECT_EQ(verbs_.DeregMr(mr), 0);
        EXPECT_EQ(verbs_.DeallocPd(pd), 0);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(verbs_.calls("RegMr"), 801u);
  EXPECT_TRUE(verbs_.violations().empty());
}

}  // namespace
}  // namespace rnicd::provider
