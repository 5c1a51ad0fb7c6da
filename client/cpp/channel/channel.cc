#include "client/cpp/channel/channel.h"

#include <algorithm>
#include <utility>

#include "base/system/socket_io.h"
#include "base/system/this_process.h"
#include "rnicd/v1/error.pb.h"
#include "wire/error_detail.h"

namespace rnicd::inline client {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;
// A thread whose bytes wait for room in the socket looks this often whether it has its answer already.
constexpr std::chrono::milliseconds kFullSocketMax{100};

std::optional<v1::ErrorDetail> DetailIn(const http2::Status& status) {
  v1::RpcStatus rpc_status;
  v1::ErrorDetail detail;
  if (status.details.empty() || !rpc_status.ParseFromString(status.details)) {
    return std::nullopt;
  }
  for (const google::protobuf::Any& any : rpc_status.details()) {
    if (any.UnpackTo(&detail)) {
      return detail;
    }
  }
  return std::nullopt;
}

}  // namespace

absl::Status StatusFrom(const http2::Status& status) {
  if (status.code == 0) {
    return absl::OkStatus();
  }
  // absl took its codes from gRPC; the numbers are the same.
  const auto code = static_cast<absl::StatusCode>(status.code);
  const std::optional<v1::ErrorDetail> detail = DetailIn(status);
  return detail.has_value() ? wire::StatusFromDetail(*detail, code) : TransportFailure(code, status.message);
}

Channel::Channel(DaemonSocket socket)
    : socket_(std::move(socket)),
      process_(ProcessId()),
      http2_(socket_.authorization),
      buffer_(std::make_unique_for_overwrite<char[]>(kReadBytes)) {}

Channel::~Channel() { Close(); }

absl::Status Channel::CheckProcess() const {
  if (ProcessId() == process_) {
    return absl::OkStatus();
  }
  return TransportFailure(absl::StatusCode::kFailedPrecondition, "the session belongs to the process before fork");
}

absl::StatusOr<Channel::Answer> Channel::Call(const char* path, std::string_view request,
                                              std::chrono::milliseconds timeout) {
  // In a child of fork the mutex may be in any state.
  if (absl::Status status = CheckProcess(); !status.ok()) {
    return status;
  }
  const Instant deadline = Instant::clock::now() + timeout;
  ClientCall call(request);
  MutexLock lock(mutex_);
  if (!failure_.ok()) {
    return failure_;
  }
  const int32_t number = http2_.Begin(path, timeout, call);
  Flush();
  const bool in_time = Await(call, deadline, [&] { return call.over(); });
  AppointReader();
  if (!in_time) {
    http2_.Cancel(number);
    Flush();
    return TransportFailure(absl::StatusCode::kDeadlineExceeded, "the daemon did not answer in time");
  }
  if (!call.failure().ok()) {
    return call.failure();
  }
  std::optional<std::string> message = call.TakeMessage();
  if (call.status().code == 0 && !message.has_value()) {
    return TransportFailure(absl::StatusCode::kInternal, "an answer without a message");
  }
  return Answer{.status = call.status(), .message = std::move(message).value_or("")};
}

void Channel::OpenEvents(const char* path, std::string_view request) {
  MutexLock lock(mutex_);
  events_ = std::make_unique<ClientCall>(request);
  if (failure_.ok()) {
    http2_.Begin(path, std::nullopt, *events_);
    Flush();
  }
}

Channel::Events Channel::TakeEvents() {
  MutexLock lock(mutex_);
  has_events_.store(false, std::memory_order_relaxed);
  Events taken;
  while (std::optional<std::string> message = events_->TakeMessage()) {
    taken.messages.push_back(*std::move(message));
  }
  if (events_->over()) {
    taken.end = events_->failure().ok() ? StatusFrom(events_->status()) : events_->failure();
  } else if (!failure_.ok()) {
    taken.end = failure_;
  }
  if (!taken.messages.empty() || taken.end.has_value()) {
    events_taken_.fetch_add(1, std::memory_order_release);
    events_->changed.NotifyAll();
  }
  return taken;
}

