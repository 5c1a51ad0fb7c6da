#include "client/cpp/fake_daemon_test.h"

#include <sys/mman.h>

#include <chrono>
#include <thread>

#include "base/mutex.h"
#include "client/cpp/fake_services_test.h"

namespace rnicd::inline client {

struct FakeDaemon::Services {
  Services(FakeState& state, FakeQueues& fake_queues) : session(state), memory(state), queues(fake_queues) {}

  FakeSessionService session;
  FakeAdapterService adapter;
  FakeMemoryService memory;
  FakeQueueService queues;
};

FakeDaemon::FakeDaemon() : services_(std::make_unique<Services>(state_, queues_)) {
  fd_server_.emplace(socket_dir() + "/fd.sock", [this](int connection) { ServeFd(connection); });
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket_dir() + "/rpc.sock", grpc::InsecureServerCredentials());
  builder.RegisterService(&services_->session);
  builder.RegisterService(&services_->adapter);
  builder.RegisterService(&services_->memory);
  builder.RegisterService(&services_->queues);
  server_ = builder.BuildAndStart();
}

FakeDaemon::~FakeDaemon() { Die(); }

int FakeDaemon::adapters_opened() const { return services_->adapter.adapters_opened(); }

void FakeDaemon::Die() {
  if (const auto events = state_.Events()) {
    events->End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone"));
  }
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  fd_server_.reset();
}

void FakeDaemon::Complete(uint64_t region, std::optional<ErrorReason> failure) {
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

void FakeDaemon::Notify(uint64_t completion_queue, NtStatus status) {
  v1::WatchEventsResponse event;
  event.mutable_cq_notification()->set_cq_id(completion_queue);
  event.mutable_cq_notification()->set_ntstatus(static_cast<uint32_t>(status));
  WaitForEvents()->Push(event);
}

void FakeDaemon::Disconnect(uint64_t queue_pair) {
  v1::WatchEventsResponse event;
  event.mutable_qp_disconnected()->set_qp_id(queue_pair);
  WaitForEvents()->Push(event);
}

uint64_t FakeDaemon::WaitForPending() {
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

void FakeDaemon::EndSession(const std::string& cause) {
  v1::WatchEventsResponse event;
  event.mutable_session_ending()->set_cause(cause);
  const std::shared_ptr<FakeEventWriter> events = WaitForEvents();
  events->Push(event);
  events->End(grpc::Status::OK);
}

std::shared_ptr<FakeEventWriter> FakeDaemon::WaitForEvents() {
  std::shared_ptr<FakeEventWriter> events;
  while ((events = state_.Events()) == nullptr) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return events;
}

void FakeDaemon::ServeFd(int connection) {
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

}  // namespace rnicd::inline client
