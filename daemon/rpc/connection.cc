#include "daemon/rpc/connection.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/wipe.h"
#include "daemon/rpc/bearer.h"
#include "daemon/rpc/socket_io.h"

namespace rnicd::rpc {
namespace {

// Calls that begin before others have their turn, and bytes of messages: the last may pass it.
constexpr size_t kCallsAtOnce = 64;
constexpr size_t kMessageBytesAtOnce = 64 << 10;
// What an open call costs besides its message: our record of it and nghttp2's.
constexpr uint64_t kStreamBytes = 2048;
// Longest period of the search for what takes too long, while there is something that could.
constexpr std::chrono::milliseconds kCheckPeriodMax{1000};
// Period for which Limits::idle_frames_max and given_up_max count.
constexpr std::chrono::seconds kIdlePeriod{10};

}  // namespace

Connection::Connection(std::shared_ptr<EventLoop> loop, std::shared_ptr<const UniqueSocket> socket, Options options)
    : loop_(std::move(loop)),
      socket_(std::move(socket)),
      options_(std::move(options)),
      http2_(*this, options_.limits),
      opened_(loop_->Now()),
      idle_since_(opened_) {}

// --- opening and ending ---

void Connection::Open() {
  loop_->Post([self = shared_from_this()] {
    self->interest_ = kReadable;
    self->watch_ =
        self->loop_->Watch(self->socket_->get(), self->interest_, [self](uint32_t events) { self->OnReady(events); });
    if (self->watch_ == 0) {
      self->End();
      return;
    }
    self->ScheduleCheck();
    self->Flush();
  });
}

void Connection::Close() {
  loop_->Post([self = shared_from_this()] { self->BeginClose(); });
}

void Connection::BeginClose() {
  if (ended_ || std::exchange(announced_, true)) {
    return;
  }
  // The calls that the client makes before it knows are served.
  http2_.AnnounceGoAway();
  RunAllLater();
  close_timer_ = loop_->CallAt(loop_->Now() + options_.limits.last_words, [self = shared_from_this()] { self->End(); });
  Flush();
}

void Connection::GoAway() {
  closing_ = true;
  http2_.GoAway();
}

// Nobody reads the rest of what a broken or a closing connection was sent.
void Connection::End() {
  if (std::exchange(ended_, true)) {
    return;
  }
  const std::shared_ptr<Connection> self = shared_from_this();
  loop_->Forget(watch_);
  loop_->CancelTimer(check_);
  loop_->CancelTimer(close_timer_);
  // The front door has the socket too, and may keep it for a moment.
  ShutDownSocket(socket_->get());
  socket_.reset();
  while (!streams_.empty()) {
    OnStreamClosed(streams_.begin()->first);
  }
  // The front door may keep this object for a moment, but not what it takes.
  http2_.Free();
  options_.on_end(*this);
}

// --- reading ---

void Connection::OnReady(uint32_t events) {
  if (ended_) {
    return;
  }
  busy_ = true;
  begun_ = 0;
  begun_bytes_ = 0;
  const bool alive = (events & (kReadable | kHungUp | kFailed)) == 0 || ReadOnce();
  busy_ = false;
  if (alive) {
    Flush();
  } else {
    End();
  }
}

bool Connection::ReadOnce() {
  if (broken_) {
    return false;
  }
  static thread_local std::array<char, kBytesAtOnce> buffer;
  const int64_t size = ReadSocket(socket_->get(), buffer, options_.refuses_descriptors);
  if (size <= 0) {
    return size == kTryLater;
  }
  if (!http2_.Receive({buffer.data(), static_cast<size_t>(size)})) {
    broken_ = true;
  }
  // The secret of a grant may be among them.
  Wipe(buffer.data(), static_cast<size_t>(size));
  return true;
}

Connection::Stream* Connection::Find(int32_t stream_id) {
  const auto found = streams_.find(stream_id);
  return found == streams_.end() ? nullptr : &found->second;
}

bool Connection::OnRequestBegins(int32_t stream_id) {
  // nghttp2 refuses streams above the limit too, but only once the client has acknowledged our settings.
  std::optional<BudgetCharge> charge;
  if (!closing_ && streams_.size() < options_.limits.calls_max) {
    charge = options_.budget->Take(kStreamBytes);
  }
  if (!charge.has_value()) {
    OnIdleFrame();  // It costs a reset, and no call.
    return false;
  }
  Stream& stream = streams_[stream_id];
  stream.began = loop_->Now();
  stream.charge = *std::move(charge);
  ScheduleCheck();
  return true;
}

bool Connection::OnHeader(int32_t stream_id, std::string_view name, std::string_view value) {
  Stream* const stream = Find(stream_id);
  if (stream == nullptr) {
    return true;
  }
  if (options_.secret.has_value() && name == kSecretHeader) {
    stream->proven = IsBearerOf(*options_.secret, value);
  }
  return stream->headers.Add(name, value, options_.limits);
}

void Connection::OnHeadersEnd(int32_t stream_id) {
  Stream* const stream = Find(stream_id);
  if (stream == nullptr) {
    return;
  }
  if (const std::optional<int> http_status = stream->headers.NotGrpc(); http_status.has_value()) {
    stream->answered = true;
    http2_.Respond(stream_id, {{":status", absl::StrCat(*http_status)}}, false);
  } else if (options_.secret.has_value() && !stream->proven) {
    Refuse(stream_id, Refusal::kSecretMissing, 0);
  } else if (stream->headers.has_timeout() && !stream->headers.timeout().has_value()) {
    Refuse(stream_id, Refusal::kTimeoutMalformed, 0);
  } else {
    StartDeadline(stream_id, *stream);
  }
}

// The bytes count as read at once: what is kept of them was charged, and the rest is dropped.
void Connection::OnData(int32_t stream_id, std::string_view bytes) {
  http2_.Consume(stream_id, bytes.size());
  Stream* const stream = Find(stream_id);
  while (stream != nullptr && !stream->answered && stream->call == nullptr && !bytes.empty()) {
    switch (stream->reader.Add(bytes)) {
      case MessageReader::Event::kNone:
        break;
      case MessageReader::Event::kLength:
        AcceptLength(stream_id, *stream);
        break;
      case MessageReader::Event::kCompressed:
        Refuse(stream_id, Refusal::kCompressed, 0);
        break;
      case MessageReader::Event::kSecond:
        Refuse(stream_id, Refusal::kMessageCount, 0);
        break;
    }
  }
}

void Connection::AcceptLength(int32_t stream_id, Stream& stream) {
  const uint32_t length = stream.reader.length();
  if (length > options_.limits.message_bytes_max) {
    Refuse(stream_id, Refusal::kMessageTooLarge, length);
  } else if (!stream.charge.Grow(length)) {
    Refuse(stream_id, Refusal::kOverBudget, length);
  } else {
    stream.reader.Accept();
  }
}

void Connection::OnRequestEnds(int32_t stream_id) {
  Stream* const stream = Find(stream_id);
  if (stream == nullptr) {
    return;
  }
  stream->complete = true;
  if (stream->answered || stream->call != nullptr) {
    return;
  }
  if (stream->reader.complete()) {
    ready_.insert(stream_id);
  } else {
    Refuse(stream_id, Refusal::kMessageCount, 0);
  }
}

void Connection::Refuse(int32_t stream_id, Refusal refusal, uint64_t bytes) {
  Stream* const stream = Find(stream_id);
  if (stream != nullptr && !stream->answered && stream->call == nullptr) {
    stream->reader = MessageReader();
    options_.handler->OnRefused(MakeCall(stream_id, *stream), refusal, bytes);
  }
}

// The client may stop sending the rest of a request that has its answer. It is told so only when the rest does not come
// by itself: curl 7.88 drops an answer that a reset follows at once.
void Connection::OnResponseEnded(int32_t stream_id) {
  Stream* const stream = Find(stream_id);
  if (stream == nullptr || stream->complete) {
    return;
  }
  loop_->CancelTimer(stream->deadline);
  stream->deadline = loop_->CallAt(loop_->Now() + options_.limits.rest_timeout, [weak = weak_from_this(), stream_id] {
    if (const std::shared_ptr<Connection> self = weak.lock(); self != nullptr) {
      self->http2_.Reset(stream_id, NGHTTP2_NO_ERROR);
      self->Flush();
    }
  });
}

void Connection::OnStreamClosed(int32_t stream_id) {
  const auto closed = streams_.extract(stream_id);
  if (closed.empty()) {
    return;
  }
  const Stream& stream = closed.mapped();
  ready_.erase(stream_id);
  unread_bytes_ -= stream.output.size() - stream.output_sent;
  loop_->CancelTimer(stream.deadline);
  loop_->CancelTimer(stream.later_timer);
  if (stream.call != nullptr) {
    stream.call->End(/*cancelled=*/true);
  }
}

void Connection::OnPingAcknowledged() {
  if (announced_ && !closing_) {
    GoAway();
  } else {
    OnIdleFrame();
  }
}

void Connection::OnIdleFrame() {
  ForgetOldFrames();
  if (++idle_frames_ > options_.limits.idle_frames_max) {
    SendAway("too_many_pings");
  }
}

void Connection::OnGivenUp(uint32_t frames) {
  ForgetOldFrames();
  given_up_ += frames;
  if (given_up_ > options_.limits.given_up_max) {
    SendAway("too_many_resets");
  }
}

void Connection::ForgetOldFrames() {
  const Instant now = loop_->Now();
  if (now - idle_since_ > kIdlePeriod) {
    idle_since_ = now;
    OnProgress();
  }
}

void Connection::OnProgress() {
  idle_frames_ = 0;
  given_up_ = 0;
}

void Connection::SendAway(std::string_view reason) {
  if (!std::exchange(broken_, true)) {
    http2_.Farewell(NGHTTP2_ENHANCE_YOUR_CALM, reason);
  }
}

// --- calls ---

void Connection::StartDeadline(int32_t stream_id, Stream& stream) {
  if (stream.headers.has_timeout()) {
    stream.deadline = loop_->CallAt(stream.began + *stream.headers.timeout(), [weak = weak_from_this(), stream_id] {
      const std::shared_ptr<Connection> self = weak.lock();
      Stream* const late = self == nullptr ? nullptr : self->Find(stream_id);
      if (late == nullptr || late->answered) {
        return;
      }
      const std::shared_ptr<ServerCall> call = std::exchange(late->call, nullptr);
      constexpr int kDeadlineExceeded = 4;
      self->FinishCall(stream_id, {.code = kDeadlineExceeded, .message = "the call's deadline has passed"},
                       std::nullopt);
      if (call != nullptr) {
        call->End(/*cancelled=*/true);
      }
    });
  }
}

bool Connection::TurnIsOver() const { return begun_ >= kCallsAtOnce || begun_bytes_ >= kMessageBytesAtOnce; }

// A client that does not read its responses gets no new ones.
bool Connection::DispatchReady() {
  bool some = false;
  while (!ready_.empty() && !TurnIsOver() && unread_bytes_ <= options_.limits.unread_bytes_max) {
    const int32_t stream_id = *ready_.begin();
    ready_.erase(ready_.begin());
    Stream* const stream = Find(stream_id);
    if (stream != nullptr && !stream->answered) {
      ++begun_;
      begun_bytes_ += stream->reader.length();
      some = true;
      options_.handler->OnCall(MakeCall(stream_id, *stream));
    }
  }
  if (!ready_.empty() && TurnIsOver() && !std::exchange(dispatch_posted_, true)) {
    loop_->Post([self = shared_from_this()] {
      self->dispatch_posted_ = false;
      self->OnReady(0);
    });
  }
  return some;
}

std::shared_ptr<ServerCall> Connection::MakeCall(int32_t stream_id, Stream& stream) {
  stream.call = std::make_shared<ServerCall>(loop_, weak_from_this(), stream_id, stream.headers.TakePath(),
                                             stream.reader.TakeMessage(), std::move(stream.charge));
  return stream.call;
}

void Connection::CallLater(int32_t stream_id, std::chrono::nanoseconds delay, std::function<void()> task) {
  Stream* const stream = Find(stream_id);
  if (stream == nullptr || announced_) {
    task();
    return;
  }
  stream->later = std::move(task);
  stream->later_timer = loop_->CallAt(loop_->Now() + delay, [weak = weak_from_this(), stream_id] {
    if (const std::shared_ptr<Connection> self = weak.lock(); self != nullptr) {
      self->RunLater(stream_id);
    }
  });
}

void Connection::RunLater(int32_t stream_id) {
  Stream* const stream = Find(stream_id);
  if (stream != nullptr && stream->later != nullptr) {
    loop_->CancelTimer(stream->later_timer);
    // The stream may end inside.
    const std::function<void()> task = std::exchange(stream->later, nullptr);
    task();
  }
}

void Connection::RunAllLater() {
  std::vector<int32_t> waiting;
  for (const auto& [stream_id, stream] : streams_) {
    waiting.push_back(stream_id);
  }
  busy_ = true;
  for (const int32_t stream_id : waiting) {
    RunLater(stream_id);
  }
  busy_ = false;
}

// True while a response is on its way or a call may still get one. A stream that has nothing to say now does not count:
// it has no end of its own, and what it had to say about this end it has said.
bool Connection::HasLastWords() const {
  const auto is_idle = [](const Stream& stream) {
    return !stream.complete || (stream.headers_sent && !stream.answered && stream.output.empty());
  };
  return !pending_.empty() ||
         !std::all_of(streams_.begin(), streams_.end(), [&](const auto& entry) { return is_idle(entry.second); });
}

// --- what takes too long ---

void Connection::ScheduleCheck() {
  if (check_.key == 0 && !ended_) {
    const std::chrono::milliseconds period =
        std::min({kCheckPeriodMax, options_.limits.request_timeout, options_.limits.greeting_timeout,
                  options_.limits.unread_timeout});
    check_ = loop_->CallAt(loop_->Now() + period, [weak = weak_from_this()] {
      if (const std::shared_ptr<Connection> self = weak.lock(); self != nullptr) {
        self->check_ = {};
        self->CheckTimeouts();
      }
    });
  }
}

void Connection::CheckTimeouts() {
  const Instant now = loop_->Now();
  if (std::exchange(progressed_, false)) {
    progress_ = now;
  }
  const bool is_silent = !greeted_ && now - opened_ > options_.limits.greeting_timeout;
  const bool is_stuck = HasUnread() && now - progress_ > options_.limits.unread_timeout;
  if (is_silent || is_stuck) {
    End();
    return;
  }
  std::vector<int32_t> late;
  bool some_incomplete = false;
  for (const auto& [stream_id, stream] : streams_) {
    if (!stream.complete && !stream.answered && stream.call == nullptr) {
      some_incomplete = true;
      if (now - stream.began > options_.limits.request_timeout) {
        late.push_back(stream_id);
      }
    }
  }
  for (const int32_t stream_id : late) {
    Refuse(stream_id, Refusal::kIncomplete, 0);
  }
  if (some_incomplete || !greeted_) {
    ScheduleCheck();
  }
  Flush();
}

}  // namespace rnicd::rpc
