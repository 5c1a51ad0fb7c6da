#pragma once

#include <cstdint>
#include <vector>

// The numbers of this process's protection domains on the card, as `rdma resource show pd` prints them.
std::vector<uint32_t> DomainsOfThisProcess(uint32_t device_index);
