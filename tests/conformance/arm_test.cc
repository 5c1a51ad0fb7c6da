// Group I of the edge cases, first half: notifications of completion queues, and overruns.
#include <optional>
#include <string>
#include <vector>

#include "tests/conformance/ndk_conformance.h"
#include "tests/conformance/queue_steps.h"

namespace rnicd::test {
namespace {

constexpr v1::CqNotifyType kErrors = v1::CQ_NOTIFY_TYPE_ERRORS;
constexpr v1::CqNotifyType kAny = v1::CQ_NOTIFY_TYPE_ANY;
constexpr v1::CqNotifyType kSolicited = v1::CQ_NOTIFY_TYPE_SOLICITED;

constexpr uint32_t kSolicit = v1::OP_FLAG_SEND_AND_SOLICIT_EVENT;
constexpr uint32_t kDepth = 4;

// The next notification; other events are skipped. A test failure and an empty result on timeout.
v1::CqNotification NextNotification(EventReader& events) {
  while (const std::optional<v1::WatchEventsResponse> event = events.Next()) {
    if (event->has_cq_notification()) {
      return event->cq_notification();
    }
  }
  ADD_FAILURE() << "no notification came";
  return v1::CqNotification();
}

// Closes the session and returns the number of notifications until its end.
int NotificationsUntilEnd(TestSession& session, EventReader& events) {
  ExpectOk(session.CloseSession());
  int count = 0;
  for (const v1::WatchEventsResponse& event : events.RestUntilEnd()) {
    count += event.has_cq_notification() ? 1 : 0;
  }
  return count;
}

// A receiver: the near queue pair of a connection, with receives posted, and the events of its session. The receive
// completion queue is the one that is armed.
class Listener {
 public:
  explicit Listener(DaemonProcess& daemon)
      : pair_(daemon, {.cq_depth = kDepth}), marker_(pair_.near_session), events_(pair_.near_session) {
    ExpectOk(Connect(marker_, marker_.Query().address()));
    near().MustPost(std::vector<v1::WorkRequest>(32, ReceiveRequest({})));
  }

  TestQueue& near() { return pair_.near; }
  TestQueue& far() { return pair_.far; }
  TestSession& session() { return pair_.near_session; }
  EventReader& events() { return events_; }
  uint64_t cq_id() const { return pair_.near.receive_cq_id(); }

  void Arm(v1::CqNotifyType type) { ExpectOk(test::Arm(session(), cq_id(), type)); }
  // Completes one receive and fetches the completion.
  void Receive(uint32_t send_flags = 0) {
    far().MustRun(SendRequest({}, send_flags));
    ExpectCompletion(near().NextReceive(), NtStatus::kSuccess);
  }
  // Completes one receive and leaves the completion in the queue.
  void ReceiveUnfetched(uint32_t send_flags = 0) { far().MustRun(SendRequest({}, send_flags)); }
  // Completes one more receive than fits. The sends are silent, so that the sender's queue does not overrun as well.
  void Overrun() { far().MustPost(std::vector<v1::WorkRequest>(kDepth + 1, SendRequest({}, kSilent))); }

  void ExpectNotified(NtStatus status = NtStatus::kSuccess, Where where = Where::current()) {
    const testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "notification");
    const v1::CqNotification notification = NextNotification(events_);
    EXPECT_EQ(notification.cq_id(), cq_id());
    EXPECT_EQ(notification.ntstatus(), static_cast<uint32_t>(status));
  }
  // Asserts that there was no notification so far: another queue of the session notifies, and its event must be the
  // next one, because events come in order.
  void ExpectQuiet(Where where = Where::current()) {
    const testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "quiet");
    ExpectOk(test::Arm(session(), marker_.initiator_cq_id(), kAny));
    marker_.MustRun(Tick());
    EXPECT_EQ(NextNotification(events_).cq_id(), marker_.initiator_cq_id()) << "the queue has notified";
  }

