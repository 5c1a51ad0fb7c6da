#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/status.h>
#include <grpcpp/support/sync_stream.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "rnicd/v1/adapter_service.grpc.pb.h"
#include "rnicd/v1/error.pb.h"
#include "rnicd/v1/memory_service.grpc.pb.h"
#include "rnicd/v1/session_service.grpc.pb.h"

namespace rnicd::interop {

inline constexpr std::chrono::milliseconds kTimeout{30'000};

// Ends the case with an exception that says what was seen, unless the condition holds.
void Check(bool condition, const std::string& seen);

// A code and a message, for Check.
std::string Told(const grpc::Status& status);

// The status, for calls that must succeed; `what` names the call.
void CheckOk(const grpc::Status& status, const std::string& what);
void CheckCode(const grpc::Status& status, grpc::StatusCode code);
// Also the ErrorDetail in the trailers, and that the status repeats it.
void CheckRefused(const grpc::Status& status, grpc::StatusCode code, v1::ErrorReason reason, const std::string& field);

void SetTimeout(grpc::ClientContext& context, std::chrono::microseconds timeout);

// A unary call that runs while its case goes on.
// Lifetime: the destructor cancels it and waits for its end.
template <typename Request, typename Response>
class RunningCall {
 public:
  // start(context, request, response, callback) of a stub's async().
  template <typename Start>
  RunningCall(Request request, std::chrono::microseconds timeout, Start start) : request_(std::move(request)) {
    SetTimeout(context_, timeout);
    start(&context_, &request_, &response_, [this](grpc::Status status) { ended_.set_value(std::move(status)); });
  }
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;
  ~RunningCall() {
    context_.TryCancel();
    status_.wait();
  }

  void Cancel() { context_.TryCancel(); }
  const grpc::Status& status() { return status_.get(); }

 private:
  grpc::ClientContext context_;
  const Request request_;
  Response response_;
  std::promise<grpc::Status> ended_;
  const std::shared_future<grpc::Status> status_{ended_.get_future()};
};

using ListCall = RunningCall<v1::ListAdaptersRequest, v1::ListAdaptersResponse>;
using RawCall = RunningCall<grpc::ByteBuffer, grpc::ByteBuffer>;
using ClosePdCall = RunningCall<v1::ClosePdRequest, v1::ClosePdResponse>;

// A stream of WatchEvents.
class EventStream {
 public:
  EventStream(v1::SessionService::Stub& stub, std::chrono::milliseconds timeout);

  // Waits until the daemon has confirmed the stream.
  void AwaitBegin() { reader_->WaitForInitialMetadata(); }
  void ExpectEvent(uint64_t context);
  void ExpectLastEvent(const std::string& cause);
  void ExpectCancelled();
  // Reads to the end.
  grpc::Status Finish();

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchEventsResponse>> reader_;
};

// One connection to the daemon, with the generated stubs.
class Connection {
 public:
  explicit Connection(const std::string& socket, grpc::ChannelArguments arguments = {});

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  v1::SessionService::Stub& sessions() { return *sessions_; }

  grpc::Status OpenSession(const std::string& label);
  v1::ListAdaptersResponse ListAdapters();
  std::unique_ptr<ListCall> StartListAdapters();
  // A call of any method, "AdapterService/ListAdapters", with any bytes.
  std::unique_ptr<RawCall> StartRaw(const std::string& method, const std::string& bytes,
                                    std::chrono::microseconds timeout);
  // Its status.
  grpc::Status CallRaw(const std::string& method, const std::string& bytes);

  // The rest is for connections with a session.
  void OpenAdapter();
  struct BusyPd {
    uint64_t pd_id;
    uint64_t mr_id;
  };
  // A protection domain that cannot be closed yet, and the region that is in the way.
  BusyPd MakeBusyPd();
  std::unique_ptr<ClosePdCall> StartClosePd(uint64_t pd_id, std::chrono::milliseconds timeout = kTimeout);
  void CloseMr(uint64_t mr_id);
  uint64_t AllocateMemory();
  void ReleaseMemory(uint64_t memory_id);
  void GetSession();
  void CloseSession();
  // The event of a ClosePd that pended.
  void CauseEvent(uint64_t context);
  std::unique_ptr<EventStream> Watch();

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::SessionService::Stub> sessions_;
  const std::unique_ptr<v1::AdapterService::Stub> adapters_;
  const std::unique_ptr<v1::MemoryService::Stub> memory_;
  uint64_t adapter_id_ = 0;
};

// A connection with a session and an open adapter.
std::unique_ptr<Connection> ConnectWithSession(const std::string& socket, const grpc::ChannelArguments& arguments = {});

}  // namespace rnicd::interop
