// The roles that use librnicd as workloads do.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "base/ndk/access_rights.h"
#include "base/ndk/op_flags.h"
#include "base/status.h"
#include "base/units.h"
#include "client/cpp/client.h"
#include "client/cpp/fast_region.h"
#include "client/cpp/logical_mapping.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/queue_pair.h"
#include "tests/soak/role.h"
#include "tests/support/process/wait.h"

namespace rnicd::soak {
namespace {

using test::kTimeout;

// Hundreds of processes share a few cores, so that a call may take long.
absl::StatusOr<Client> Connect(const RoleOptions& options) {
  return Client::Connect({.socket_dir = options.socket_dir,
                          .label = options.role,
                          .grant = options.secret,
                          .call_deadline = 6 * kTimeout,
                          .release_deadline = 6 * kTimeout,
                          .data_path = options.role == "ringer" ? DataPath::kRings : DataPath::kAutomatic});
}

// Waits for the one request in flight on this queue.
absl::Status Finish(CompletionQueue& queue) {
  RNICD_ASSIGN_OR_RETURN(const std::vector<Completion> done, queue.PollFor(1, 6 * kTimeout));
  if (done.size() != 1 || !done[0].ok()) {
    return absl::AbortedError(done.empty() ? "no completion came" : "a request failed");
  }
  return absl::OkStatus();
}

absl::StatusOr<PostOutcome> PostAndPoll(QueuePair& pair, CompletionQueue& queue, const WorkChain& chain) {
  RNICD_ASSIGN_OR_RETURN(PostOutcome outcome, pair.Post(chain));
  RNICD_RETURN_IF_ERROR(outcome.failure);
  RNICD_RETURN_IF_ERROR(Finish(queue));
  return outcome;
}

absl::Status Same(std::span<const std::byte> got, std::span<const std::byte> expected, const char* where) {
  if (got.size() < expected.size() || std::memcmp(got.data(), expected.data(), expected.size()) != 0) {
    return absl::DataLossError(std::string("other bytes than were sent: ") + where);
  }
  return absl::OkStatus();
}

// Both ends of a connection, and memory at each.
struct Scene {
  static absl::StatusOr<Scene> Make(const Client& client, Dice& dice) {
    const uint64_t size = kNdkPageBytes * (1 + dice.Below(64));
    RNICD_ASSIGN_OR_RETURN(Memory ours, Memory::Allocate(client, {.size = size}));
    RNICD_ASSIGN_OR_RETURN(MemoryRegion region, MemoryRegion::Register(ours, kMrFlagRemoteWrite | kMrFlagRemoteRead));
    RNICD_ASSIGN_OR_RETURN(Memory theirs, Memory::Allocate(client, {.size = size}));
    RNICD_ASSIGN_OR_RETURN(MemoryRegion sink, MemoryRegion::Register(theirs, kMrFlagLocalWrite));
    RNICD_ASSIGN_OR_RETURN(CompletionQueue here, CompletionQueue::Create(client, 16));
    RNICD_ASSIGN_OR_RETURN(CompletionQueue there, CompletionQueue::Create(client, 16));
    RNICD_ASSIGN_OR_RETURN(QueuePair near, QueuePair::Create(here, here, {}));
    RNICD_ASSIGN_OR_RETURN(QueuePair far, QueuePair::Create(there, there, {}));
    RNICD_RETURN_IF_ERROR(near.Connect(far.address()));
    RNICD_RETURN_IF_ERROR(far.Connect(near.address()));
    return Scene{std::move(ours), std::move(region), std::move(theirs), std::move(sink),
                 std::move(here), std::move(there),  std::move(near),   std::move(far)};
  }