 private:
  ConnectedPair pair_;
  TestQueue marker_;
  EventReader events_;
};

// Row 133. NDK: a queue that is not armed never calls back.
TEST_P(NdkConformance, Case133_UnarmedQueueIsSilent) {
  Listener listener(daemon());
  listener.Receive();
  listener.Receive(kSolicit);
  listener.ExpectQuiet();
}

// Row 133. NDK: one arm, one callback, however many completions follow.
TEST_P(NdkConformance, Case133_OneArmGivesOneNotification) {
  Listener listener(daemon());
  listener.Arm(kAny);
  listener.ExpectQuiet();
  for (int count = 0; count < 5; ++count) {
    listener.Receive();
  }
  listener.ExpectNotified();
  listener.Receive(kSolicit);
  listener.ExpectQuiet();
  listener.Arm(kAny);
  listener.Receive();
  listener.ExpectNotified();
  EXPECT_EQ(NotificationsUntilEnd(listener.session(), listener.events()), 0);
}

// Row 133: the notification brings the context that the consumer gave with the queue.
TEST_P(NdkConformance, Case133_NotificationCarriesTheQueuesContext) {
  constexpr uint64_t kContext = 0xfedc'ba98'7654'3210;
  TestSession session(daemon());
  EventReader events(session);
  v1::CreateQpRequest create;
  create.set_pd_id(session.pd_id());
  create.set_receive_cq_id(CreateCq(session, kDepth, kContext));
  create.set_initiator_cq_id(create.receive_cq_id());
  create.set_receive_queue_depth(1);
  const auto created = session.Call(&QueueStub::CreateQp, create);
  ExpectOk(created);
  v1::PostRequest post;
  post.set_qp_id(created.response.qp_id());
  *post.add_requests() = ReceiveRequest({});
  ExpectOk(session.Call(&QueueStub::Post, post));
  ExpectOk(Arm(session, create.receive_cq_id(), kAny));
  v1::FlushRequest flush;
  flush.set_qp_id(created.response.qp_id());
  ExpectOk(session.Call(&QueueStub::Flush, flush));
  const v1::CqNotification notification = NextNotification(events);
  EXPECT_EQ(notification.cq_id(), create.receive_cq_id());
  EXPECT_EQ(notification.cq_context(), kContext);
  EXPECT_EQ(notification.ntstatus(), kStatusSuccess);
}

// Row 134. NDK: when an entry is queued that is newer than the last callback, arming calls back at once.
TEST_P(NdkConformance, Case134_ArmOverANewEntryNotifiesAtOnce) {
  Listener listener(daemon());
  listener.ReceiveUnfetched();
  listener.ExpectQuiet();
  listener.Arm(kAny);
  listener.ExpectNotified();
  listener.ReceiveUnfetched();
  listener.ExpectQuiet();
  listener.Arm(kAny);
  listener.ExpectNotified();
}

// Row 134. NDK leaves it open whether arming over old entries calls back. Either way the next completion does not go
// unnoticed, and there is one notification for one arm.
TEST_P(NdkConformance, Case134_ArmOverOldEntriesGivesOneNotification) {
  Listener listener(daemon());
  listener.ReceiveUnfetched();
  listener.Arm(kAny);
  listener.ExpectNotified();
  listener.Arm(kAny);
  listener.ReceiveUnfetched();
  listener.ExpectNotified();
  EXPECT_EQ(NotificationsUntilEnd(listener.session(), listener.events()), 0);
}

struct Combination {
  v1::CqNotifyType first;
  v1::CqNotifyType second;
  v1::CqNotifyType together;
};
constexpr Combination kCombinations[] = {
    {kAny, kAny, kAny},
    {kAny, kErrors, kAny},
    {kAny, kSolicited, kAny},
    {kErrors, kAny, kAny},
    {kErrors, kErrors, kErrors},
    {kErrors, kSolicited, kSolicited},
    {kSolicited, kAny, kAny},
    {kSolicited, kErrors, kSolicited},
    {kSolicited, kSolicited, kSolicited},
};

