// Bytes and frames of HTTP/2 to daemon/rpc on three connections, whose handler answers at once, later, in several
// messages, with an error, or never. For every input: each call that began ends once or is cancelled, every connection
// ends when its client leaves, and nothing stays charged.
//
// Input: steps; each is a byte that selects the connection (low two bits) and the kind of step, then its arguments. A
// connection begins with a good preface unless its first step is kind f.
//   0x  a whole request: a byte for the handler (see Answer), a byte of length, and so many bytes of message
//   1x  HEADERS of a request without its end       5x  WINDOW_UPDATE: stream, increment
//   2x  DATA: stream, flags, length, bytes         6x  SETTINGS: count, ids and values
//   3x  RST_STREAM: stream                         7x  any frame: type, flags, stream, length, bytes
//   4x  PING                                       8x  the handler answers the oldest call that waits
//   9x to fx  bytes as they are: length, bytes

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "base/system/unique_socket.h"
#include "daemon/rpc/server.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/input.h"

namespace rnicd::fuzz {
namespace {

constexpr size_t kStepsMax = 64;
constexpr size_t kConnections = 3;
constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Answers calls by the first byte of their message, and counts how they end.
// Threads: safe.
class Answers {
 public:
  void OnCall(const std::shared_ptr<rpc::ServerCall>& call) {
    if (const auto& refusal = call->refusal(); refusal.has_value()) {
      return call->Finish({.code = 13, .message = std::to_string(refusal->reason)});
    }
    MutexLock lock(mutex_);
    ++begun_;
    call->SetOnCancel([this] {
      MutexLock cancelled(mutex_);
      ++ended_;
    });
    switch (call->message().empty() ? 0 : call->message().front() % 5) {
      case 0:
        ++ended_;
        return call->Finish({}, call->message());
      case 1:
        ++ended_;
        return call->Finish({.code = 3, .message = call->message(), .details = call->message()});
      case 2:
        call->Begin();
        call->Write(call->message());
        ++ended_;
        return call->Finish({});
      case 3:
        waiting_.push_back(call);
        return;
      default:
        return;  // Only the client's leaving ends it.
    }
  }

  // From this thread, which is not the connection's. The call may have been cancelled, so it is not counted.
  void AnswerOldest() {
    std::shared_ptr<rpc::ServerCall> call;
    {
      MutexLock lock(mutex_);
      if (waiting_.empty()) {
        return;
      }
      call = std::move(waiting_.front());
      waiting_.pop_front();
    }
    call->Finish({}, "late");
  }
  void Forget() {
    MutexLock lock(mutex_);
    waiting_.clear();
  }
  void CheckEnds() const {
    MutexLock lock(mutex_);
    Check(ended_ <= begun_, "a call ends once");
  }

 private:
  mutable Mutex mutex_;
  size_t begun_ RNICD_GUARDED_BY(mutex_) = 0;
  size_t ended_ RNICD_GUARDED_BY(mutex_) = 0;
  std::deque<std::shared_ptr<rpc::ServerCall>> waiting_ RNICD_GUARDED_BY(mutex_);
};

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string frame;
  for (const unsigned shift : {16U, 8U, 0U}) {
    frame.push_back(static_cast<char>(payload.size() >> shift));
  }
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    frame.push_back(static_cast<char>(stream >> shift));
  }
  return frame.append(payload);
}

// A header field in HPACK's literal form, without indexing and without Huffman's code.
std::string Literal(std::string_view name, std::string_view value) {
  std::string field(1, '\0');
  for (const std::string_view text : {name, value}) {
    field.push_back(static_cast<char>(text.size()));
    field.append(text);
  }
  return field;
}

std::string RequestHeaders() {
  return Literal(":method", "POST") + Literal(":scheme", "http") + Literal(":authority", "l") +
         Literal(":path", "/a/B") + Literal("te", "trailers") + Literal("content-type", "application/grpc") +
         Literal("grpc-timeout", "10S");
}

