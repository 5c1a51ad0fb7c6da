// What a 4 KiB write with its completion costs librnicd: the measure that bench.py compares Python with.
// usage: rnicd_write_bench SOCKET_DIR WRITES; prints the median in nanoseconds.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/ndk/access_rights.h"
#include "client/cpp/client.h"
#include "client/cpp/queue_pair.h"

namespace {

constexpr uint64_t kPage = 4096;

// The same two calls as the Python client makes: Post, and a GetCqResultsEx that waits.
absl::Status Write(rnicd::QueuePair& pair, rnicd::CompletionQueue& queue, const rnicd::MemoryRegion& region) {
  const auto source = rnicd::Sge::At(region.base_address(), kPage, region.local_token());
  const rnicd::VirtualAddress target{region.base_address().value + kPage};
  const rnicd::RemoteMemory remote{.address = target, .token = region.remote_token()};
  RNICD_ASSIGN_OR_RETURN(const rnicd::PostOutcome posted, pair.Post(rnicd::WorkChain().Write({source}, remote, {})));
  RNICD_RETURN_IF_ERROR(posted.failure);
  RNICD_ASSIGN_OR_RETURN(const auto completions, queue.PollFor(1, std::chrono::seconds(10)));
  const bool done = !completions.empty() && completions.front().ok();
  return done ? absl::OkStatus() : absl::AbortedError("the write did not succeed");
}

absl::StatusOr<int64_t> MedianOf(const char* socket_dir, int writes) {
  RNICD_ASSIGN_OR_RETURN(rnicd::Client client, rnicd::Client::Connect({.socket_dir = socket_dir, .label = "bench"}));
  RNICD_ASSIGN_OR_RETURN(rnicd::Memory memory, rnicd::Memory::Allocate(client, {.size = 2 * kPage}));
  RNICD_ASSIGN_OR_RETURN(rnicd::MemoryRegion region, rnicd::MemoryRegion::Register(memory, rnicd::kMrFlagRemoteWrite));
  RNICD_ASSIGN_OR_RETURN(rnicd::CompletionQueue queue, rnicd::CompletionQueue::Create(client, 16));
  RNICD_ASSIGN_OR_RETURN(rnicd::QueuePair pair, rnicd::QueuePair::Create(queue, queue, {}));
  RNICD_ASSIGN_OR_RETURN(rnicd::QueuePair peer, rnicd::QueuePair::Create(queue, queue, {}));
  RNICD_RETURN_IF_ERROR(pair.Connect(peer.address()));
  RNICD_RETURN_IF_ERROR(peer.Connect(pair.address()));
  std::vector<int64_t> taken;
  for (int turn = 0; turn < writes; ++turn) {
    const auto began = std::chrono::steady_clock::now();
    RNICD_RETURN_IF_ERROR(Write(pair, queue, region));
    taken.push_back(std::chrono::nanoseconds(std::chrono::steady_clock::now() - began).count());
  }
  std::nth_element(taken.begin(), taken.begin() + writes / 2, taken.end());
  return taken[static_cast<size_t>(writes) / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int writes = argc == 3 ? std::atoi(argv[2]) : 0;
  if (writes < 1) {
    std::fprintf(stderr, "usage: rnicd_write_bench SOCKET_DIR WRITES\n");
    return 2;
  }
  const absl::StatusOr<int64_t> median = MedianOf(argv[1], writes);
  if (!median.ok()) {
    std::fprintf(stderr, "%s\n", median.status().ToString().c_str());
    return 1;
  }
  std::printf("%lld\n", static_cast<long long>(*median));
  return 0;
}