  Memory ours;
  MemoryRegion region;
  Memory theirs;
  MemoryRegion sink;
  CompletionQueue here;
  CompletionQueue there;
  QueuePair near;
  QueuePair far;
};

void Fill(std::span<std::byte> bytes, Dice& dice) {
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(dice.Any());
  }
}

absl::Status SendAndReceive(Scene& scene, Dice& dice) {
  const size_t count = 1 + dice.Below(scene.ours.size());
  const auto sent = scene.ours.bytes().first(count);
  Fill(sent, dice);
  RNICD_ASSIGN_OR_RETURN(PostOutcome receive, scene.far.Post(WorkChain().Receive(
                                                  {Sge::Of(scene.theirs.bytes(), scene.sink.local_token())}, {})));
  RNICD_RETURN_IF_ERROR(receive.failure);
  RNICD_RETURN_IF_ERROR(
      PostAndPoll(scene.near, scene.here, WorkChain().Send({Sge::Of(sent, scene.region.local_token())}, {})).status());
  RNICD_RETURN_IF_ERROR(Finish(scene.there));
  ReportDone("transfers");
  return Same(scene.theirs.bytes(), sent, "send");
}

// The far end reads the near end's memory by its remote token.
absl::Status ReadRemote(Scene& scene, Dice& dice) {
  Fill(scene.ours.bytes().first(kNdkPageBytes), dice);
  const RemoteMemory remote{.address = scene.region.base_address(), .token = scene.region.remote_token()};
  const auto target = scene.theirs.bytes().first(kNdkPageBytes);
  RNICD_RETURN_IF_ERROR(
      PostAndPoll(scene.far, scene.there, WorkChain().Read({Sge::Of(target, scene.sink.local_token())}, remote, {}))
          .status());
  ReportDone("transfers");
  return Same(target, scene.ours.bytes().first(kNdkPageBytes), "read");
}

absl::Status FastRegister(const Client& client, Scene& scene, Dice& dice) {
  RNICD_ASSIGN_OR_RETURN(LogicalMapping mapping, LogicalMapping::Build(scene.ours));
  RNICD_ASSIGN_OR_RETURN(FastRegion region, FastRegion::Create(client, {.max_pages = 64, .remote_access = true}));
  const FastRegistration pages = mapping.AsRegistration();
  RNICD_ASSIGN_OR_RETURN(
      const PostOutcome outcome,
      PostAndPoll(scene.near, scene.here, WorkChain().FastRegister(region, pages, {.flags = kOpFlagRemoteWrite})));
  std::vector<std::byte> written(1 + dice.Below(200));
  Fill(written, dice);
  const RemoteMemory remote{.address = pages.base_address, .token = outcome.TokenOf(0)};
  RNICD_RETURN_IF_ERROR(PostAndPoll(scene.far, scene.there, WorkChain().WriteInline(written, remote, {})).status());
  RNICD_RETURN_IF_ERROR(Same(scene.ours.bytes(), written, "fast-registered write"));
  RNICD_RETURN_IF_ERROR(PostAndPoll(scene.near, scene.here, WorkChain().Invalidate(region, {})).status());
  ReportDone("fast_registrations");
  return region.Close();
}

// Does every operation once. With `close`, objects are closed explicitly; otherwise by destructors.
absl::Status Round(const Client& client, Dice& dice, bool close) {
  RNICD_ASSIGN_OR_RETURN(Scene scene, Scene::Make(client, dice));
  ReportDone("registrations", 2);
  RNICD_RETURN_IF_ERROR(SendAndReceive(scene, dice));
  RNICD_RETURN_IF_ERROR(ReadRemote(scene, dice));
  RNICD_RETURN_IF_ERROR(FastRegister(client, scene, dice));
  if (close) {
    RNICD_RETURN_IF_ERROR(scene.near.Close());
    RNICD_RETURN_IF_ERROR(scene.far.Close());
    RNICD_RETURN_IF_ERROR(scene.here.Close());
    RNICD_RETURN_IF_ERROR(scene.there.Close());
    RNICD_RETURN_IF_ERROR(scene.region.Close());
    RNICD_RETURN_IF_ERROR(scene.sink.Close());
    RNICD_RETURN_IF_ERROR(scene.ours.Release());
    RNICD_RETURN_IF_ERROR(scene.theirs.Release());
  }
  return absl::OkStatus();
}

// Counts refusals by limits and reports every other failure as an error.
void ReportFailure(const RoleOptions& options, const absl::Status& status) {
  if (const std::string limit = LimitReason(status); !limit.empty()) {
    ReportRefused(limit);
  } else if (!status.ok()) {
    ReportWrong(options.role + ": " + status.ToString());
  }
}

// A session with memory that several regions register in full.
struct Holding {
  static absl::StatusOr<Holding> Make(const RoleOptions& options, Dice& dice) {
    RNICD_ASSIGN_OR_RETURN(Client client, Connect(options));
    RNICD_ASSIGN_OR_RETURN(Memory memory, Memory::Allocate(client, {.size = kNdkPageBytes * (16 + dice.Below(256))}));
    std::vector<MemoryRegion> regions;
    for (int i = 0; i < 4; ++i) {
      RNICD_ASSIGN_OR_RETURN(MemoryRegion region, MemoryRegion::Register(memory, 0));
      regions.push_back(std::move(region));
    }
    ReportDone("sessions");
    ReportDone("registrations", regions.size());
    return Holding{std::move(client), std::move(memory), std::move(regions)};
  }

  Client client;
  Memory memory;
  std::vector<MemoryRegion> regions;
};

}  // namespace