std::string NameOf(v1::CqNotifyType type) {
  if (type == kErrors) {
    return "ERRORS";
  }
  return type == kAny ? "ANY" : "SOLICITED";
}

// Row 135. NDK: arming twice before the queue fires combines the two types by a table. What fires shows the result: a
// plain receive for ANY, a solicited one for SOLICITED, only the failure of the queue itself for ERRORS. And two arms
// give one notification.
TEST_P(NdkConformance, Case135_TwoArmsCombine) {
  for (const Combination& combination : kCombinations) {
    SCOPED_TRACE(NameOf(combination.first) + ", then " + NameOf(combination.second));
    Listener listener(daemon());
    listener.Arm(combination.first);
    listener.Arm(combination.second);
    listener.ExpectQuiet();
    listener.Receive();
    if (combination.together == kAny) {
      listener.ExpectNotified();
    } else {
      listener.ExpectQuiet();
    }
    listener.Receive(kSolicit);
    if (combination.together == kSolicited) {
      listener.ExpectNotified();
    } else {
      listener.ExpectQuiet();
    }
    if (combination.together == kErrors) {
      listener.Overrun();
      listener.ExpectNotified(NtStatus::kBufferOverflow);
    }
    listener.ExpectQuiet();
  }
}

// Row 136. NDK never lets two callbacks of one queue overlap: a completion that arrives during one, with the queue
// armed again, calls back when it has returned. Here a notification runs until it is fetched from the stream; three
// arms and three completions meanwhile are that one notification, and one more when it is fetched.
TEST_P(NdkConformance, Case136_SecondNotificationWaitsForTheFirst) {
  ConnectedPair pair(daemon());
  TestQueue marker(pair.near_session);
  ExpectOk(Connect(marker, marker.Query().address()));
  const uint64_t cq = pair.near.initiator_cq_id();
  for (uint64_t context = 1; context <= 3; ++context) {
    ExpectOk(Arm(pair.near_session, cq, kAny));
    QueueUp(pair.near_session, cq, context, context);
  }
  EventReader events(pair.near_session);
  ASSERT_EQ(NextNotification(events).cq_id(), cq);
  // Events come in order: the marker's is behind the one that became due when the first was fetched.
  ExpectOk(Arm(pair.near_session, marker.initiator_cq_id(), kAny));
  marker.MustRun(Tick());
  const v1::CqNotification second = NextNotification(events);
  ASSERT_EQ(second.cq_id(), cq);
  EXPECT_EQ(second.ntstatus(), kStatusSuccess);
  EXPECT_EQ(NextNotification(events).cq_id(), marker.initiator_cq_id());
  EXPECT_EQ(NotificationsUntilEnd(pair.near_session, events), 0);
}

// Row 136: without a second arm there is nothing to come after the first.
TEST_P(NdkConformance, Case136_WaitingNotificationIsNotRepeated) {
  ConnectedPair pair(daemon());
  ExpectOk(Arm(pair.near_session, pair.near.initiator_cq_id(), kAny));
  pair.near.MustPost({Tick(1), Tick(2)});
  EventReader events(pair.near_session);
  EXPECT_EQ(NextNotification(events).cq_id(), pair.near.initiator_cq_id());
  pair.near.MustPost({Tick(3)});
  EXPECT_EQ(NotificationsUntilEnd(pair.near_session, events), 0);
}

