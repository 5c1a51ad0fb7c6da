#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace rnicd {

// The failure of a system call on memory: ENOMEM, EAGAIN, ENOSPC, EMFILE, ENFILE and EFBIG are
// MEMORY_PAGES_UNAVAILABLE, any other errno is INTERNAL_FAULT. The message contains `call` and errno, as "(mmap:
// ENOMEM)". The only such table in the project. Only on Linux; windows_status.h has its counterpart.
absl::Status ErrnoStatus(std::string_view call, int error_number);
// "mmap: ENOMEM", for the detail of a failure with another reason.
std::string ErrnoDetail(std::string_view call, int error_number);

}  // namespace rnicd
