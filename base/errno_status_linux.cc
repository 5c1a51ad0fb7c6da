#include <cerrno>
#include <cstring>
#include <string>

#include "base/errno_status.h"
#include "base/status.h"

namespace rnicd {
namespace {

ErrorReason ReasonOf(int error_number) {
  switch (error_number) {
    case ENOMEM:
    case EAGAIN:
    case ENOSPC:
    case EMFILE:
    case ENFILE:
    case EFBIG:
      return ErrorReason::MEMORY_PAGES_UNAVAILABLE;
    default:
      return ErrorReason::INTERNAL_FAULT;
  }
}

}  // namespace

absl::Status ErrnoStatus(std::string_view call, int error_number) {
  return MakeErrorWithDetail(ReasonOf(error_number), ErrnoDetail(call, error_number));
}

std::string ErrnoDetail(std::string_view call, int error_number) {
  const char* name = strerrorname_np(error_number);
  return std::string(call) + ": " + (name != nullptr ? name : std::to_string(error_number));
}

}  // namespace rnicd
