#include "base/files/sent_descriptors_linux.h"

#include <cstddef>
#include <cstring>

namespace rnicd {

std::vector<UniqueFd> TakeDescriptors(msghdr& message) {
  std::vector<UniqueFd> descriptors;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t index = 0; index < count; ++index) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + index * sizeof(int), sizeof(int));
      descriptors.emplace_back(fd);
    }
  }
  return descriptors;
}

}  // namespace rnicd