// Row 137. NDK: a queue that is armed SOLICITED does not call back for a plain receive, but for a solicited one; it may
// be there before the arm as well as come after it.
TEST_P(NdkConformance, Case137_SolicitedArmWaitsForASolicitedReceive) {
  Listener listener(daemon());
  listener.ReceiveUnfetched();
  listener.Arm(kSolicited);
  listener.ReceiveUnfetched();
  listener.ExpectQuiet();
  listener.ReceiveUnfetched(kSolicit);
  listener.ExpectNotified();
  EXPECT_EQ(listener.near().DrainReceive().size(), 3u);
  listener.ReceiveUnfetched(kSolicit);
  listener.ExpectQuiet();
  listener.Arm(kSolicited);
  listener.ExpectNotified();
}

// Row 137: SendAndInvalidate takes the flag too.
TEST_P(NdkConformance, Case137_SolicitedInvalidateSatisfiesTheArm) {
  Listener listener(daemon());
  TestMemory pages(listener.session(), kPage);
  const uint64_t mr = FastRegion(listener.session(), 1);
  listener.near().MustRun(FastRegisterRequest(mr, pages.Pages(0, 1), kPage, kBase, v1::OP_FLAG_ALLOW_REMOTE_READ));
  const uint32_t token = listener.session().RemoteToken(mr).response.remote_token();
  listener.Arm(kSolicited);
  listener.Receive();
  listener.ExpectQuiet();
  listener.far().MustRun(SendAndInvalidateRequest({}, token, kSolicit));
  listener.ExpectNotified();
}

// Row 137. NDK: a completion with an error always satisfies SOLICITED.
TEST_P(NdkConformance, Case137_FailedCompletionSatisfiesASolicitedArm) {
  ConnectedPair pair(daemon());
  EventReader events(pair.near_session);
  pair.near.MustPost({ReceiveRequest({})});
  ExpectOk(Arm(pair.near_session, pair.near.receive_cq_id(), kSolicited));
  ExpectOk(Flush(pair.near));
  const v1::CqNotification notification = NextNotification(events);
  EXPECT_EQ(notification.cq_id(), pair.near.receive_cq_id());
  EXPECT_EQ(notification.ntstatus(), kStatusSuccess);
}

// Row 138. One page of NDK has ANY fire for successful completions only, others for errors too; here it fires for both.
TEST_P(NdkConformance, Case138_FailedCompletionSatisfiesAnAnyArm) {
  ConnectedPair pair(daemon());
  EventReader events(pair.near_session);
  pair.near.MustPost({ReceiveRequest({})});
  ExpectOk(Arm(pair.near_session, pair.near.receive_cq_id(), kAny));
  ExpectOk(Flush(pair.near));
  EXPECT_EQ(NextNotification(events).cq_id(), pair.near.receive_cq_id());
}

// Row 138. NDK speaks of errors of the queue where it explains ERRORS: a request that failed is none.
TEST_P(NdkConformance, Case138_FailedCompletionIsNoErrorOfTheQueue) {
  ConnectedPair pair(daemon());
  EventReader events(pair.near_session);
  pair.near.MustPost({ReceiveRequest({})});
  ExpectOk(Arm(pair.near_session, pair.near.receive_cq_id(), kErrors));
  ExpectOk(Flush(pair.near));
  ExpectCompletion(pair.near.NextReceive(), NtStatus::kCancelled);
  EXPECT_EQ(NotificationsUntilEnd(pair.near_session, events), 0);
}

