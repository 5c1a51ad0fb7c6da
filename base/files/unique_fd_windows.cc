#include <windows.h>

#include "base/files/unique_fd.h"

namespace rnicd {

void FileCloser::Close(int fd) { CloseHandle(LongToHandle(fd)); }

}  // namespace rnicd
