#pragma once

// A descriptor, on Windows a handle, for tests that only count or close it.

#include "base/files/unique_fd.h"

namespace rnicd {

UniqueFd OpenAnyDescriptor();
bool IsOpen(int fd);

}  // namespace rnicd
