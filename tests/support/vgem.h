#pragma once

#include <cstdint>
#include <string>

#include "base/files/unique_fd.h"

namespace rnicd::test {

// vgem, the kernel's graphics card in software, which exports its buffers as dma-bufs.

// Path of its device file. Empty where the kernel has none.
std::string VgemPath();

// A new buffer as a dma-buf. It outlives the opening of the card that made it. Not valid, after a test failure, where
// the card or the kernel refuses.
UniqueFd MakeDmabuf(const std::string& card, uint64_t bytes, bool writable = true);

}  // namespace rnicd::test
