#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "tests/support/calls/expect.h"
#include "tests/support/test_memory.h"
#include "tests/support/test_session.h"
#include "tests/support/work_requests.h"

// Macros of Windows's own header, which gRPC includes there.
#undef near
#undef far

namespace rnicd::test {

struct QueueOptions {
  uint32_t cq_depth = 256;
  uint32_t receive_queue_depth = 64;
  uint32_t initiator_queue_depth = 64;
  uint32_t max_receive_request_sge = 4;
  uint32_t max_initiator_request_sge = 4;
  uint32_t inline_data_size = 64;
  uint64_t qp_context = 0x51;
};

// A queue pair with one completion queue for receives and one for initiator requests.
// Lifetime: the session outlives this and releases the objects.
class TestQueue {
 public:
  explicit TestQueue(TestSession& session, const QueueOptions& options = {});

  TestSession& session() { return session_; }
  uint64_t qp_id() const { return qp_id_; }
  uint64_t initiator_cq_id() const { return initiator_cq_id_; }
  uint64_t receive_cq_id() const { return receive_cq_id_; }
  v1::QueryQpResponse Query();

  CallResult<v1::PostResponse> Post(const std::vector<v1::WorkRequest>& requests);
  // Posts the requests; a test failure unless all are accepted.
  v1::PostResponse MustPost(const std::vector<v1::WorkRequest>& requests);
  // Posts one request, which must be refused inline with this reason and produce no completion; `field` is given
  // without its "requests[0]." prefix.
  void ExpectPostRefused(const v1::WorkRequest& request, ErrorReason reason, const std::string& field,
                         Where where = Where::current());

  // The next completion of the initiator or receive queue; a test failure and an empty result on timeout.
  v1::CqResultEx NextInitiator(Where where = Where::current());
  v1::CqResultEx NextReceive(Where where = Where::current());
  // The completions available now; for asserting that there are none. Soft devices complete before Post returns
  // whenever they can.
  std::vector<v1::CqResultEx> DrainInitiator();
  std::vector<v1::CqResultEx> DrainReceive();
  // Posts the request and returns its completion.
  v1::CqResultEx Run(const v1::WorkRequest& request, Where where = Where::current());
  // Posts the request; its completion must be STATUS_SUCCESS.
  void MustRun(const v1::WorkRequest& request, Where where = Where::current());

 private:
  v1::CqResultEx Next(uint64_t cq_id, Where where);
  std::vector<v1::CqResultEx> Drain(uint64_t cq_id);
  // Polls the completion queue until it is empty. A dead or closed queue yields nothing.
  void Fetch(uint64_t cq_id);

  TestSession& session_;
  uint64_t initiator_cq_id_ = 0;
  uint64_t receive_cq_id_ = 0;
  uint64_t qp_id_ = 0;
  // Completions polled and not yet returned, by completion queue id.
  std::map<uint64_t, std::deque<v1::CqResultEx>> fetched_;
};

// Connects the two queue pairs with each other.
void ConnectPair(TestQueue& one, TestQueue& other);
// Returns when the queue pair's requests reach its peer: a card may still be connecting when Connect has returned, and
// a fast registration that is posted before then need not be a window of the card.
void WaitUntilConnected(TestQueue& queue, Where where = Where::current());
CallResult<v1::ConnectQpResponse> Connect(TestQueue& queue, const std::string& peer_address);

// Two sessions of the same daemon, each with a queue pair, connected. "near" accesses the memory of "far".
struct ConnectedPair {
  explicit ConnectedPair(DaemonProcess& daemon, const QueueOptions& options = {});
  TestSession near_session;
  TestSession far_session;
  TestQueue near;
  TestQueue far;
};

// Creates and initializes a fast-register region.
uint64_t FastRegion(TestSession& session, uint32_t pages, bool remote_access = true);
CallResult<v1::InitializeFastRegisterMrResponse> InitializeFast(TestSession& session, uint64_t mr_id, uint32_t pages,
                                                                bool remote_access, bool allow_pending = false,
                                                                uint64_t context = 0);
uint32_t PrivilegedToken(TestSession& session);
uint64_t CreateMw(TestSession& session);
CallResult<v1::GetRemoteTokenFromMwResponse> WindowToken(TestSession& session, uint64_t mw_id);

// Completion queues without a TestQueue.
uint64_t CreateCq(TestSession& session, uint32_t depth, uint64_t context = 0);
CallResult<v1::ArmCqResponse> Arm(TestSession& session, uint64_t cq_id, v1::CqNotifyType type);
CallResult<v1::CloseCqResponse> CloseCq(TestSession& session, uint64_t cq_id, bool allow_pending = false,
                                        uint64_t context = 0);
CallResult<v1::CloseQpResponse> CloseQp(TestSession& session, uint64_t qp_id, bool allow_pending = false,
                                        uint64_t context = 0);
CallResult<v1::CloseMwResponse> CloseMw(TestSession& session, uint64_t mw_id, bool allow_pending = false,
                                        uint64_t context = 0);

}  // namespace rnicd::test
