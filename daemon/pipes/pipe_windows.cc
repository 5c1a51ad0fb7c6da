#include <utility>

#include "base/status.h"
#include "base/windows_status.h"
#include "daemon/pipes/operation.h"
#include "daemon/pipes/pipe.h"

namespace rnicd::pipes {
namespace {

constexpr DWORD kReplyBytes = 4096;

}  // namespace

Pipe::Pipe(Loop& loop, Events& events, Door door, UniqueFd handle)
    : loop_(loop),
      events_(events),
      door_(door),
      handle_(std::move(handle)),
      operation_(std::make_unique<Operation>()) {}

Pipe::~Pipe() = default;

absl::StatusOr<std::shared_ptr<Pipe>> Pipe::Listen(Loop& loop, Events& events, const Options& options,
                                                   const SecurityDescriptor& security) {
  SECURITY_ATTRIBUTES attributes = {};
  attributes.nLength = sizeof(attributes);
  attributes.lpSecurityDescriptor = security.get();
  const DWORD first = options.is_first ? FILE_FLAG_FIRST_PIPE_INSTANCE : 0;
  UniqueFd handle(
      HandleToLong(CreateNamedPipeA(options.name.c_str(), PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED | first,
                                    PIPE_TYPE_MESSAGE | PIPE_READMODE_MESSAGE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS,
                                    PIPE_UNLIMITED_INSTANCES, kReplyBytes, kRequestBytesMax, 0, &attributes)));
  if (!handle.valid()) {
    return LastErrorStatus("CreateNamedPipe");
  }
  if (!loop.Attach(handle.get())) {
    return LastErrorStatus("CreateIoCompletionPort");
  }
  std::shared_ptr<Pipe> pipe(new Pipe(loop, events, options.door, std::move(handle)));
  pipe->WaitForClient();
  return pipe;
}

template <typename Next>
Operation* Pipe::Prepare(Next next) {
  static_cast<OVERLAPPED&>(*operation_) = {};
  operation_->on_done = [this, next](uint32_t bytes, uint32_t error) {
    const std::shared_ptr<Pipe> self = std::move(kept_);
    if (!closed_) {
      next(bytes, error);
    } else {
      handle_.Reset(-1);
    }
  };
  kept_ = shared_from_this();
  loop_.Began();
  return operation_.get();
}

// An operation that failed at once has no end of its own.
void Pipe::Begun(uint32_t error) {
  if (error != ERROR_SUCCESS && error != ERROR_IO_PENDING && error != ERROR_MORE_DATA) {
    loop_.Failed(*operation_, error);
  }
}

void Pipe::WaitForClient() {
  Operation* const operation = Prepare([this](uint32_t /*bytes*/, uint32_t error) {
    if (error != ERROR_SUCCESS && error != ERROR_PIPE_CONNECTED) {
      End();
    } else {
      events_.OnConnected(shared_from_this());
    }
  });
  const bool done = ConnectNamedPipe(LongToHandle(handle_.get()), operation) != 0;
  Begun(done ? ERROR_SUCCESS : GetLastError());
}

void Pipe::Read() {
  Operation* const operation = Prepare([this](uint32_t bytes, uint32_t error) { OnRead(bytes, error); });
  const bool done = ReadFile(LongToHandle(handle_.get()), request_.data(), request_.size(), nullptr, operation) != 0;
  Begun(done ? ERROR_SUCCESS : GetLastError());
}

void Pipe::OnRead(uint32_t bytes, uint32_t error) {
  if (error == ERROR_MORE_DATA) {
    events_.OnMessage(shared_from_this(), MakeError(ErrorReason::FD_PACKET_MALFORMED));
  } else if (error != ERROR_SUCCESS) {
    End();
  } else {
    events_.OnMessage(shared_from_this(), std::string_view(request_.data(), bytes));
  }
}

void Pipe::Send(std::string reply, bool last) {
  if (closed_) {
    return;
  }
  reply_ = std::move(reply);
  Operation* const operation = Prepare([this, last](uint32_t /*bytes*/, uint32_t error) { OnSent(last, error); });
  const bool done =
      WriteFile(LongToHandle(handle_.get()), reply_.data(), static_cast<DWORD>(reply_.size()), nullptr, operation) != 0;
  Begun(done ? ERROR_SUCCESS : GetLastError());
}

void Pipe::OnSent(bool last, uint32_t error) {
  if (last || error != ERROR_SUCCESS) {
    End();
  } else {
    Read();
  }
}

void Pipe::End() {
  Close();
  events_.OnEnd(shared_from_this());
}

// The handle stays open until the operation has ended, whose memory is in use until then.
void Pipe::Close() {
  if (std::exchange(closed_, true)) {
    return;
  }
  if (kept_ != nullptr) {
    CancelIoEx(LongToHandle(handle_.get()), nullptr);
  } else {
    handle_.Reset(-1);
  }
}

}  // namespace rnicd::pipes
