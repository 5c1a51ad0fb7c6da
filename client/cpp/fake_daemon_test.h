#pragma once

#include <sys/mman.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "client/cpp/fake_fd_server_test.h"
#include "client/cpp/fake_queues_test.h"
#include "client/cpp/fake_state_test.h"
#include "grpcpp/grpcpp.h"
#include "rnicd/v1/adapter_service.grpc.pb.h"
#include "rnicd/v1/memory_service.grpc.pb.h"
#include "rnicd/v1/session_service.grpc.pb.h"

namespace rnicd::inline client {

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

// The pages of one fast region, at most.
inline constexpr uint32_t kFakePagesMax = 1000;

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

// Speaks rnicd's protocol in this process, over real sockets, and keeps just the state that the client can notice.
// Knows one session at a time.
class FakeDaemon {
 public:
  FakeDaemon() : session_(state_), memory_(state_), queues_(state_) {
    fd_server_.emplace(socket_dir() + "/fd.sock", [this](int connection) { ServeFd(connection); });
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_dir() + "/rpc.sock", grpc::InsecureServerCredentials());
    builder.RegisterService(&session_);
    builder.RegisterService(&adapter_);
    builder.RegisterService(&memory_);
    builder.RegisterService(&queues_);
    server_ = builder.BuildAndStart();
  }
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;
  ~FakeDaemon() { Die(); }

  const std::string& socket_dir() const { return directory_.path(); }
  FakeState& state() { return state_; }
  FakeQueueService& queues() { return queues_; }
  int adapters_opened() const { return adapter_.adapters_opened(); }

  // All connections drop; nothing listens any more.
  void Die() {
    if (const auto events = state_.Events()) {
      events->End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone"));
    }
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    fd_server_.reset();
  }

  // Refuses every descriptor with this reason.
  void RefuseDescriptors(ErrorReason reason) { fd_refusal_ = reason; }

  // Completes the pending request of a region: with its registration, or with a failure.
  void Complete(uint64_t region, std::optional<ErrorReason> failure = std::nullopt) {
    v1::WatchEventsResponse event;
    v1::RequestCompleted& completed = *event.mutable_request_completed();
    {
      MutexLock lock(state_.mutex);
      completed.set_request_context(state_.pending_contexts.at(region));
    }
    completed.set_object_id(region);
    completed.mutable_registration()->set_remote_token(0xABCD);
    if (failure.has_value()) {
      completed.set_ntstatus(static_cast<uint32_t>(RowOf(*failure).ntstatus));
      *completed.mutable_error() = DetailOf(*failure);
    }
    state_.Events()->Push(event);
  }
  // An armed completion queue has something.
  void Notify(uint64_t completion_queue, NtStatus status = NtStatus::kSuccess) {
    v1::WatchEventsResponse event;
    event.mutable_cq_notification()->set_cq_id(completion_queue);
    event.mutable_cq_notification()->set_ntstatus(static_cast<uint32_t>(status));
    WaitForEvents()->Push(event);
  }
  // The peer of a queue pair is gone.
  void Disconnect(uint64_t queue_pair) {
    v1::WatchEventsResponse event;
    event.mutable_qp_disconnected()->set_qp_id(queue_pair);
    WaitForEvents()->Push(event);
  }
  // Waits for one request to pend and names its region.
  uint64_t WaitForPending() {
    for (;;) {
      {
        MutexLock lock(state_.mutex);
        if (!state_.pending_contexts.empty() && state_.events != nullptr) {
          return state_.pending_contexts.begin()->first;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  // Ends the session as the daemon does: the event, then the end of the stream.
  void EndSession(const std::string& cause) {
    v1::WatchEventsResponse event;
    event.mutable_session_ending()->set_cause(cause);
    const std::shared_ptr<FakeEventWriter> events = WaitForEvents();
    events->Push(event);
    events->End(grpc::Status::OK);
  }

 private:
  // The event stream; the client opens it without waiting for it.
  std::shared_ptr<FakeEventWriter> WaitForEvents() {
    std::shared_ptr<FakeEventWriter> events;
    while ((events = state_.Events()) == nullptr) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return events;
  }

  void ServeFd(int connection) {
    const auto [request, received] = ReceiveFdRequest(connection);
    if (fd_refusal_ != ErrorReason::UNSPECIFIED) {
      v1::FdReply reply;
      *reply.mutable_error() = DetailOf(fd_refusal_);
      SendFdPacket(connection, reply.SerializeAsString(), {});
    } else if (request.fd_count() == 1) {
      SendFdPacket(connection, "", {});
    } else {
      const UniqueFd file(memfd_create("fake", MFD_CLOEXEC));
      EXPECT_EQ(ftruncate(file.get(), std::stol(request.fd_ticket().substr(6))), 0);
      SendFdPacket(connection, "", {file.get()});
    }
  }

  TemporaryDirectory directory_;
  FakeState state_;
  FakeSessionService session_;
  FakeAdapterService adapter_;
  FakeMemoryService memory_;
  FakeQueueService queues_;
  std::atomic<ErrorReason> fd_refusal_ = ErrorReason::UNSPECIFIED;
  std::optional<FakeFdServer> fd_server_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace rnicd::inline client
