#include <fcntl.h>

#include "base/files/any_descriptor_fixture.h"

namespace rnicd {

UniqueFd OpenAnyDescriptor() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) != -1; }

}  // namespace rnicd
