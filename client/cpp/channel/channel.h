#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "client/cpp/channel/daemon_socket.h"
#include "client/cpp/channel/http2_client.h"
#include "client/cpp/channel/method.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {

// One connection to the daemon, on which threads call its methods as gRPC does. It has no thread: one of those that
// wait for an answer reads for all of them. It never connects again: a session belongs to its connection.
// Threads:  safe.
// fork:     a child cannot use it; calls fail there, and its end does not disturb the parent.
class Channel {
 public:
  // The daemon's answer to a call that it received: a message where the status is OK.
  struct Answer {
    http2::Status status;
    std::string message;
  };
  // What the daemon sends without being asked.
  struct Events {
    std::vector<std::string> messages;
    // Why there will be no more.
    std::optional<absl::Status> end;
  };

  explicit Channel(DaemonSocket socket);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // One call and its answer. Errors: transport failures.
  absl::StatusOr<Answer> Call(const char* path, std::string_view request, std::chrono::milliseconds timeout);

  // Calls the method whose answers are events; at most once, and before other threads know the channel.
  void OpenEvents(const char* path, std::string_view request);
  // Whether there may be something to take. Without the lock.
  bool has_events() const { return has_events_.load(std::memory_order_acquire); }
  // The events that have come and were not taken, in order.
  Events TakeEvents();
  // Changes with each TakeEvents that gave something.
  uint64_t events_taken() const { return events_taken_.load(std::memory_order_acquire); }
  // Waits until there is something to take, or events_taken() is not `taken` any more. False at the deadline.
  bool AwaitEvents(uint64_t taken, Instant deadline);
  // Reads what has come, if no other thread reads.
  void ReadWaiting();

  // Whether the daemon has ended the connection, or takes no more calls on it.
  bool ended();
  // Ends the connection. Calls under way fail.
  void Close();
  // Errors: a transport failure in a child made by fork.
  absl::Status CheckProcess() const;
  // The connection's socket, for those who wait for more than it.
  int descriptor() const { return socket_.socket.get(); }

 private:
  // Reads, or waits for the thread that does, until `done`, which looks at what has come for `call`. False at the
  // deadline.
  bool Await(ClientCall& call, Instant deadline, absl::FunctionRef<bool()> done) RNICD_REQUIRES(mutex_);
  // Waits for bytes, and says to the calls what they mean.
  void Read(Instant deadline) RNICD_REQUIRES(mutex_);
  void Take(int64_t bytes) RNICD_REQUIRES(mutex_);
  // Sends as much as the socket takes.
  void Flush() RNICD_REQUIRES(mutex_);
  void Fail(std::string_view why) RNICD_REQUIRES(mutex_);
  // Lets another thread read, if some wait and none does.
  void AppointReader() RNICD_REQUIRES(mutex_);

  const DaemonSocket socket_;
  const int32_t process_;

  Mutex mutex_;
  Http2Client http2_ RNICD_GUARDED_BY(mutex_);
  // Bytes that the socket did not take.
  std::string output_ RNICD_GUARDED_BY(mutex_);
  // Ok while the connection is of use.
  absl::Status failure_ RNICD_GUARDED_BY(mutex_);
  // True while a thread waits on the socket. Only that thread uses the buffer.
  bool reading_ RNICD_GUARDED_BY(mutex_) = false;
  // Not written before something is read: pages that nothing was read to cost nothing.
  const std::unique_ptr<char[]> buffer_;
  // Calls of the threads that wait for the reading thread.
  std::vector<ClientCall*> idle_ RNICD_GUARDED_BY(mutex_);
  // Null before OpenEvents.
  std::unique_ptr<ClientCall> events_ RNICD_GUARDED_BY(mutex_);
  std::atomic<bool> has_events_ = false;
  std::atomic<uint64_t> events_taken_ = 0;
};

// The daemon's error as it created it, or the transport failure that stands for a status without ErrorDetail.
absl::Status StatusFrom(const http2::Status& status);

// One call. Errors: the daemon's; transport failures.
template <typename Request, typename Response>
absl::StatusOr<Response> Call(Channel& channel, const Method<Request, Response>& method,
                              const std::type_identity_t<Request>& request, std::chrono::milliseconds timeout) {
  absl::StatusOr<Channel::Answer> answer = channel.Call(method.path, request.SerializeAsString(), timeout);
  if (!answer.ok()) {
    return answer.status();
  }
  if (absl::Status status = StatusFrom(answer->status); !status.ok()) {
    return status;
  }
  Response response;
  if (!response.ParseFromString(answer->message)) {
    return TransportFailure(absl::StatusCode::kInternal, "the answer is not the message that it should be");
  }
  return response;
}

}  // namespace rnicd::inline client
