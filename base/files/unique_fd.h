#pragma once

#include "base/unique_handle.h"

namespace rnicd {

struct FileCloser {
  static void Close(int fd);
};

// Owns a file descriptor. On Windows it is a HANDLE: of one only 32 bits are significant, so that LongToHandle gives
// back what HandleToLong has made an int. Calls that fail with a null handle must make -1 of it.
using UniqueFd = UniqueHandle<FileCloser>;

}  // namespace rnicd
