#include "daemon/rpc/calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/connection.h"
#include "wire/http2/status.h"

namespace rnicd::rpc {
namespace {

using http2::HeaderField;
using http2::TrailersOf;

// What an open call costs besides its message: our record of it and nghttp2's.
constexpr uint64_t kStreamBytes = 2048;

const std::vector<HeaderField>& ResponseHeaders() {
  static const auto* const headers =
      new std::vector<HeaderField>{{":status", "200"}, {"content-type", "application/grpc"}};
  return *headers;
}

std::vector<HeaderField> TrailersOnly(const Status& status) {
  std::vector<HeaderField> headers = ResponseHeaders();
  const std::vector<HeaderField> trailers = TrailersOf(status);
  headers.insert(headers.end(), trailers.begin(), trailers.end());
  return headers;
}

const std::vector<HeaderField>& SuccessTrailers() {
  static const auto* const success = new std::vector<HeaderField>(TrailersOf({}));
  return *success;
}

}  // namespace

Calls::Calls(std::shared_ptr<EventLoop> loop, std::weak_ptr<Connection> connection, const Options& options)
    : loop_(std::move(loop)),
      connection_(std::move(connection)),
      options_(options),
      http2_(*this, options.limits, loop_->Now()) {}

Calls::Stream* Calls::Find(int32_t stream_id) {
  const auto found = streams_.find(stream_id);
  return found == streams_.end() ? nullptr : &found->second;
}

Calls::Stream* Calls::FindOpen(int32_t stream_id) {
  Stream* const stream = Find(stream_id);
  return stream == nullptr || stream->response.ended() ? nullptr : stream;
}

EventLoop::Timer Calls::CallAt(Instant due, std::function<void()> task) const {
  return loop_->CallAt(due, [weak = connection_, task = std::move(task)] {
    if (const std::shared_ptr<Connection> connection = weak.lock(); connection != nullptr) {
      connection->Run([&](Calls& /*calls*/) { task(); });
    }
  });
}

void Calls::Close() {
  while (!streams_.empty()) {
    OnStreamClosed(streams_.begin()->first);
  }
  http2_.Free();
}

// --- requests ---

bool Calls::OnRequestBegins(int32_t stream_id) {
  // nghttp2 refuses streams above the limit too, but only once the client has acknowledged our settings.
  if (http2_.closing() || streams_.size() >= options_.limits.calls_max) {
    return false;
  }
  std::optional<BudgetCharge> charge = options_.budget->Take(kStreamBytes);
  if (!charge.has_value()) {
    return false;
  }
  streams_.emplace(stream_id, Stream{.request = {loop_->Now(), *std::move(charge)}});
  return true;
}

bool Calls::OnHeader(int32_t stream_id, std::string_view name, std::string_view value) {
  Stream* const stream = Find(stream_id);
  return stream == nullptr || stream->request.AddHeader(name, value, options_.limits, options_.secret);
}

void Calls::OnHeadersEnd(int32_t stream_id) {
  Stream* const stream = Find(stream_id);
  if (stream == nullptr) {
    return;
  }
  if (const std::optional<int> http_status = stream->request.NotGrpc(); http_status.has_value()) {
    stream->response.End({});
    http2_.Respond(stream_id, {{":status", absl::StrCat(*http_status)}}, false);
  } else if (const auto refusal = stream->request.CheckHeaders(options_.secret.has_value()); refusal.has_value()) {
    Refuse(stream_id, *refusal);
  } else if (const auto deadline = stream->request.deadline(); deadline.has_value()) {
    stream->deadline = CallAt(*deadline, [this, stream_id] { OnDeadline(stream_id); });
  }
}

// The bytes count as read at once: what is kept of them was charged, and the rest is dropped.
void Calls::OnData(int32_t stream_id, std::string_view bytes) {
  http2_.Consume(stream_id, bytes.size());
  if (Stream* const stream = Find(stream_id); stream != nullptr && stream->is_request()) {
    if (const auto refusal = stream->request.AddData(bytes, options_.limits); refusal.has_value()) {
      Refuse(stream_id, *refusal);
    }
  }
}

void Calls::OnRequestEnds(int32_t stream_id) {
  Stream* const stream = Find(stream_id);
  if (stream == nullptr) {
    return;
  }
  const std::optional<Refusal> refusal = stream->request.End();
  if (!stream->is_request()) {
    return;
  }
  if (refusal.has_value()) {
    Refuse(stream_id, *refusal);
  } else {
    ready_.Insert(stream_id);
  }
}

void Calls::Refuse(int32_t stream_id, Refusal refusal) {
  if (Stream* const stream = Find(stream_id); stream != nullptr && stream->is_request()) {
    stream->request.DropMessage();
    options_.handler(MakeCall(stream_id, *stream, refusal));
  }
}

bool Calls::RefuseLate() {
  const Instant now = loop_->Now();
  std::vector<int32_t> late;
  bool some = false;
  for (const auto& [stream_id, stream] : streams_) {
    if (!stream.request.ended() && stream.is_request()) {
      some = true;
      if (now - stream.request.began() > options_.limits.request_timeout) {
        late.push_back(stream_id);
      }
    }
  }
  for (const int32_t stream_id : late) {
    Refuse(stream_id, {Refusal::kIncomplete});
  }
  return some;
}

void Calls::OnStreamClosed(int32_t stream_id) {
  const auto closed = streams_.extract(stream_id);
  if (closed.empty()) {
    return;
  }
  const Stream& stream = closed.mapped();
  ready_.Erase(stream_id);
  backlog_.Drop(stream.response.waiting_bytes());
  loop_->CancelTimer(stream.deadline);
  loop_->CancelTimer(stream.later_timer);
  if (stream.call != nullptr) {
    stream.call->End(/*cancelled=*/true);
  }
}

// --- calls ---

std::shared_ptr<ServerCall> Calls::MakeCall(int32_t stream_id, Stream& stream, std::optional<Refusal> refusal) {
  stream.call = std::make_shared<ServerCall>(loop_, connection_, stream_id, stream.request.TakePath(),
                                             stream.request.TakeMessage(), stream.request.TakeCharge(), refusal);
  return stream.call;
}

bool Calls::Proceed() {
  const bool reported = ReportWritten();
  return BeginReady() || reported;
}

// A client that does not read its responses gets no new ones.
bool Calls::BeginReady() {
  bool some = false;
  while (backlog_.bytes() <= options_.limits.unread_bytes_max) {
    const std::optional<int32_t> stream_id = ready_.Take();
    if (!stream_id.has_value()) {
      break;
    }
    if (Stream* const stream = FindOpen(*stream_id); stream != nullptr) {
      ready_.CountBegun(stream->request.message_bytes());
      some = true;
      options_.handler(MakeCall(*stream_id, *stream, std::nullopt));
    }
  }
  return some;
}

bool Calls::ReportWritten() {
  bool some = false;
  for (const int32_t stream_id : std::exchange(written_, {})) {
    const Stream* const stream = Find(stream_id);
    if (stream != nullptr && stream->call != nullptr && stream->call->on_written_ != nullptr) {
      some = true;
      const std::shared_ptr<ServerCall> call = stream->call;
      // A copy: the call may end inside.
      const std::function<void()> on_written = call->on_written_;
      on_written();
    }
  }
  return some;
}

void Calls::OnDeadline(int32_t stream_id) {
  Stream* const stream = FindOpen(stream_id);
  if (stream == nullptr) {
    return;
  }
  const std::shared_ptr<ServerCall> call = std::exchange(stream->call, nullptr);
  constexpr int kDeadlineExceeded = 4;
  Finish(stream_id, {.code = kDeadlineExceeded, .message = "the call's deadline has passed"}, std::nullopt);
  if (call != nullptr) {
    call->End(/*cancelled=*/true);
  }
}

void Calls::CallLater(int32_t stream_id, std::chrono::nanoseconds delay, std::function<void()> task) {
  Stream* const stream = Find(stream_id);
  if (stream == nullptr || http2_.announced()) {
    task();
    return;
  }
  stream->later = std::move(task);
  stream->later_timer = CallAt(loop_->Now() + delay, [this, stream_id] { RunLater(stream_id); });
}

void Calls::RunLater(int32_t stream_id) {
  Stream* const stream = Find(stream_id);
  if (stream != nullptr && stream->later != nullptr) {
    loop_->CancelTimer(stream->later_timer);
    // The stream may end inside.
    const std::function<void()> task = std::exchange(stream->later, nullptr);
    task();
  }
}

void Calls::RunAllLater() {
  std::vector<int32_t> waiting;
  for (const auto& [stream_id, stream] : streams_) {
    waiting.push_back(stream_id);
  }
  for (const int32_t stream_id : waiting) {
    RunLater(stream_id);
  }
}

// --- responses ---

void Calls::SendHeaders(int32_t stream_id, Stream& stream) {
  if (stream.response.BeginHeaders()) {
    http2_.Respond(stream_id, ResponseHeaders(), true);
  }
}

void Calls::Begin(int32_t stream_id) {
  if (Stream* const stream = FindOpen(stream_id); stream != nullptr) {
    SendHeaders(stream_id, *stream);
  }
}

void Calls::Write(int32_t stream_id, const std::string& message) {
  Stream* const stream = FindOpen(stream_id);
  if (stream == nullptr) {
    return;
  }
  http2_.ForgetFrames();
  SendHeaders(stream_id, *stream);
  backlog_.Add(stream->response.Write(message, *options_.budget));
  http2_.Resume(stream_id);
}

void Calls::Finish(int32_t stream_id, Status status, const std::optional<std::string>& message) {
  Stream* const stream = FindOpen(stream_id);
  if (stream == nullptr) {
    return;
  }
  http2_.ForgetFrames();
  stream->request.DropMessage();  // The response may wait for long until the stream ends.
  const bool has_message = status.code == 0 && message.has_value();
  stream->response.End(std::move(status));
  if (const auto call = std::exchange(stream->call, nullptr); call != nullptr) {
    call->End(/*cancelled=*/false);
  }
  loop_->CancelTimer(std::exchange(stream->deadline, {}));
  if (!has_message && !stream->response.has_headers()) {
    http2_.Respond(stream_id, TrailersOnly(stream->response.status()), false);
    return;
  }
  if (has_message) {
    backlog_.Add(stream->response.Add(*message, *options_.budget));
  }
  SendHeaders(stream_id, *stream);
  http2_.Resume(stream_id);
}

Calls::Output Calls::OnOutputWanted(int32_t stream_id, char* buffer, size_t size) {
  Stream* const stream = Find(stream_id);
  if (stream == nullptr) {
    return {};
  }
  OutgoingResponse& response = stream->response;
  const size_t bytes = response.Move(buffer, size);
  backlog_.Take(bytes);
  if (bytes != 0) {
    http2_.ForgetFrames();  // A client with a small window sends many updates for one response.
  }
  if (response.TakeWritten()) {
    written_.push_back(stream_id);
  }
  const bool ends = response.ended() && response.waiting_bytes() == 0;
  if (ends) {
    const Status& status = response.status();
    http2_.SendTrailers(stream_id, status.code == 0 ? SuccessTrailers() : TrailersOf(status));
  }
  return {.bytes = bytes, .ended = ends};
}

// The client may stop sending the rest of a request that has its answer. It is told so only when the rest does not come
// by itself: curl 7.88 drops an answer that a reset follows at once.
void Calls::OnResponseSent(int32_t stream_id) {
  Stream* const stream = Find(stream_id);
  if (stream == nullptr || stream->request.ended()) {
    return;
  }
  loop_->CancelTimer(stream->deadline);
  stream->deadline = CallAt(loop_->Now() + options_.limits.rest_timeout,
                            [this, stream_id] { http2_.Reset(stream_id, NGHTTP2_NO_ERROR); });
}

// A stream that is idle does not count: nothing ends it, and its last message was sent.
bool Calls::HasPendingResponse() const {
  return std::any_of(streams_.begin(), streams_.end(), [](const auto& entry) {
    const OutgoingResponse& response = entry.second.response;
    const bool is_idle = response.has_headers() && !response.ended() && response.waiting_bytes() == 0;
    return entry.second.request.ended() && !is_idle;
  });
}

}  // namespace rnicd::rpc