void PlayGood(const RoleOptions& options, Dice& dice) {
  auto client = Connect(options);
  if (!client.ok()) {
    return ReportWrong(options.role + ": " + client.status().ToString());
  }
  ReportDone("sessions");
  for (uint64_t rounds = 1 + dice.Below(4); rounds > 0; --rounds) {
    const absl::Status status = Round(*client, dice, dice.OneIn(2));
    if (!status.ok() && (options.uid != 0 || LimitReason(status).empty())) {
      return ReportWrong(options.role + ": " + status.ToString());
    }
  }
  if (dice.OneIn(2)) {
    if (const auto closed = client->Close(); !closed.ok()) {
      ReportWrong(options.role + ": " + closed.status().ToString());
    }
  }
}

void PlayCrasher(const RoleOptions& options, Dice& dice) {
  while (true) {
    auto client = Connect(options);
    if (client.ok()) {
      ReportDone("sessions");
    } else {
      ReportFailure(options, client.status());
    }
    for (int rounds = 0; client.ok() && rounds < 8; ++rounds) {
      ReportFailure(options, Round(*client, dice, dice.OneIn(2)));
    }
  }
}

void PlayFrozen(const RoleOptions& options, Dice& dice) {
  const auto held = Holding::Make(options, dice);
  if (!held.ok()) {
    return ReportFailure(options, held.status());
  }
  ReportHolding();
  while (true) {
    pause();
  }
}

void PlayHog(const RoleOptions& options, Dice& dice) {
  const auto held = Holding::Make(options, dice);
  if (!held.ok()) {
    ReportFailure(options, held.status());
  }
  uint64_t budget = (16 + dice.Below(32)) << 20;
  // A sanitizer's memory leaves no room for such a limit.
  if (test::kSlowness == 1) {
    // Allow this much more than the process has; after that none of its threads gets another page.
    const auto page = static_cast<uint64_t>(getpagesize());
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit limit = {.rlim_cur = pages * page + budget, .rlim_max = pages * page + budget};
    setrlimit(RLIMIT_AS, &limit);
    budget *= 64;
  }
  std::vector<std::unique_ptr<char[]>> eaten;
  for (constexpr uint64_t kBite = 1 << 18; budget > kBite; budget -= kBite) {
    char* const bite = new (std::nothrow) char[kBite];
    if (bite == nullptr) {
      break;
    }
    std::memset(bite, 1, kBite);
    eaten.emplace_back(bite);
  }
  std::abort();
}

void PlaySeeker(const RoleOptions& options, Dice& dice) {
  auto client = Connect(options);
  if (!client.ok()) {
    return ReportFailure(options, client.status());
  }
  ReportDone("sessions");
  // Either small pieces until the count limit is hit, or larger ones until the byte limit is.
  const uint64_t size = kNdkPageBytes * (dice.OneIn(2) ? 1 : 128);
  std::vector<Memory> memories;
  std::vector<MemoryRegion> regions;
  absl::Status refused;
  for (int i = 0; i < 5000 && refused.ok(); ++i) {
    auto memory = Memory::Allocate(*client, {.size = size});
    if (!memory.ok()) {
      refused = memory.status();
      break;
    }
    memories.push_back(*std::move(memory));
    auto region = MemoryRegion::Register(memories.back(), kMrFlagLocalWrite);
    refused = region.status();
    if (region.ok()) {
      regions.push_back(*std::move(region));
    }
  }
  ReportDone("registrations", regions.size());
  if (refused.ok() || LimitReason(refused).empty()) {
    return ReportWrong("seeker: no limit found: " + refused.ToString());
  }
  ReportFailure(options, refused);
  const ErrorInfo info = ErrorInfoOf(refused);
  if (info.reason != ErrorReason::RATE_LIMITED &&
      (info.limit == 0 || info.requested == 0 || info.used > info.limit || info.used + info.requested <= info.limit)) {
    ReportWrong("seeker: inconsistent figures: " + refused.ToString() + " limit " + std::to_string(info.limit) +
                " used " + std::to_string(info.used) + " requested " + std::to_string(info.requested));
  }
}

void PlayGrantee(const RoleOptions& options, Dice& dice) {
  while (true) {
    auto client = Connect(options);
    if (!client.ok()) {
      // The grant has ended, which ends this role.
      const absl::Status& status = client.status();
      if (FailedWith(status, ErrorReason::GRANT_REFUSED)) {
        ReportRefused("GRANT_REFUSED");
        return;
      }
      // It may also end between two calls of Connect.
      if (!absl::IsUnavailable(status) && !FailedWith(status, ErrorReason::SESSION_ENDING)) {
        ReportFailure(options, status);
      }
      continue;
    }
    ReportDone("sessions");
    // The revocation may come at any moment, so that a round may end in any way except with wrong bytes.
    if (const absl::Status status = Round(*client, dice, false); absl::IsDataLoss(status)) {
      ReportWrong("grantee: " + status.ToString());
    }
  }
}

}  // namespace rnicd::soak
