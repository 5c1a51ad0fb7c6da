#pragma once

#include <sys/stat.h>

#include <utility>
#include <vector>

#include "provider/verbs/fake/verbs_fake.h"

namespace rnicd::provider {

// Simulated cards that register dma-bufs, for which any file passes. They refuse what the kernel refuses before it asks
// a driver: other rights than these, and a place within a page that is not that of the address.
class FakeDmabufVerbs final : public FakeVerbs {
 public:
  explicit FakeDmabufVerbs(std::vector<FakeDevice> devices = {FakeDevice{}}) : FakeVerbs(std::move(devices)) {}

  ibv_mr* RegDmabufMr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int file, int access) override {
    constexpr int kRights =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    struct stat buffer = {};
    const bool is_open = fstat(file, &buffer) == 0;
    const auto size = static_cast<uint64_t>(buffer.st_size);
    const bool is_inside = is_open && offset <= size && length <= size - offset;
    FakeRegion region{
        .length = length, .iova = iova, .access = access, .dmabuf_inode = buffer.st_ino, .dmabuf_offset = offset};
    const bool is_congruent = (offset ^ iova) % kernel_page_bytes == 0;
    return Register("RegDmabufMr", pd, region, is_inside && is_congruent && (access & ~kRights) == 0);
  }
};

}  // namespace rnicd::provider
