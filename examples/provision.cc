// From nothing to 1,265 registered buffers of 40 KiB in two calls, and what a peer needs to write into one of them.
#include <cstdio>
#include <vector>

#include "client/cpp/client.h"

constexpr uint64_t kBuffers = 1265;
constexpr uint64_t kBufferBytes = 40 << 10;

absl::Status Provision(const char* socket_dir) {
  RNICD_ASSIGN_OR_RETURN(rnicd::Client client,
                         rnicd::Client::Connect({.socket_dir = socket_dir, .label = "provision"}));
  std::vector<rnicd::RegionRange> ranges;
  for (uint64_t index = 0; index < kBuffers; ++index) {
    ranges.push_back({.offset = index * kBufferBytes, .length = kBufferBytes, .flags = rnicd::kMrFlagRemoteWrite});
  }
  RNICD_ASSIGN_OR_RETURN(rnicd::Provisioned ready,
                         rnicd::MemoryRegion::Provision(client, {.size = kBuffers * kBufferBytes}, ranges));
  for (const absl::StatusOr<rnicd::MemoryRegion>& region : ready.regions) {
    RNICD_RETURN_IF_ERROR(region.status());
  }
  const rnicd::MemoryRegion& last = *ready.regions.back();
  std::printf("%zu regions; the last is at %#zx, remote token %#x\n", ready.regions.size(),
              static_cast<size_t>(last.base_address().value), last.remote_token().value);
  // Otherwise each region is closed by a call of its own.
  std::vector<rnicd::MemoryRegion> regions;
  for (absl::StatusOr<rnicd::MemoryRegion>& region : ready.regions) {
    regions.push_back(*std::move(region));
  }
  return rnicd::MemoryRegion::CloseBatch(std::move(regions));
}

int main(int argc, char** argv) {
  const absl::Status status = Provision(argc > 1 ? argv[1] : "/run/rnicd");
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
