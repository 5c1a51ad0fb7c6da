// Registers scattered pages with one work request and lets a peer write into them by RDMA. Owner and peer are two
// sessions of this program; two processes would exchange the addresses and the token over a channel of their choice.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <span>
#include <string_view>

#include "client/cpp/client.h"
#include "client/cpp/fast_region.h"
#include "client/cpp/logical_mapping.h"
#include "client/cpp/queue_pair.h"

// Posts one request and waits for its completion.
absl::Status Run(rnicd::QueuePair& pair, rnicd::CompletionQueue& queue, const rnicd::WorkChain& request,
                 rnicd::PostOutcome& outcome) {
  RNICD_ASSIGN_OR_RETURN(outcome, pair.Post(request));
  RNICD_RETURN_IF_ERROR(outcome.failure);
  RNICD_ASSIGN_OR_RETURN(const auto completions, queue.PollFor(1, std::chrono::seconds(10)));
  const bool done = !completions.empty() && completions.front().ok();
  return done ? absl::OkStatus() : absl::AbortedError("the request did not succeed");
}

absl::Status FastRegister(const char* socket_dir) {
  // The owner: memory, its pages as the adapter addresses them, and a region to register them with.
  RNICD_ASSIGN_OR_RETURN(rnicd::Client owner, rnicd::Client::Connect({.socket_dir = socket_dir, .label = "owner"}));
  RNICD_ASSIGN_OR_RETURN(rnicd::Memory memory, rnicd::Memory::Allocate(owner, {.size = 8 << 20}));
  RNICD_ASSIGN_OR_RETURN(rnicd::LogicalMapping mapping, rnicd::LogicalMapping::Build(memory));
  RNICD_ASSIGN_OR_RETURN(rnicd::FastRegion region,
                         rnicd::FastRegion::Create(owner, {.max_pages = 2048, .remote_access = true}));
  RNICD_ASSIGN_OR_RETURN(rnicd::CompletionQueue owner_queue, rnicd::CompletionQueue::Create(owner, 16));
  RNICD_ASSIGN_OR_RETURN(rnicd::QueuePair owner_pair, rnicd::QueuePair::Create(owner_queue, owner_queue, {}));
  // The peer.
  RNICD_ASSIGN_OR_RETURN(rnicd::Client peer, rnicd::Client::Connect({.socket_dir = socket_dir, .label = "peer"}));
  RNICD_ASSIGN_OR_RETURN(rnicd::CompletionQueue peer_queue, rnicd::CompletionQueue::Create(peer, 16));
  RNICD_ASSIGN_OR_RETURN(rnicd::QueuePair peer_pair, rnicd::QueuePair::Create(peer_queue, peer_queue, {}));
  RNICD_RETURN_IF_ERROR(owner_pair.Connect(peer_pair.address()));
  RNICD_RETURN_IF_ERROR(peer_pair.Connect(owner_pair.address()));

  // The pages may be in any order; here it is reversed.
  rnicd::FastRegistration pages = mapping.AsRegistration();
  std::reverse(pages.pages.begin(), pages.pages.end());
  rnicd::PostOutcome outcome;
  RNICD_RETURN_IF_ERROR(Run(owner_pair, owner_queue,
                            rnicd::WorkChain().FastRegister(region, pages, {.flags = rnicd::kOpFlagRemoteWrite}),
                            outcome));
  const rnicd::RemoteMemory remote{.address = pages.base_address, .token = outcome.TokenOf(0)};
  constexpr std::string_view kMessage = "hello";
  RNICD_RETURN_IF_ERROR(Run(peer_pair, peer_queue,
                            rnicd::WorkChain().WriteInline(std::as_bytes(std::span(kMessage)), remote, {}), outcome));
  const auto last_page = memory.bytes().last(4096);
  std::printf("token %#x; the owner's last page begins with \"%.5s\"\n", remote.token.value,
              reinterpret_cast<const char*>(last_page.data()));
  return Run(owner_pair, owner_queue, rnicd::WorkChain().Invalidate(region, {}), outcome);
}

int main(int argc, char** argv) {
  const absl::Status status = FastRegister(argc > 1 ? argv[1] : "/run/rnicd");
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
