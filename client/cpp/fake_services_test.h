#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/op_flags.h"
#include "base/status.h"
#include "base/units.h"
#include "client/cpp/fake_daemon_test.h"
#include "client/cpp/fake_queues_test.h"
#include "client/cpp/fake_state_test.h"
#include "grpcpp/grpcpp.h"
#include "rnicd/v1/adapter_service.grpc.pb.h"
#include "rnicd/v1/memory_service.grpc.pb.h"
#include "rnicd/v1/queue_service.grpc.pb.h"
#include "rnicd/v1/session_service.grpc.pb.h"

// For fake_daemon_test.cc alone: gRPC makes so much code of a service that each reader costs half a minute.
namespace rnicd::inline client {

inline grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const grpc::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

class FakeSessionService final : public v1::SessionService::CallbackService {
 public:
  explicit FakeSessionService(FakeState& state) : state_(state) {}

  grpc::ServerUnaryReactor* OpenSession(grpc::CallbackServerContext* context, const v1::OpenSessionRequest* request,
                                        v1::OpenSessionResponse* response) override {
    if (request->label() == "refuse") {
      return Answer(context, Refusal(ErrorReason::QUOTA_SESSIONS));
    }
    if (request->grant() == "wrong") {
      return Answer(context, Refusal(ErrorReason::GRANT_REFUSED, "grant"));
    }
    ++state_.sessions_open;
    response->set_session_id(7);
    response->set_fd_socket_name("fd.sock");
    response->set_tenant(request->grant().empty() ? "guests" : "grant/" + request->grant());
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* GetSession(grpc::CallbackServerContext* context, const v1::GetSessionRequest*,
                                       v1::GetSessionResponse* response) override {
    response->set_session_id(7);
    response->set_label("fake");
    v1::ResourceUse* use = response->add_resources();
    use->set_name("regions");
    use->set_used(state_.LiveRegions());
    use->set_limit(1000);
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* CloseSession(grpc::CallbackServerContext* context, const v1::CloseSessionRequest*,
                                         v1::CloseSessionResponse* response) override {
    --state_.sessions_open;
    response->set_reclaimed_regions(state_.LiveRegions());
    std::shared_ptr<FakeEventWriter> events;
    {
      MutexLock lock(state_.mutex);
      events.swap(state_.events);
    }
    if (events != nullptr) {
      events->End(grpc::Status::OK);
    }
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerWriteReactor<v1::WatchEventsResponse>* WatchEvents(grpc::CallbackServerContext*,
                                                                 const v1::WatchEventsRequest*) override {
    const auto writer = std::make_shared<FakeEventWriter>();
    writer->self_ = writer;
    if (state_.refuse_event_stream) {
      writer->End(Refusal(ErrorReason::EVENT_STREAM_ALREADY_OPEN));
    }
    MutexLock lock(state_.mutex);
    state_.events = writer;
    return writer.get();
  }

 private:
  FakeState& state_;
};

class FakeAdapterService final : public v1::AdapterService::CallbackService {
 public:
  grpc::ServerUnaryReactor* ListAdapters(grpc::CallbackServerContext* context, const v1::ListAdaptersRequest*,
                                         v1::ListAdaptersResponse* response) override {
    v1::AdapterSummary* adapter = response->add_adapters();
    adapter->set_name("soft0");
    adapter->set_provider("soft");
    adapter->set_numa_node(-1);
    adapter->mutable_info()->set_max_registration_size(1u << 30);
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* OpenAdapter(grpc::CallbackServerContext* context, const v1::OpenAdapterRequest* request,
                                        v1::OpenAdapterResponse* response) override {
    ++adapters_opened_;
    if (!request->adapter_name().empty() && request->adapter_name() != "soft0") {
      return Answer(context, Refusal(ErrorReason::ADAPTER_NOT_FOUND, "adapter_name"));
    }
    response->set_adapter_id(11);
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* QueryAdapterInfo(grpc::CallbackServerContext* context,
                                             const v1::QueryAdapterInfoRequest* request,
                                             v1::QueryAdapterInfoResponse* response) override {
    if (request->adapter_id() != 11) {
      return Answer(context, Refusal(ErrorReason::OBJECT_NOT_FOUND, "adapter_id"));
    }
    response->mutable_info()->mutable_version()->set_major(1);
    response->mutable_info()->mutable_version()->set_minor(2);
    response->mutable_info()->set_rdma_technology(v1::RDMA_TECHNOLOGY_ROCE_V2);
    return Answer(context, grpc::Status::OK);
  }
  int adapters_opened() const { return adapters_opened_; }

 private:
  std::atomic<int> adapters_opened_ = 0;
};

class FakeMemoryService final : public v1::MemoryService::CallbackService {
 public:
  explicit FakeMemoryService(FakeState& state) : state_(state) {}

  grpc::ServerUnaryReactor* AllocateMemory(grpc::CallbackServerContext* context,
                                           const v1::AllocateMemoryRequest* request,
                                           v1::AllocateMemoryResponse* response) override {
    if (request->size() % 4096 != 0) {
      return Answer(context, Refusal(ErrorReason::MEMORY_SIZE_UNALIGNED, "size"));
    }
    MutexLock lock(state_.mutex);
    response->set_memory_id(state_.NewIdIn(state_.memory));
    response->set_fd_ticket("fetch " + std::to_string(request->size()));
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* ImportMemory(grpc::CallbackServerContext* context, const v1::ImportMemoryRequest*,
                                         v1::ImportMemoryResponse* response) override {
    MutexLock lock(state_.mutex);
    response->set_memory_id(state_.NewIdIn(state_.memory));
    response->set_fd_ticket("import");
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* SealMemory(grpc::CallbackServerContext* context, const v1::SealMemoryRequest*,
                                       v1::SealMemoryResponse* response) override {
    response->set_page_size(v1::PAGE_SIZE_4KIB);
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* ReleaseMemory(grpc::CallbackServerContext* context, const v1::ReleaseMemoryRequest* request,
                                          v1::ReleaseMemoryResponse*) override {
    MutexLock lock(state_.mutex);
    if (!state_.regions.empty()) {
      return Answer(context, Refusal(ErrorReason::MEMORY_IN_USE));
    }
    return Answer(context, state_.memory.erase(request->memory_id()) == 1 ? grpc::Status::OK
                                                                          : Refusal(ErrorReason::OBJECT_NOT_FOUND));
  }
  grpc::ServerUnaryReactor* CreatePd(grpc::CallbackServerContext* context, const v1::CreatePdRequest*,
                                     v1::CreatePdResponse* response) override {
    response->set_pd_id(21);
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* CreateMr(grpc::CallbackServerContext* context, const v1::CreateMrRequest*,
                                     v1::CreateMrResponse* response) override {
    ++state_.rpcs;
    MutexLock lock(state_.mutex);
    response->set_mr_id(state_.NewIdIn(state_.regions));
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* RegisterMr(grpc::CallbackServerContext* context, const v1::RegisterMrRequest* request,
                                       v1::RegisterMrResponse* response) override {
    ++state_.rpcs;
    if (request->length() > state_.refuse_length_above) {
      return Answer(context, Refusal(ErrorReason::LENGTH_ABOVE_ADAPTER_LIMIT, "length"));
    }
    if (state_.pend && request->allow_pending()) {
      MutexLock lock(state_.mutex);
      state_.pending_contexts[request->mr_id()] = request->request_context();
      response->set_ntstatus(0x103);
      return Answer(context, grpc::Status::OK);
    }
    FillRegistration(*request, *response->mutable_registration());
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* DeregisterMr(grpc::CallbackServerContext* context, const v1::DeregisterMrRequest*,
                                         v1::DeregisterMrResponse*) override {
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* CloseMr(grpc::CallbackServerContext* context, const v1::CloseMrRequest* request,
                                    v1::CloseMrResponse* response) override {
    ++state_.rpcs;
    MutexLock lock(state_.mutex);
    if (state_.regions.erase(request->mr_id()) == 0) {
      return Answer(context, Refusal(ErrorReason::OBJECT_NOT_FOUND, "mr_id"));
    }
    if (state_.pend && request->allow_pending()) {
      state_.pending_contexts[request->mr_id()] = request->request_context();
      response->set_ntstatus(0x103);
    }
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* InitializeFastRegisterMr(grpc::CallbackServerContext* context,
                                                     const v1::InitializeFastRegisterMrRequest* request,
                                                     v1::InitializeFastRegisterMrResponse*) override {
    return Answer(context, request->adapter_page_count() > kFakePagesMax
                               ? Refusal(ErrorReason::PAGE_COUNT_UNSUPPORTED, "adapter_page_count")
                               : grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* GetLocalToken(grpc::CallbackServerContext* context, const v1::GetLocalTokenRequest* request,
                                          v1::GetLocalTokenResponse* response) override {
    response->set_local_token(static_cast<uint32_t>(request->mr_id()));
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* GetRemoteToken(grpc::CallbackServerContext* context,
                                           const v1::GetRemoteTokenRequest* request,
                                           v1::GetRemoteTokenResponse* response) override {
    response->set_remote_token(static_cast<uint32_t>(request->mr_id()) << 8);
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* BuildLam(grpc::CallbackServerContext* context, const v1::BuildLamRequest* request,
                                     v1::BuildLamResponse* response) override {
    if (request->length() == 0) {
      return Answer(context, Refusal(ErrorReason::LENGTH_ZERO, "length"));
    }
    const uint64_t fbo = request->mdl_chain(0).virtual_address() % kNdkPageBytes;
    response->set_fbo(static_cast<uint32_t>(fbo));
    for (uint64_t byte = 0; byte < fbo + request->length(); byte += kNdkPageBytes) {
      response->add_adapter_page_array((1ull << 40) + byte);
    }
    MutexLock lock(state_.mutex);
    response->set_lam_id(state_.NewIdIn(state_.mappings));
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* ReleaseLam(grpc::CallbackServerContext* context, const v1::ReleaseLamRequest* request,
                                       v1::ReleaseLamResponse*) override {
    MutexLock lock(state_.mutex);
    return Answer(context, FakeState::EraseFrom(state_.mappings, request->lam_id()));
  }
  grpc::ServerUnaryReactor* BatchCreateMr(grpc::CallbackServerContext* context, const v1::BatchCreateMrRequest* request,
                                          v1::BatchCreateMrResponse* response) override {
    ++state_.rpcs;
    MutexLock lock(state_.mutex);
    for (int item = 0; item < request->items_size(); ++item) {
      response->add_outcomes()->mutable_response()->set_mr_id(state_.NewIdIn(state_.regions));
    }
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* BatchRegisterMr(grpc::CallbackServerContext* context,
                                            const v1::BatchRegisterMrRequest* request,
                                            v1::BatchRegisterMrResponse* response) override {
    ++state_.rpcs;
    for (const v1::RegisterMrRequest& item : request->items()) {
      v1::RegisterMrOutcome* outcome = response->add_outcomes();
      if (item.length() > state_.refuse_length_above) {
        *outcome->mutable_error() = DetailOf(ErrorReason::LENGTH_ABOVE_ADAPTER_LIMIT, "length");
      } else {
        FillRegistration(item, *outcome->mutable_response()->mutable_registration());
      }
    }
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* BatchCloseMr(grpc::CallbackServerContext* context, const v1::BatchCloseMrRequest* request,
                                         v1::BatchCloseMrResponse* response) override {
    ++state_.rpcs;
    MutexLock lock(state_.mutex);
    for (const v1::CloseMrRequest& item : request->items()) {
      state_.regions.erase(item.mr_id());
      response->add_outcomes()->mutable_response();
    }
    return Answer(context, grpc::Status::OK);
  }

 private:
  static void FillRegistration(const v1::RegisterMrRequest& request, v1::Registration& registration) {
    registration.set_base_virtual_address(request.mdl_chain(0).virtual_address());
    registration.set_length(request.length());
    registration.set_local_token(static_cast<uint32_t>(request.mr_id()));
    registration.set_remote_token(static_cast<uint32_t>(request.mr_id()) << 8);
  }

  FakeState& state_;
};

// Takes what is posted and lets it succeed at once, without moving a byte. Completions come on the initiator queue.
class FakeQueueService final : public v1::QueueService::CallbackService {
 public:
  explicit FakeQueueService(FakeQueues& queues) : queues_(queues) {}

  grpc::ServerUnaryReactor* CreateCq(grpc::CallbackServerContext* context, const v1::CreateCqRequest* request,
                                     v1::CreateCqResponse* response) override {
    if (request->cq_depth() == 0) {
      return Answer(context, Refusal(ErrorReason::FIELD_OUT_OF_RANGE, "cq_depth"));
    }
    MutexLock lock(queues_.state.mutex);
    response->set_cq_id(queues_.state.NewIdIn(queues_.state.completion_queues));
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* ResizeCq(grpc::CallbackServerContext* context, const v1::ResizeCqRequest* request,
                                     v1::ResizeCqResponse*) override {
    return Answer(context, request->cq_depth() == 1 ? Refusal(ErrorReason::CQ_BACKLOG, "cq_depth") : grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* ArmCq(grpc::CallbackServerContext* context, const v1::ArmCqRequest* request,
                                  v1::ArmCqResponse*) override {
    MutexLock lock(queues_.state.mutex);
    queues_.arms.push_back(request->type());
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* GetCqResultsEx(grpc::CallbackServerContext* context,
                                           const v1::GetCqResultsExRequest* request,
                                           v1::GetCqResultsExResponse* response) override {
    if (queues_.overrun) {
      return Answer(context, Refusal(ErrorReason::CQ_OVERRUN));
    }
    MutexLock lock(queues_.state.mutex);
    std::deque<v1::CqResultEx>& queue = queues_.results[request->cq_id()];
    for (uint32_t count = 0; count < request->max_results() && !queue.empty(); ++count) {
      *response->add_results() = queue.front();
      queue.pop_front();
    }
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* CloseCq(grpc::CallbackServerContext* context, const v1::CloseCqRequest* request,
                                    v1::CloseCqResponse* response) override {
    MutexLock lock(queues_.state.mutex);
    if (request->allow_pending() && !queues_.state.queue_pairs.empty()) {
      response->set_ntstatus(static_cast<uint32_t>(NtStatus::kPending));
    }
    return Answer(context, FakeState::EraseFrom(queues_.state.completion_queues, request->cq_id()));
  }

  grpc::ServerUnaryReactor* CreateQp(grpc::CallbackServerContext* context, const v1::CreateQpRequest* request,
                                     v1::CreateQpResponse* response) override {
    if (request->inline_data_size() > 512) {
      return Answer(context, Refusal(ErrorReason::ABOVE_ADAPTER_LIMIT, "inline_data_size"));
    }
    MutexLock lock(queues_.state.mutex);
    response->set_qp_id(queues_.state.NewIdIn(queues_.state.queue_pairs));
    queues_.created[response->qp_id()] = *request;
    queues_.states[response->qp_id()] = v1::QP_STATE_INIT;
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* QueryQp(grpc::CallbackServerContext* context, const v1::QueryQpRequest* request,
                                    v1::QueryQpResponse* response) override {
    MutexLock lock(queues_.state.mutex);
    response->set_state(queues_.states[request->qp_id()]);
    response->set_address(AddressOf(request->qp_id()));
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* ConnectQp(grpc::CallbackServerContext* context, const v1::ConnectQpRequest* request,
                                      v1::ConnectQpResponse*) override {
    MutexLock lock(queues_.state.mutex);
    const auto known = std::any_of(queues_.state.queue_pairs.begin(), queues_.state.queue_pairs.end(),
                                   [request](uint64_t id) { return AddressOf(id) == request->peer_address(); });
    if (!known) {
      return Answer(context, Refusal(ErrorReason::QP_ADDRESS_UNKNOWN, "peer_address"));
    }
    queues_.states[request->qp_id()] = v1::QP_STATE_READY_TO_SEND;
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
    MutexLock lock(queues_.state.mutex);
    return Answer(context, FakeState::EraseFrom(queues_.state.queue_pairs, request->qp_id()));
  }
  grpc::ServerUnaryReactor* Post(grpc::CallbackServerContext* context, const v1::PostRequest* request,
                                 v1::PostResponse* response) override {
    if (request->requests().empty()) {
      return Answer(context, Refusal(ErrorReason::BATCH_SIZE, "requests"));
    }
    MutexLock lock(queues_.state.mutex);
    queues_.last_post = *request;
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
        result.mutable_result()->set_qp_context(queues_.created[request->qp_id()].qp_context());
        result.mutable_result()->set_request_context(item.request_context());
        queues_.results[queues_.created[request->qp_id()].initiator_cq_id()].push_back(result);
      }
    }
    return Answer(context, grpc::Status::OK);
  }

  grpc::ServerUnaryReactor* CreateMw(grpc::CallbackServerContext* context, const v1::CreateMwRequest*,
                                     v1::CreateMwResponse* response) override {
    MutexLock lock(queues_.state.mutex);
    response->set_mw_id(queues_.state.NewIdIn(queues_.state.windows));
    return Answer(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* GetRemoteTokenFromMw(grpc::CallbackServerContext* context,
                                                 const v1::GetRemoteTokenFromMwRequest*,
                                                 v1::GetRemoteTokenFromMwResponse*) override {
    return Answer(context, Refusal(ErrorReason::WINDOW_NOT_BOUND, "mw_id"));
  }
  grpc::ServerUnaryReactor* CloseMw(grpc::CallbackServerContext* context, const v1::CloseMwRequest* request,
                                    v1::CloseMwResponse*) override {
    MutexLock lock(queues_.state.mutex);
    return Answer(context, FakeState::EraseFrom(queues_.state.windows, request->mw_id()));
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
    MutexLock lock(queues_.state.mutex);
    if (queues_.states[queue_pair] != v1::QP_STATE_READY_TO_SEND) {
      return Answer(context, Refusal(ErrorReason::QP_NOT_CONNECTED, "qp_id"));
    }
    queues_.states[queue_pair] = v1::QP_STATE_ERROR;
    return Answer(context, grpc::Status::OK);
  }

  FakeQueues& queues_;
};

}  // namespace rnicd::inline client
