#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/op_flags.h"
#include "base/status.h"
#include "client/cpp/fake_state_test.h"
#include "grpcpp/grpcpp.h"
#include "rnicd/v1/queue_service.grpc.pb.h"

namespace rnicd::inline client {

// A flag that no operation takes.
inline constexpr uint32_t kFakeBadFlag = 0x8000;
inline constexpr uint32_t kFakePrivilegedToken = 0x515;

// Takes what is posted and lets it succeed at once, without moving a byte. Completions come on the initiator queue.
class FakeQueueService final : public v1::QueueService::CallbackService {
 public:
  explicit FakeQueueService(FakeState& state) : state_(state) {}

  // The last chain that came.
  v1::PostRequest LastPost() {
    MutexLock lock(state_.mutex);
    return last_post_;
  }
  // The types it was armed for, in order.
  std::vector<v1::CqNotifyType> Arms() {
    MutexLock lock(state_.mutex);
    return arms_;
  }
  void Complete(uint64_t completion_queue, const v1::CqResultEx& result) {
    MutexLock lock(state_.mutex);
    results_[completion_queue].push_back(result);
  }
  // Every poll fails from now on, as when the queue overran.
  void Overrun() { overrun_ = true; }

  grpc::ServerUnaryReactor* CreateCq(grpc::CallbackServerContext* context, const v1::CreateCqRequest* request,
                                     v1::CreateCqResponse* response) override {
    if (request->cq_depth() == 0) {
      return Answer(context, Refusal(ErrorReason::FIELD_OUT_OF_RANGE, "cq_depth"));
    }
    MutexLock lock(state_.mutex);
    response->set_cq_id(state_.NewIdIn(state_.completion_queues));
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* ResizeCq(grpc::CallbackServerContext* context, const v1::ResizeCqRequest* request,
                                     v1::ResizeCqResponse*) override {
    return Answer(context, request->cq_depth() == 1 ? Refusal(ErrorReason::CQ_BACKLOG, "cq_depth") : grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* ArmCq(grpc::CallbackServerContext* context, const v1::ArmCqRequest* request,
                                  v1::ArmCqResponse*) override {
    MutexLock lock(state_.mutex);
    arms_.push_back(request->type());
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* GetCqResultsEx(grpc::CallbackServerContext* context,
                                           const v1::GetCqResultsExRequest* request,
                                           v1::GetCqResultsExResponse* response) override {
    if (overrun_) {
      return Answer(context, Refusal(ErrorReason::CQ_OVERRUN));
    }
    MutexLock lock(state_.mutex);
    std::deque<v1::CqResultEx>& queue = results_[request->cq_id()];
    for (uint32_t count = 0; count < request->max_results() && !queue.empty(); ++count) {
      *response->add_results() = queue.front();
      queue.pop_front();
    }
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* CloseCq(grpc::CallbackServerContext* context, const v1::CloseCqRequest* request,
                                    v1::CloseCqResponse* response) override {
    MutexLock lock(state_.mutex);
    if (request->allow_pending() && !state_.queue_pairs.empty()) {
      response->set_ntstatus(static_cast<uint32_t>(NtStatus::kPending));
    }
    return Answer(context, FakeState::EraseFrom(state_.completion_queues, request->cq_id()));
  }

  grpc::ServerUnaryReactor* CreateQp(grpc::CallbackServerContext* context, const v1::CreateQpRequest* request,
                                     v1::CreateQpResponse* response) override {
    if (request->inline_data_size() > 512) {
      return Answer(context, Refusal(ErrorReason::ABOVE_ADAPTER_LIMIT, "inline_data_size"));
    }
    MutexLock lock(state_.mutex);
    response->set_qp_id(state_.NewIdIn(state_.queue_pairs));
    created_[response->qp_id()] = *request;
    states_[response->qp_id()] = v1::QP_STATE_INIT;
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* QueryQp(grpc::CallbackServerContext* context, const v1::QueryQpRequest* request,
                                    v1::QueryQpResponse* response) override {
    MutexLock lock(state_.mutex);
    response->set_state(states_[request->qp_id()]);
    response->set_address(AddressOf(request->qp_id()));
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* ConnectQp(grpc::CallbackServerContext* context, const v1::ConnectQpRequest* request,
                                      v1::ConnectQpResponse*) override {
    MutexLock lock(state_.mutex);
    const auto known = std::any_of(state_.queue_pairs.begin(), state_.queue_pairs.end(),
                                   [request](uint64_t id) { return AddressOf(id) == request->peer_address(); });
    if (!known) {
      return Answer(context, Refusal(ErrorReason::QP_ADDRESS_UNKNOWN, "peer_address"));
    }
    states_[request->qp_id()] = v1::QP_STATE_READY_TO_SEND;
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* DisconnectQp(grpc::CallbackServerContext* context, const v1::DisconnectQpRequest* request,
                                         v1::DisconnectQpResponse*) override {
    return Fail(context, request->qp_id());
  }
  grpc::ServerUnaryReactor* Flush(grpc::CallbackServerContext* context, const v1::FlushRequest* request,
                                  v1::FlushResponse*) override {
    return Fail(context, request->qp_id());
  }
  grpc::ServerUnaryReactor* CloseQp(grpc::CallbackServerContext* context, const v1::CloseQpRequest* request,
                                    v1::CloseQpResponse*) override {
    MutexLock lock(state_.mutex);
    return Answer(context, FakeState::EraseFrom(state_.queue_pairs, request->qp_id()));
  }
  grpc::ServerUnaryReactor* Post(grpc::CallbackServerContext* context, const v1::PostRequest* request,
                                 v1::PostResponse* response) override {
    if (request->requests().empty()) {
      return Answer(context, Refusal(ErrorReason::BATCH_SIZE, "requests"));
    }
    MutexLock lock(state_.mutex);
    last_post_ = *request;
    for (const v1::WorkRequest& item : request->requests()) {
      const uint32_t index = response->posted();
      if ((item.flags() & kFakeBadFlag) != 0) {
        *response->mutable_failure() =
            DetailOf(ErrorReason::FLAGS_UNKNOWN, "requests[" + std::to_string(index) + "].flags");
        break;
      }
      response->set_posted(index + 1);
      if (item.has_fast_register() || item.has_bind()) {
        v1::IssuedToken* issued = response->add_issued_tokens();
        issued->set_request_index(index);
        issued->set_remote_token(0x100 + index);
      }
      if ((item.flags() & kOpFlagSilentSuccess) == 0) {
        v1::CqResultEx result;
        result.mutable_result()->set_qp_context(created_[request->qp_id()].qp_context());
        result.mutable_result()->set_request_context(item.request_context());
        results_[created_[request->qp_id()].initiator_cq_id()].push_back(result);
      }
    }
    return Answer(context, grpc::Status::OK);
  }

  grpc::ServerUnaryReactor* CreateMw(grpc::CallbackServerContext* context, const v1::CreateMwRequest*,
                                     v1::CreateMwResponse* response) override {
    MutexLock lock(state_.mutex);
    response->set_mw_id(state_.NewIdIn(state_.windows));
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* GetRemoteTokenFromMw(grpc::CallbackServerContext* context,
                                                 const v1::GetRemoteTokenFromMwRequest*,
                                                 v1::GetRemoteTokenFromMwResponse*) override {
    return Answer(context, Refusal(ErrorReason::WINDOW_NOT_BOUND, "mw_id"));
  }
  grpc::ServerUnaryReactor* CloseMw(grpc::CallbackServerContext* context, const v1::CloseMwRequest* request,
                                    v1::CloseMwResponse*) override {
    MutexLock lock(state_.mutex);
    return Answer(context, FakeState::EraseFrom(state_.windows, request->mw_id()));
  }
  grpc::ServerUnaryReactor* GetPrivilegedMemoryRegionToken(
      grpc::CallbackServerContext* context, const v1::GetPrivilegedMemoryRegionTokenRequest*,
      v1::GetPrivilegedMemoryRegionTokenResponse* response) override {
    response->set_privileged_token(kFakePrivilegedToken);
    return Answer(context, grpc::Status::OK);
  }

 private:
  static std::string AddressOf(uint64_t queue_pair) { return std::string("qp\0", 3) + std::to_string(queue_pair); }

  grpc::ServerUnaryReactor* Fail(grpc::CallbackServerContext* context, uint64_t queue_pair) {
    MutexLock lock(state_.mutex);
    if (states_[queue_pair] != v1::QP_STATE_READY_TO_SEND) {
      return Answer(context, Refusal(ErrorReason::QP_NOT_CONNECTED, "qp_id"));
    }
    states_[queue_pair] = v1::QP_STATE_ERROR;
    return Answer(context, grpc::Status::OK);
  }

  FakeState& state_;
  std::atomic<bool> overrun_ = false;
  v1::PostRequest last_post_ RNICD_GUARDED_BY(state_.mutex);
  std::vector<v1::CqNotifyType> arms_ RNICD_GUARDED_BY(state_.mutex);
  std::map<uint64_t, std::deque<v1::CqResultEx>> results_ RNICD_GUARDED_BY(state_.mutex);
  std::map<uint64_t, v1::CreateQpRequest> created_ RNICD_GUARDED_BY(state_.mutex);
  std::map<uint64_t, v1::QpState> states_ RNICD_GUARDED_BY(state_.mutex);
};

}  // namespace rnicd::inline client
