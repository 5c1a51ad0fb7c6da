#pragma once

#include <cstdint>
#include <vector>

namespace rnicd::provider {

// The kernel's numbers of the protection domains that processes have on a card, the highest first, as `rdma resource
// show pd` prints them. The kernel names the thread that made one, which may have ended, so those of other processes
// are among them. Empty when the kernel does not answer. `device_index`: that of ibv_get_device_index(3). Source:
// RDMA_NLDEV_CMD_RES_PD_GET of include/uapi/rdma/rdma_netlink.h.
std::vector<uint32_t> DomainNumbers(uint32_t device_index);

}  // namespace rnicd::provider
