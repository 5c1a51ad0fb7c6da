#include <unistd.h>

#include "base/files/unique_fd.h"

namespace rnicd {

void FileCloser::Close(int fd) { close(fd); }

}  // namespace rnicd
