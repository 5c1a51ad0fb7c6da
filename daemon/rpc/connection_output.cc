#include "daemon/rpc/connection.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/wipe.h"
#include "daemon/rpc/socket_io.h"

namespace rnicd::rpc {
namespace {

// Frames that may wait for a client that does not read; above it nothing is read from it either.
constexpr size_t kWaitingFramesMax = 1024;

const std::vector<HeaderField>& ResponseHeaders() {
  static const auto* const headers =
      new std::vector<HeaderField>{{":status", "200"}, {"content-type", "application/grpc"}};
  return *headers;
}

}  // namespace

// --- answers ---

void Connection::SendHeaders(int32_t stream_id, Stream& stream) {
  if (!std::exchange(stream.headers_sent, true)) {
    http2_.Respond(stream_id, ResponseHeaders(), true);
  }
}

void Connection::SendTrailers(int32_t stream_id, const Status& status) {
  static const auto* const success = new std::vector<HeaderField>(TrailersOf({}));
  http2_.SendTrailers(stream_id, status.code == 0 ? *success : TrailersOf(status));
}

void Connection::AddOutput(Stream& stream, const std::string& message) {
  progressed_ = progressed_ || !HasUnread();
  const std::string prefix = PrefixOf(message.size());
  stream.output.append(prefix).append(message);
  unread_bytes_ += prefix.size() + message.size();
  stream.output_charge = options_.budget->TakeAnyway(stream.output.size());
}

void Connection::BeginStream(int32_t stream_id) {
  Stream* const stream = Find(stream_id);
  if (stream != nullptr && !stream->answered) {
    SendHeaders(stream_id, *stream);
    FlushIfIdle();
  }
}

void Connection::WriteMessage(int32_t stream_id, const std::string& message) {
  Stream* const stream = Find(stream_id);
  if (stream == nullptr || stream->answered) {
    return;
  }
  OnProgress();
  SendHeaders(stream_id, *stream);
  AddOutput(*stream, message);
  stream->tells_written = true;
  http2_.Resume(stream_id);
  FlushIfIdle();
}

void Connection::FinishCall(int32_t stream_id, Status status, const std::optional<std::string>& message) {
  Stream* const stream = Find(stream_id);
  if (stream == nullptr || stream->answered) {
    return;
  }
  OnProgress();
  stream->answered = true;
  stream->reader = MessageReader();  // The response may wait for long until the stream ends.
  if (const auto call = std::exchange(stream->call, nullptr); call != nullptr) {
    call->End(/*cancelled=*/false);
  }
  loop_->CancelTimer(std::exchange(stream->deadline, {}));
  const bool has_message = status.code == 0 && message.has_value();
  if (!has_message && !stream->headers_sent) {
    std::vector<HeaderField> headers = ResponseHeaders();
    for (HeaderField& trailer : TrailersOf(status)) {
      headers.push_back(std::move(trailer));
    }
    http2_.Respond(stream_id, headers, false);
  } else {
    stream->status = std::move(status);
    if (has_message) {
      AddOutput(*stream, *message);
    }
    SendHeaders(stream_id, *stream);
    http2_.Resume(stream_id);
  }
  FlushIfIdle();
}

// --- writing ---

Output Connection::OnOutputWanted(int32_t stream_id, char* buffer, size_t size) {
  Stream* const stream = Find(stream_id);
  if (stream == nullptr) {
    return {};
  }
  const size_t bytes = std::min(size, stream->output.size() - stream->output_sent);
  std::copy_n(stream->output.data() + stream->output_sent, bytes, buffer);
  stream->output_sent += bytes;
  unread_bytes_ -= bytes;
  if (bytes != 0) {
    progressed_ = true;
    OnProgress();  // A client with a small window sends many updates for one response.
  }
  const bool all_sent = stream->output_sent == stream->output.size();
  if (all_sent) {
    std::string().swap(stream->output);
    stream->output_sent = 0;
    stream->output_charge.Return();
    if (std::exchange(stream->tells_written, false)) {
      drained_.push_back(stream_id);
    }
    if (stream->answered) {
      SendTrailers(stream_id, stream->status);
    }
  }
  return {.bytes = bytes, .ended = all_sent && stream->answered};
}

void Connection::FlushIfIdle() {
  if (!busy_) {
    Flush();
  }
}

void Connection::Flush() {
  if (ended_) {
    return;
  }
  const std::shared_ptr<Connection> self = shared_from_this();
  busy_ = true;
  bool writable = pending_.empty() || Send(std::exchange(pending_, {}));
  while (writable) {
    std::string& output = Gather();
    if (!output.empty()) {
      writable = Send(output);
      // The secret of a new grant may be in it.
      Wipe(output.data(), output.size());
      continue;
    }
    const bool told = TellWritten();
    const bool begun = DispatchReady();
    if (!told && !begun) {
      break;
    }
  }
  busy_ = false;
  if (http2_.finished() || (broken_ && pending_.empty()) || (closing_ && !HasLastWords())) {
    End();
  } else {
    if (HasUnread()) {
      ScheduleCheck();
    }
    UpdateInterest();
  }
}

std::string& Connection::Gather() {
  static thread_local std::string output;
  output.clear();
  while (output.size() < kBytesAtOnce) {
    const std::string_view bytes = http2_.NextOutput();
    if (bytes.empty()) {
      break;
    }
    output.append(bytes);
  }
  return output;
}

bool Connection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const int64_t sent = SendSocket(socket_->get(), bytes);
    if (sent >= 0) {
      // While a response waits for the client's window, what else is sent is no progress of it.
      progressed_ = progressed_ || unread_bytes_ == 0;
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (sent == kTryLater) {
      pending_ = bytes;
      return false;
    } else {
      broken_ = true;  // The client has gone, and with it what waits for it.
      return false;
    }
  }
  return true;
}

bool Connection::TellWritten() {
  bool some = false;
  for (const int32_t stream_id : std::exchange(drained_, {})) {
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

void Connection::UpdateInterest() {
  const bool blocked = !pending_.empty();
  // A client that does not read waits with its requests once one of them waits here. Only while the socket is full: one
  // that reads may have to send a window update before more can be sent.
  const bool reads = !blocked || (http2_.waiting_frames() <= kWaitingFramesMax && ready_.empty());
  const uint32_t interest = (reads ? kReadable : 0U) | (blocked ? kWritable : 0U);
  if (interest != interest_) {
    interest_ = interest;
    loop_->Change(watch_, interest_);
  }
}

}  // namespace rnicd::rpc
