#include "client/cpp/channel/daemon_pipe_windows.h"

#include <windows.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/status.h"
#include "base/windows_status.h"
#include "client/cpp/transport_failure.h"
#include "wire/error_detail.h"

namespace rnicd::inline client {
namespace {

// To read, to write, and to set the own mode: GENERIC_WRITE contains the right to create an instance, which no client
// has.
constexpr DWORD kRights = FILE_GENERIC_READ | (FILE_GENERIC_WRITE & ~FILE_CREATE_PIPE_INSTANCE);
constexpr size_t kReplyBytesMax = 4096;

HANDLE HandleOf(const UniqueFd& fd) { return LongToHandle(fd.get()); }

DWORD MillisecondsUntil(Instant deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Instant::clock::now()).count();
  return static_cast<DWORD>(std::clamp<int64_t>(left, 0, INFINITE - 1));
}

absl::Status Failure(std::string_view call, DWORD error) {
  return TransportFailure(absl::StatusCode::kUnavailable, WindowsDetail(call, error) + " on the daemon's pipe");
}

absl::Status Late() {
  return TransportFailure(absl::StatusCode::kDeadlineExceeded, "the daemon's pipe had no answer in time");
}

// The bytes that an operation moved, whose call returned `begun`.
absl::StatusOr<DWORD> Await(HANDLE pipe, OVERLAPPED& operation, std::string_view call, BOOL begun, Instant deadline) {
  if (begun == 0 && GetLastError() != ERROR_IO_PENDING) {
    return Failure(call, GetLastError());
  }
  const bool in_time = WaitForSingleObject(operation.hEvent, MillisecondsUntil(deadline)) == WAIT_OBJECT_0;
  if (!in_time) {
    CancelIoEx(pipe, &operation);
  }
  DWORD bytes = 0;
  // Waits for the end of one that was cancelled, too: the system writes into it until then.
  if (GetOverlappedResult(pipe, &operation, &bytes, TRUE) == 0) {
    return in_time ? Failure(call, GetLastError()) : Late();
  }
  return bytes;
}

}  // namespace

absl::StatusOr<DaemonPipe> DaemonPipe::Open(const std::string& name, Instant deadline) {
  UniqueFd event(HandleToLong(CreateEventA(nullptr, TRUE, FALSE, nullptr)));
  if (!event.valid()) {
    return Failure("CreateEvent", GetLastError());
  }
  for (;;) {
    UniqueFd pipe(
        HandleToLong(CreateFileA(name.c_str(), kRights, 0, nullptr, OPEN_EXISTING,
                                 SECURITY_SQOS_PRESENT | SECURITY_IDENTIFICATION | FILE_FLAG_OVERLAPPED, nullptr)));
    if (pipe.valid()) {
      return DaemonPipe(std::move(pipe), std::move(event));
    }
    const DWORD error = GetLastError();
    if (error != ERROR_PIPE_BUSY) {
      return Failure("CreateFile", error);
    }
    // All instances that waited are taken; the daemon makes more.
    if (WaitNamedPipeA(name.c_str(), std::max<DWORD>(MillisecondsUntil(deadline), 1)) == 0) {
      return GetLastError() == ERROR_SEM_TIMEOUT ? Late() : Failure("WaitNamedPipe", GetLastError());
    }
  }
}

absl::StatusOr<v1::PipeReply> DaemonPipe::Ask(const v1::PipeRequest& request, Instant deadline) {
  const std::string message = request.SerializeAsString();
  OVERLAPPED operation = {.hEvent = HandleOf(event_)};
  const BOOL writing =
      WriteFile(HandleOf(pipe_), message.data(), static_cast<DWORD>(message.size()), nullptr, &operation);
  RNICD_RETURN_IF_ERROR(Await(HandleOf(pipe_), operation, "WriteFile", writing, deadline).status());
  std::array<char, kReplyBytesMax> bytes;
  operation = {.hEvent = HandleOf(event_)};
  const BOOL reading = ReadFile(HandleOf(pipe_), bytes.data(), bytes.size(), nullptr, &operation);
  RNICD_ASSIGN_OR_RETURN(const DWORD count, Await(HandleOf(pipe_), operation, "ReadFile", reading, deadline));
  v1::PipeReply reply;
  if (!reply.ParseFromArray(bytes.data(), static_cast<int>(count))) {
    return TransportFailure(absl::StatusCode::kInternal, "the reply on the daemon's pipe is not a PipeReply");
  }
  if (reply.has_error()) {
    return wire::StatusFromDetail(reply.error(), absl::StatusCode::kUnknown);
  }
  return reply;
}

}  // namespace rnicd::inline client
