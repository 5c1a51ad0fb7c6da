#include "daemon/rpc/connection.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/secrets/wipe.h"

namespace rnicd::rpc {
namespace {

// Longest period of the search for what takes too long, while there is something that could.
constexpr std::chrono::milliseconds kCheckPeriodMax{1000};
// Frames that may wait for a client that does not read; above it nothing is read from it either.
constexpr size_t kWaitingFramesMax = 1024;

}  // namespace

Connection::Connection(std::shared_ptr<EventLoop> loop, std::shared_ptr<const UniqueSocket> socket, Options options)
    : loop_(std::move(loop)), options_(std::move(options)), socket_(*loop_, std::move(socket)), opened_(loop_->Now()) {}

// --- opening and ending ---

void Connection::Open() {
  calls_ = std::make_unique<Calls>(loop_, weak_from_this(), options_.calls);
  loop_->Post([self = shared_from_this()] {
    if (self->socket_.Open([self](uint32_t events) { self->OnReady(events); })) {
      self->ScheduleCheck();
      self->Flush();
    } else {
      self->End();
    }
  });
}

void Connection::Close() {
  loop_->Post([self = shared_from_this()] { self->BeginClose(); });
}

void Connection::BeginClose() {
  if (ended_ || calls_->http2().announced()) {
    return;
  }
  // The calls that the client makes before it knows are served.
  calls_->http2().AnnounceGoAway();
  close_timer_ =
      loop_->CallAt(loop_->Now() + options_.calls.limits.last_words, [self = shared_from_this()] { self->End(); });
  Run([](Calls& calls) { calls.RunAllLater(); });
}

// Nobody reads the rest of what a broken or a closing connection was sent.
bool Connection::IsOver() const {
  const Http2Session& http2 = calls_->http2();
  return http2.finished() || socket_.failed() ||
         (!socket_.blocked() && (http2.broken() || (http2.closing() && !calls_->HasPendingResponse())));
}

void Connection::End() {
  if (std::exchange(ended_, true)) {
    return;
  }
  const std::shared_ptr<Connection> self = shared_from_this();
  loop_->CancelTimer(check_);
  loop_->CancelTimer(close_timer_);
  // The front door has the socket and this object too, and may keep both for a moment, but not what they take.
  socket_.Close();
  calls_->Close();
  options_.on_end(*this);
}

// --- reading ---

void Connection::OnReady(uint32_t events) {
  if (ended_) {
    return;
  }
  calls_->ready().BeginTurn();
  busy_ = true;
  const bool alive = (events & (kReadable | kHungUp | kFailed)) == 0 || ReadOnce();
  busy_ = false;
  if (alive) {
    Flush();
  } else {
    End();
  }
}

bool Connection::ReadOnce() {
  if (calls_->http2().broken()) {
    return false;
  }
  static thread_local std::array<char, kBytesAtOnce> buffer;
  const int64_t size = socket_.Read(buffer, options_.refuses_descriptors);
  if (size <= 0) {
    return size == kTryLater;
  }
  calls_->http2().Receive({buffer.data(), static_cast<size_t>(size)}, loop_->Now());
  Wipe(buffer.data(), static_cast<size_t>(size));  // The secret of a grant may be among them.
  ScheduleCheck();                                 // A request may have begun.
  return true;
}

void Connection::Run(absl::FunctionRef<void(Calls&)> change) {
  const bool was_busy = std::exchange(busy_, true);
  change(*calls_);
  busy_ = was_busy;
  if (!busy_) {
    Flush();
  }
}

// --- writing ---

void Connection::Flush() {
  if (ended_) {
    return;
  }
  const std::shared_ptr<Connection> self = shared_from_this();
  busy_ = true;
  bool writable = !socket_.blocked() || OnSent(socket_.SendKept());
  while (writable) {
    std::string& output = Gather();
    if (!output.empty()) {
      writable = OnSent(socket_.Send(output));
      // The secret of a new grant may be in it.
      Wipe(output.data(), output.size());
      continue;
    }
    const bool some = calls_->Proceed();
    PostNextTurn();
    if (!some) {
      break;
    }
  }
  busy_ = false;
  if (IsOver()) {
    End();
    return;
  }
  if (calls_->backlog().waits()) {
    ScheduleCheck();
  }
  UpdateInterest();
}

std::string& Connection::Gather() {
  static thread_local std::string output;
  output.clear();
  while (output.size() < kBytesAtOnce) {
    const std::string_view bytes = calls_->http2().NextOutput();
    if (bytes.empty()) {
      break;
    }
    output.append(bytes);
  }
  return output;
}

bool Connection::OnSent(bool some) {
  if (some) {
    calls_->backlog().OnSent();
  }
  calls_->backlog().SetBlocked(socket_.blocked());
  return !socket_.blocked() && !socket_.failed();
}

void Connection::PostNextTurn() {
  const ReadyCalls& ready = calls_->ready();
  if (!ready.empty() && ready.TurnIsOver() && !std::exchange(next_turn_posted_, true)) {
    loop_->Post([self = shared_from_this()] {
      self->next_turn_posted_ = false;
      self->OnReady(0);
    });
  }
}

// A client that does not read waits with its requests once one of them waits here. Only while the socket is full: one
// that reads may have to send a window update before more can be sent.
void Connection::UpdateInterest() {
  socket_.WaitFor(!socket_.blocked() ||
                  (calls_->http2().waiting_frames() <= kWaitingFramesMax && calls_->ready().empty()));
}

// --- what takes too long ---

void Connection::ScheduleCheck() {
  if (check_.key == 0 && !ended_) {
    const Limits& limits = options_.calls.limits;
    const std::chrono::milliseconds period =
        std::min({kCheckPeriodMax, limits.request_timeout, limits.greeting_timeout, limits.unread_timeout});
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
  const Limits& limits = options_.calls.limits;
  const bool is_silent = !calls_->http2().greeted() && now - opened_ > limits.greeting_timeout;
  if (calls_->backlog().IsStuck(now, limits.unread_timeout) || is_silent) {
    End();
    return;
  }
  bool some_incomplete = false;
  Run([&](Calls& calls) { some_incomplete = calls.RefuseLate(); });
  if (some_incomplete || !calls_->http2().greeted()) {
    ScheduleCheck();
  }
}

}  // namespace rnicd::rpc
