#include "client/cpp/objects/fake_daemon_fixture.h"

#include <chrono>
#include <deque>
#include <utility>

#include "grpcpp/generic/async_generic_service.h"
#include "rnicd/v1/error.pb.h"

namespace rnicd::inline client {
namespace {

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

// One call with one answer. Without generated services: they cost half a minute to compile.
class FakeDaemon::Call final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Call(Reply reply) : reply_(std::move(reply)), answer_(BufferOf(reply_.bytes)) { StartRead(&request_); }

  void OnReadDone(bool) override {
    if (reply_.refused) {
      reply_.refused();
      Finish(reply_.status);
    } else if (!reply_.never) {
      StartWriteAndFinish(&answer_, {}, grpc::Status::OK);
    }
  }
  void OnCancel() override {
    if (reply_.never) {
      Finish(grpc::Status::CANCELLED);
    }
  }
  void OnDone() override { delete this; }

 private:
  const Reply reply_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
};

// Writes the queued events, and ends on request.
class FakeDaemon::EventStream final : public grpc::ServerGenericBidiReactor {
 public:
  void Push(const std::string& event) {
    MutexLock lock(mutex_);
    queue_.push_back(BufferOf(event));
    WriteNext();
  }
  void End(const grpc::Status& status) {
    MutexLock lock(mutex_);
    if (!end_.has_value()) {
      end_ = status;
      WriteNext();
    }
  }
  void OnWriteDone(bool) override {
    MutexLock lock(mutex_);
    writing_ = false;
    queue_.pop_front();
    WriteNext();
  }
  void OnCancel() override { End(grpc::Status::CANCELLED); }
  void OnDone() override { self_.reset(); }

  std::shared_ptr<EventStream> self_;

 private:
  void WriteNext() RNICD_REQUIRES(mutex_) {
    if (!writing_ && !queue_.empty()) {
      writing_ = true;
      StartWrite(&queue_.front());
    } else if (!writing_ && end_.has_value() && !finished_) {
      finished_ = true;
      Finish(*end_);
    }
  }

  Mutex mutex_;
  std::deque<grpc::ByteBuffer> queue_ RNICD_GUARDED_BY(mutex_);
  std::optional<grpc::Status> end_ RNICD_GUARDED_BY(mutex_);
  bool writing_ RNICD_GUARDED_BY(mutex_) = false;
  bool finished_ RNICD_GUARDED_BY(mutex_) = false;
};

class FakeDaemon::Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(FakeDaemon& daemon) : daemon_(daemon) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    const std::string method = context->method().substr(context->method().rfind('/') + 1);
    const Reply reply = daemon_.ReplyTo(method);
    if (method != "WatchEvents") {
      return new Call(reply);
    }
    const auto events = std::make_shared<EventStream>();
    events->self_ = events;
    MutexLock lock(daemon_.mutex_);
    if (daemon_.events_refusal_.has_value()) {
      events->End(*daemon_.events_refusal_);
    }
    daemon_.events_ = events;
    daemon_.events_opened_.NotifyAll();
    return events.get();
  }

 private:
  FakeDaemon& daemon_;
};

FakeDaemon::FakeDaemon()
    : serve_fd_([](int connection) {
        ReceiveFdRequest(connection);
        SendFdPacket(connection, "", {});
      }),
      service_(std::make_unique<Service>(*this)) {
  fd_server_.emplace(socket_dir() + "/fd.sock", [this](int connection) {
    std::function<void(int)> serve;
    {
      MutexLock lock(mutex_);
      serve = serve_fd_;
    }
    serve(connection);
  });
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket_dir() + "/rpc.sock", grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(service_.get());
  server_ = builder.BuildAndStart();
}

FakeDaemon::~FakeDaemon() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

void FakeDaemon::Answer(const std::string& method, const google::protobuf::MessageLite& response) {
  AnswerBytes(method, response.SerializeAsString());
}

void FakeDaemon::AnswerBytes(const std::string& method, const std::string& bytes) {
  MutexLock lock(mutex_);
  replies_[method] = {.bytes = bytes, .status = {}, .refused = {}};
}

void FakeDaemon::NeverAnswer(const std::string& method) {
  MutexLock lock(mutex_);
  replies_[method] = {.bytes = "", .never = true, .status = {}, .refused = {}};
}

void FakeDaemon::Refuse(const std::string& method, ErrorReason reason, std::function<void()> refused) {
  v1::ErrorDetail detail;
  detail.set_reason(static_cast<v1::ErrorReason>(reason));
  v1::RpcStatus status;
  status.add_details()->PackFrom(detail);
  const auto code = static_cast<grpc::StatusCode>(MakeError(reason).code());
  MutexLock lock(mutex_);
  replies_[method] = {
      .bytes = "", .status = {code, "refused", status.SerializeAsString()}, .refused = std::move(refused)};
}

void FakeDaemon::RefuseEvents(const grpc::Status& status) {
  MutexLock lock(mutex_);
  events_refusal_ = status;
}

void FakeDaemon::ServeFd(std::function<void(int connection)> serve) {
  MutexLock lock(mutex_);
  serve_fd_ = std::move(serve);
}

int FakeDaemon::Calls(const std::string& method) {
  MutexLock lock(mutex_);
  return calls_[method];
}

void FakeDaemon::SendEvent(const v1::WatchEventsResponse& event) { WaitForEvents()->Push(event.SerializeAsString()); }

void FakeDaemon::EndEvents(const grpc::Status& status) { WaitForEvents()->End(status); }

FakeDaemon::Reply FakeDaemon::ReplyTo(const std::string& method) {
  MutexLock lock(mutex_);
  ++calls_[method];
  return replies_[method];
}

std::shared_ptr<FakeDaemon::EventStream> FakeDaemon::WaitForEvents() {
  MutexLock lock(mutex_);
  while (events_ == nullptr) {
    events_opened_.Wait(mutex_);
  }
  return events_;
}

}  // namespace rnicd::inline client
