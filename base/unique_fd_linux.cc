#include <unistd.h>

#include "base/unique_fd.h"

namespace rnicd {

void UniqueFd::Close(int fd) { close(fd); }

}  // namespace rnicd