// A client's end of one connection.
class Client {
 public:
  Client(rpc::Server& server, const std::shared_ptr<Answers>& answers) {
    std::array<int, 2> ends{};
    Check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0, "there is a socket");
    socket_.Reset(ends[0]);
    server.Serve({.socket = std::make_shared<const UniqueSocket>(ends[1]), .owner = "fuzz"},
                 [answers](const std::shared_ptr<rpc::ServerCall>& call) { answers->OnCall(call); });
  }

  void Send(std::string_view bytes, bool raw = false) {
    if (!greeted_ && !raw) {
      Write(std::string(kPreface) + Frame(4, 0, 0, {}) + Frame(4, 1, 0, {}));
    }
    greeted_ = true;
    Write(bytes);
  }
  void Request(std::string_view message) {
    const uint32_t stream = next_stream_;
    next_stream_ += 2;
    std::string data(4, '\0');
    data.push_back(static_cast<char>(message.size()));
    Send(Frame(1, 4, stream, RequestHeaders()) + Frame(0, 1, stream, data.append(message)));
  }
  void HalfRequest() {
    Send(Frame(1, 4, next_stream_, RequestHeaders()));
    next_stream_ += 2;
  }

 private:
  void Write(std::string_view bytes) {
    // What the daemon does not read is lost, and what it writes is not read: both are its problem.
    static_cast<void>(!send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }

  UniqueFd socket_;
  bool greeted_ = false;
  uint32_t next_stream_ = 1;
};

class Frames {
 public:
  explicit Frames(rpc::Server& server) : server_(server) {}

  void Run(Input& input) {
    for (size_t step = 0; step < kStepsMax && !input.empty(); ++step) {
      Step(input);
    }
    for (auto& client : clients_) {
      client.reset();
    }
    // Calls may still begin, on the connection's thread, which this thread is ahead of.
    while (server_.connections() > 0 || server_.used_bytes() > 0) {
      answers_->Forget();
      usleep(20);
    }
    answers_->CheckEnds();
  }

 private:
  void Step(Input& input) {
    const uint8_t kind = input.Byte();
    std::unique_ptr<Client>& client = clients_[(kind & 3U) % kConnections];
    if (client == nullptr) {
      client = std::make_unique<Client>(server_, answers_);
    }
    switch (kind >> 4U) {
      case 0x0:
        return client->Request(input.Text(input.Below(128)));
      case 0x1:
        return client->HalfRequest();
      case 0x2: {
        const uint8_t stream = input.Byte();
        const uint8_t flags = input.Byte();
        return client->Send(Frame(0, flags, stream, input.Text(input.Byte())));
      }
      case 0x3:
        return client->Send(Frame(3, 0, input.Byte(), std::string(4, '\0')));
      case 0x4:
        return client->Send(Frame(6, 0, 0, std::string(8, 'p')));
      case 0x5: {
        const uint8_t stream = input.Byte();
        return client->Send(Frame(8, 0, stream, input.Text(4)));
      }
      case 0x6:
        return client->Send(Frame(4, 0, 0, input.Text(6 * input.Below(8))));
      case 0x7: {
        const uint8_t type = input.Byte();
        const uint8_t flags = input.Byte();
        const uint8_t stream = input.Byte();
        return client->Send(Frame(type, flags, stream, input.Text(input.Byte())));
      }
      case 0x8:
        return answers_->AnswerOldest();
      default:
        return client->Send(input.Text(input.Byte()), (kind >> 4U) == 0xf);
    }
  }

  rpc::Server& server_;
  const std::shared_ptr<Answers> answers_ = std::make_shared<Answers>();
  std::array<std::unique_ptr<Client>, kConnections> clients_;
};

rpc::Server& TheServer() {
  static const auto* const clock = new SteadyClock();
  static auto* const server = rpc::Server::Start(1, rpc::Limits{}, *clock)->release();
  return *server;
}

}  // namespace
}  // namespace rnicd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rnicd::fuzz::Input input(data, size);
  rnicd::fuzz::Frames(rnicd::fuzz::TheServer()).Run(input);
  return 0;
}