bool Channel::AwaitEvents(uint64_t taken, Instant deadline) {
  MutexLock lock(mutex_);
  ClientCall& events = *events_;
  const bool in_time =
      Await(events, deadline, [&] { return events.has_message() || events.over() || events_taken() != taken; });
  AppointReader();
  return in_time;
}

void Channel::ReadWaiting() {
  if (!CheckProcess().ok()) {
    return;
  }
  MutexLock lock(mutex_);
  if (!reading_ && failure_.ok()) {
    Take(ReadSocket(socket_.socket.get(), {buffer_.get(), kReadBytes}, true));
    Flush();
  }
}

bool Channel::ended() {
  ReadWaiting();
  MutexLock lock(mutex_);
  return !failure_.ok() || !http2_.takes_calls();
}

void Channel::Close() {
  if (!CheckProcess().ok()) {
    return;
  }
  // A thread that waits on the socket wakes.
  ShutDownSocket(socket_.socket.get());
  MutexLock lock(mutex_);
  Fail("the connection was closed");
}

bool Channel::Await(ClientCall& call, Instant deadline, absl::FunctionRef<bool()> done) {
  while (failure_.ok() && !done()) {
    const Instant now = Instant::clock::now();
    if (now >= deadline) {
      return false;
    }
    if (!reading_) {
      Read(deadline);
    } else if (!output_.empty()) {
      mutex_.Unlock();
      AwaitWritable(socket_.socket.get(), std::min(deadline, now + kFullSocketMax));
      mutex_.Lock();
      Flush();
    } else {
      idle_.push_back(&call);
      call.changed.WaitUntil(mutex_, deadline);
      std::erase(idle_, &call);
    }
  }
  return true;
}

void Channel::Read(Instant deadline) {
  reading_ = true;
  const bool also_writable = !output_.empty();
  mutex_.Unlock();
  int64_t bytes = kTryLater;
  if (AwaitSocket(socket_.socket.get(), also_writable, deadline)) {
    bytes = ReadSocket(socket_.socket.get(), {buffer_.get(), kReadBytes}, true);
  }
  mutex_.Lock();
  reading_ = false;
  Take(bytes);
  Flush();
}

void Channel::Take(int64_t bytes) {
  if (bytes == 0 || bytes == kSocketFailed) {
    Fail("the daemon closed the connection");
  } else if (bytes > 0 && !http2_.Receive(std::string_view(buffer_.get(), static_cast<size_t>(bytes)))) {
    Fail("the daemon's answer is not HTTP/2");
  }
  if (events_ != nullptr && (events_->has_message() || events_->over())) {
    has_events_.store(true, std::memory_order_release);
  }
}

void Channel::Flush() {
  for (std::string_view more = http2_.NextOutput(); !more.empty(); more = http2_.NextOutput()) {
    output_.append(more);
  }
  while (!output_.empty() && failure_.ok()) {
    const int64_t sent = SendSocket(socket_.socket.get(), output_);
    if (sent == kTryLater) {
      return;
    }
    // It has closed the connection: what it sent before is read first, then the end.
    output_.erase(0, sent < 0 ? output_.size() : static_cast<size_t>(sent));
  }
  if (failure_.ok() && http2_.finished()) {
    Fail("the daemon closed the connection");
  }
}

void Channel::Fail(std::string_view why) {
  if (failure_.ok()) {
    failure_ = TransportFailure(absl::StatusCode::kUnavailable, why);
  }
  output_.clear();
  http2_.End(failure_);
  has_events_.store(true, std::memory_order_release);
}

void Channel::AppointReader() {
  if (!reading_ && !idle_.empty()) {
    idle_.front()->changed.NotifyOne();
  }
}

}  // namespace rnicd::inline client
