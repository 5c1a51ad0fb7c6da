// Two programs meet by a name and exchange an array by RDMA. The worker reads the owner's, doubles it, and writes it
// back:
//   example_exchange_array /run/rnicd owner & example_exchange_array /run/rnicd worker
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "client/cpp/client.h"
#include "client/cpp/listener.h"
#include "client/cpp/queue_pair.h"

constexpr size_t kFloats = 1 << 20;
constexpr std::chrono::seconds kPatience{30};

// What the owner's answer carries.
struct Offer {
  uint64_t address = 0;
  rnicd::RemoteToken token;
};

// The part that is the same on both sides; destroyed from the last to the first.
struct Side {
  rnicd::Client client;
  rnicd::Memory memory;
  rnicd::MemoryRegion region;
  rnicd::CompletionQueue queue;
  rnicd::QueuePair pair;

  float* array() { return reinterpret_cast<float*>(memory.bytes().data()); }
};

absl::StatusOr<Side> MakeSide(const char* socket_dir, const char* label, uint32_t flags) {
  RNICD_ASSIGN_OR_RETURN(rnicd::Client client, rnicd::Client::Connect({.socket_dir = socket_dir, .label = label}));
  RNICD_ASSIGN_OR_RETURN(rnicd::Memory memory, rnicd::Memory::Allocate(client, {.size = kFloats * sizeof(float)}));
  RNICD_ASSIGN_OR_RETURN(rnicd::MemoryRegion region, rnicd::MemoryRegion::Register(memory, flags));
  RNICD_ASSIGN_OR_RETURN(rnicd::CompletionQueue queue, rnicd::CompletionQueue::Create(client, 16));
  RNICD_ASSIGN_OR_RETURN(rnicd::QueuePair pair, rnicd::QueuePair::Create(queue, queue, {}));
  return Side{std::move(client), std::move(memory), std::move(region), std::move(queue), std::move(pair)};
}

// Waits for the end of one request.
absl::Status Finish(Side& side) {
  RNICD_ASSIGN_OR_RETURN(const auto completions, side.queue.PollFor(1, kPatience));
  return !completions.empty() && completions.front().ok() ? absl::OkStatus() : absl::AbortedError("a request failed");
}

absl::Status Run(Side& side, const rnicd::WorkChain& request) {
  RNICD_ASSIGN_OR_RETURN(const rnicd::PostOutcome outcome, side.pair.Post(request));
  RNICD_RETURN_IF_ERROR(outcome.failure);
  return Finish(side);
}

absl::Status Own(const char* socket_dir) {
  RNICD_ASSIGN_OR_RETURN(Side side,
                         MakeSide(socket_dir, "owner", rnicd::kMrFlagRemoteRead | rnicd::kMrFlagRemoteWrite));
  for (size_t index = 0; index < kFloats; ++index) side.array()[index] = static_cast<float>(index);
  RNICD_ASSIGN_OR_RETURN(rnicd::Listener listener, rnicd::Listener::Listen(side.client, {.name = "array"}));
  std::printf("listening as %s\n", listener.full_name().c_str());
  std::fflush(stdout);
  RNICD_ASSIGN_OR_RETURN(rnicd::Connector connector, listener.NextRequest(kPatience));
  // Before Accept: the worker sends as soon as that has ended.
  RNICD_RETURN_IF_ERROR(side.pair.Post(rnicd::WorkChain().Receive({}, {})).status());
  const Offer offer{.address = side.region.base_address().value, .token = side.region.remote_token()};
  const std::string bytes(reinterpret_cast<const char*>(&offer), sizeof(offer));
  RNICD_RETURN_IF_ERROR(connector.Accept(side.pair, {.private_data = bytes}));
  RNICD_RETURN_IF_ERROR(Finish(side));
  for (size_t index = 0; index < kFloats; ++index) {
    if (side.array()[index] != 2 * static_cast<float>(index)) return absl::DataLossError("a number is not doubled");
  }
  std::printf("%zu numbers are doubled\n", kFloats);
  return connector.Disconnect();
}

absl::Status Work(const char* socket_dir) {
  RNICD_ASSIGN_OR_RETURN(Side side, MakeSide(socket_dir, "worker", rnicd::kMrFlagLocalWrite));
  RNICD_ASSIGN_OR_RETURN(rnicd::Connector connector, rnicd::Connector::Establish(side.pair, "array"));
  RNICD_ASSIGN_OR_RETURN(const rnicd::ConnectionData answer, connector.GetConnectionData());
  Offer offer;
  if (answer.private_data.size() < sizeof(offer)) return absl::DataLossError("the owner offers nothing");
  std::memcpy(&offer, answer.private_data.data(), sizeof(offer));
  const rnicd::RemoteMemory remote{.address = {offer.address}, .token = offer.token};
  const rnicd::Sge all = rnicd::Sge::Of(side.memory.bytes(), side.region.local_token());
  RNICD_RETURN_IF_ERROR(Run(side, rnicd::WorkChain().Read({all}, remote, {})));
  for (size_t index = 0; index < kFloats; ++index) side.array()[index] *= 2;
  RNICD_RETURN_IF_ERROR(Run(side, rnicd::WorkChain().Write({all}, remote, {})));
  RNICD_RETURN_IF_ERROR(Run(side, rnicd::WorkChain().Send({}, {})));
  return connector.Disconnect();
}

int main(int argc, char** argv) {
  const bool owns = argc > 2 && argv[2] == std::string_view("owner");
  const absl::Status status =
      argc > 2 ? (owns ? Own(argv[1]) : Work(argv[1])) : absl::InvalidArgumentError("which role?");
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