// Row 139. NDK: when more completions come than there is room for, the callback says BUFFER_OVERFLOW, and the queue and
// all its queue pairs are dead: nothing more is reported, not on their other queues either.
TEST_P(NdkConformance, Case139_OverrunOfAnArmedQueueIsReported) {
  for (const v1::CqNotifyType type : {kErrors, kSolicited}) {
    SCOPED_TRACE(NameOf(type));
    Listener listener(daemon());
    v1::CreateQpRequest create;
    create.set_pd_id(listener.session().pd_id());
    create.set_receive_cq_id(listener.cq_id());
    create.set_initiator_cq_id(CreateCq(listener.session(), kDepth));
    const auto bystander = listener.session().Call(&QueueStub::CreateQp, create);
    ExpectOk(bystander);
    // Waits for a receive that is never posted.
    listener.near().MustPost({SendRequest({}, 0, 7)});
    listener.Arm(type);
    listener.Overrun();
    listener.ExpectNotified(NtStatus::kBufferOverflow);
    listener.ExpectQuiet();
    ExpectInError(listener.near());
    EXPECT_TRUE(listener.near().DrainInitiator().empty());
    v1::QueryQpRequest query;
    query.set_qp_id(bystander.response.qp_id());
    EXPECT_TRUE(Eventually(
        [&] { return listener.session().Call(&QueueStub::QueryQp, query).response.state() == v1::QP_STATE_ERROR; }));
    ExpectRefused(Results(listener.session(), listener.cq_id(), 1), ErrorReason::CQ_OVERRUN, "cq_id");
    ExpectRefused(ResultsEx(listener.session(), listener.cq_id(), 1), ErrorReason::CQ_OVERRUN, "cq_id");
    ExpectRefused(Resize(listener.session(), listener.cq_id(), 2 * kDepth), ErrorReason::CQ_OVERRUN, "cq_id");
    ExpectRefused(listener.session().Call(&QueueStub::CreateQp, create), ErrorReason::CQ_OVERRUN, "receive_cq_id");
  }
}

// Row 139. NDK is silent on a queue that was not armed. Recommended: the overrun is kept, and reported at the next arm,
// whatever it is for.
TEST_P(NdkConformance, Case139_OverrunOfAnUnarmedQueueIsReportedAtTheNextArm) {
  for (const v1::CqNotifyType type : {kAny, kErrors, kSolicited}) {
    SCOPED_TRACE(NameOf(type));
    Listener listener(daemon());
    listener.Overrun();
    listener.ExpectQuiet();
    ExpectInError(listener.near());
    ExpectRefused(ResultsEx(listener.session(), listener.cq_id(), 1), ErrorReason::CQ_OVERRUN, "cq_id");
    listener.Arm(type);
    listener.ExpectNotified(NtStatus::kBufferOverflow);
    listener.ExpectQuiet();
  }
}

// Row 139, while an earlier notification waits to be fetched: the overrun is not lost in it. Whether the earlier one
// still says that all was well is left open.
TEST_P(NdkConformance, Case139_OverrunBehindANotificationThatWaitsIsReported) {
  ConnectedPair pair(daemon(), {.cq_depth = kDepth});
  const uint64_t cq = pair.near.initiator_cq_id();
  ExpectOk(Arm(pair.near_session, cq, kAny));
  QueueUp(pair.near_session, cq, 1, 1);
  ExpectOk(Arm(pair.near_session, cq, kErrors));
  pair.near.MustPost(std::vector<v1::WorkRequest>(kDepth, Tick()));
  EventReader events(pair.near_session);
  v1::CqNotification notification = NextNotification(events);
  if (notification.ntstatus() == kStatusSuccess) {
    notification = NextNotification(events);
  }
  EXPECT_EQ(notification.cq_id(), cq);
  EXPECT_EQ(notification.ntstatus(), static_cast<uint32_t>(NtStatus::kBufferOverflow));
  EXPECT_EQ(NotificationsUntilEnd(pair.near_session, events), 0);
}

// Row 139: as many completions as there is room for are no overrun.
TEST_P(NdkConformance, Case139_FullQueueIsNoOverrun) {
  ConnectedPair pair(daemon(), {.cq_depth = kDepth});
  for (int round = 0; round < 2; ++round) {
    pair.near.MustPost(std::vector<v1::WorkRequest>(kDepth, Tick()));
    for (uint32_t count = 0; count < kDepth; ++count) {
      ExpectCompletion(pair.near.NextInitiator(), NtStatus::kSuccess);
    }
  }
}

}  // namespace
}  // namespace rnicd::test
