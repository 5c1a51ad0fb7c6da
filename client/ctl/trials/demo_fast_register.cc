#include "client/ctl/trials/demo_fast_register.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/fast_region.h"
#include "client/cpp/logical_mapping.h"
#include "client/cpp/work_chain.h"
#include "client/ctl/line/units.h"
#include "client/ctl/trials/demo_pages.h"
#include "client/ctl/trials/queue_end.h"

namespace rnicd::ctl {
namespace {

// Within it the queue pairs must be dead.
constexpr std::chrono::seconds kTimeout{30};

absl::Status Wrong(const std::string& sentence) { return absl::InternalError(sentence); }

// Outstanding requests of a side, at most.
constexpr uint32_t kDepth = 16;

// One side of the connection: a session, and its end.
struct Side {
  Client client;
  QueueEnd end;

  static absl::StatusOr<Side> Open(const FastRegisterDemoOptions& options, const std::string& label) {
    RNICD_ASSIGN_OR_RETURN(Client client,
                           Client::Connect({.socket_dir = options.socket_dir, .label = label, .grant = options.grant}));
    RNICD_ASSIGN_OR_RETURN(QueueEnd end, QueueEnd::Open(client, kDepth));
    return Side{std::move(client), std::move(end)};
  }
};

// The steps of the demo, one method each.
class FastRegisterDemo {
 public:
  FastRegisterDemo(const FastRegisterDemoOptions& options, const std::function<void(const DemoStep&)>& on_step,
                   FastRegisterReport& report)
      : options_(options), on_step_(on_step), report_(report), bytes_(options.pages * kNdkPageBytes) {}

  absl::Status Run() {
    report_.pages = options_.pages;
    report_.seed = options_.seed;
    report_.bytes = bytes_;
    RNICD_RETURN_IF_ERROR(OpenSides());
    RNICD_RETURN_IF_ERROR(GetMemory());
    RNICD_RETURN_IF_ERROR(ShufflePages());
    RNICD_RETURN_IF_ERROR(RegisterPages());
    RNICD_RETURN_IF_ERROR(PeerWrites());
    RNICD_RETURN_IF_ERROR(PeerReadsBack());
    RNICD_RETURN_IF_ERROR(InvalidateToken());
    RNICD_RETURN_IF_ERROR(PeerIsRefused());
    RNICD_RETURN_IF_ERROR(BothPairsAreDead());
    report_.held = true;
    return absl::OkStatus();
  }

 private:
  absl::Status OpenSides() {
    RNICD_ASSIGN_OR_RETURN(owner_, Side::Open(options_, "demo owner"));
    RNICD_ASSIGN_OR_RETURN(peer_, Side::Open(options_, "demo peer"));
    const Instant began = Instant::clock::now();
    RNICD_RETURN_IF_ERROR(ConnectEnds(owner_->end, peer_->end));
    Done("two sessions, owner " + std::to_string(owner_->client.session_id().value) + " and peer " +
             std::to_string(peer_->client.session_id().value) + ", connect a queue pair each",
         MicrosecondsSince(began));
    return absl::OkStatus();
  }

  absl::Status GetMemory() {
    RNICD_ASSIGN_OR_RETURN(memory_, Memory::Allocate(owner_->client, {.size = bytes_}));
    Done("the owner gets " + FormatBytes(bytes_) + " of memory, mapped at " + FormatAddress(memory_->address().value));
    RNICD_ASSIGN_OR_RETURN(buffer_, Memory::Allocate(peer_->client, {.size = bytes_}));
    RNICD_ASSIGN_OR_RETURN(buffer_region_, MemoryRegion::Register(*buffer_, kMrFlagLocalWrite));
    return absl::OkStatus();
  }

  absl::Status ShufflePages() {
    const Instant began = Instant::clock::now();
    RNICD_ASSIGN_OR_RETURN(mapping_, LogicalMapping::Build(*memory_));
    const uint64_t took = MicrosecondsSince(began);
    if (mapping_->pages().size() != options_.pages) {
      return Wrong("the mapping has " + std::to_string(mapping_->pages().size()) + " pages instead of " +
                   std::to_string(options_.pages));
    }
    Done("the adapter names its " + Pages() + " by logical addresses", took);
    order_ = ShuffledOrder(options_.pages, options_.seed);
    Done("shuffled with seed " + std::to_string(options_.seed) + " they are " + std::to_string(CountPieces(order_)) +
         " separate pieces of memory");
    return absl::OkStatus();
  }

  absl::Status RegisterPages() {
    RNICD_ASSIGN_OR_RETURN(
        region_, FastRegion::Create(owner_->client,
                                    {.max_pages = static_cast<uint32_t>(options_.pages), .remote_access = true}));
    // An address of the owner's choice, used by peers; it differs from the memory's address in this process.
    FastRegistration registration{.length = bytes_, .base_address = {(uint64_t{1} << 44) + bytes_}};
    for (const size_t page : order_) {
      registration.pages.push_back(mapping_->pages()[page]);
    }
    remote_.address = registration.base_address;
    const WorkChain chain =
        WorkChain().FastRegister(*region_, registration, {.flags = kOpFlagRemoteRead | kOpFlagRemoteWrite});
    const Instant began = Instant::clock::now();
    RNICD_ASSIGN_OR_RETURN(const PostOutcome outcome, owner_->end.Post(chain));
    RNICD_ASSIGN_OR_RETURN(const Completion completion, owner_->end.Finish());
    const uint64_t took = MicrosecondsSince(began);
    if (!completion.ok()) {
      return Wrong("the fast registration ended with " + std::string(NtStatusName(completion.status)));
    }
    remote_.token = outcome.TokenOf(0);
    report_.base_virtual_address = remote_.address.value;
    report_.remote_token = remote_.token.value;
    Done("ONE work request registers all " + Pages() + " in that order as one range: address " +
             FormatAddress(remote_.address.value) + ", token " + FormatToken(remote_.token.value),
         took);
    return absl::OkStatus();
  }

  absl::Status PeerWrites() {
    FillPattern(buffer_->bytes(), options_.seed);
    RNICD_ASSIGN_OR_RETURN(const uint64_t took, peer_->end.Write(Range()));
    Done("the peer writes " + FormatBytes(bytes_) + " through that token by RDMA", took);
    RNICD_RETURN_IF_ERROR(CheckMemory("after the peer's write "));
    Done("all " + std::to_string(bytes_) + " bytes are in the right page of the owner's own mapping");
    return absl::OkStatus();
  }

  absl::Status PeerReadsBack() {
    std::fill(buffer_->bytes().begin(), buffer_->bytes().end(), std::byte{0});
    RNICD_ASSIGN_OR_RETURN(const uint64_t took, peer_->end.Read(Range()));
    std::vector<size_t> plain_order(options_.pages);
    std::iota(plain_order.begin(), plain_order.end(), size_t{0});
    const absl::Status same = CheckPattern(buffer_->bytes(), plain_order, options_.seed);
    if (!same.ok()) {
      return Wrong("in what the peer read back " + std::string(same.message()));
    }
    Done("the peer reads all of it back, the same bytes", took);
    return absl::OkStatus();
  }

  absl::Status InvalidateToken() {
    const Instant began = Instant::clock::now();
    RNICD_RETURN_IF_ERROR(owner_->end.Run(WorkChain().Invalidate(*region_, {}), "the invalidation"));
    Done("the owner invalidates the registration", MicrosecondsSince(began));
    return absl::OkStatus();
  }

  absl::Status PeerIsRefused() {
    std::fill(buffer_->bytes().begin(), buffer_->bytes().end(), std::byte{0xEE});
    const Sge sge = Sge::Of(buffer_->bytes().first(kNdkPageBytes), buffer_region_->local_token());
    RNICD_ASSIGN_OR_RETURN(const Completion refused, peer_->end.Try(WorkChain().Write({sge}, remote_, {})));
    if (refused.status != NtStatus::kAccessViolation) {
      return Wrong("the write after the invalidation ended with " + std::string(NtStatusName(refused.status)) +
                   " instead of STATUS_ACCESS_VIOLATION");
    }
    RNICD_RETURN_IF_ERROR(CheckMemory("after the refused write "));
    Done("the peer writes again: refused with " + std::string(NtStatusName(refused.status)) +
         ", and not a byte of the owner's memory has changed");
    return absl::OkStatus();
  }

  absl::Status BothPairsAreDead() {
    for (Side* side : {&*owner_, &*peer_}) {
      const Instant deadline = Instant::clock::now() + kTimeout;
      for (;;) {
        RNICD_ASSIGN_OR_RETURN(const QueuePairState state, side->end.pair.State());
        if (state == QueuePairState::kError) {
          break;
        }
        if (Instant::clock::now() >= deadline) {
          return Wrong("a queue pair is alive after a request on it failed");
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    Done("both queue pairs are dead now, as on a card: a refused request ends the connection");
    return absl::OkStatus();
  }

  TransferRange Range() const {
    return {.buffer = buffer_->bytes(), .token = buffer_region_->local_token(), .remote = remote_};
  }

  absl::Status CheckMemory(const std::string& when) const {
    const absl::Status status = CheckPattern(memory_->bytes(), order_, options_.seed);
    return status.ok() ? status : Wrong(when + std::string(status.message()));
  }

  std::string Pages() const { return std::to_string(options_.pages) + (options_.pages == 1 ? " page" : " pages"); }

  void Done(std::string text, std::optional<uint64_t> microseconds = std::nullopt) {
    report_.steps.push_back(
        {.number = report_.steps.size() + 1, .text = std::move(text), .microseconds = microseconds});
    on_step_(report_.steps.back());
  }

  const FastRegisterDemoOptions& options_;
  const std::function<void(const DemoStep&)>& on_step_;
  FastRegisterReport& report_;
  const uint64_t bytes_;

  // The owner's memory, as known to the peer.
  RemoteMemory remote_;
  std::vector<size_t> order_;

  // In order of creation; they are destroyed in reverse order.
  std::optional<Side> owner_;
  std::optional<Side> peer_;
  std::optional<Memory> memory_;
  std::optional<LogicalMapping> mapping_;
  std::optional<FastRegion> region_;
  std::optional<Memory> buffer_;
  std::optional<MemoryRegion> buffer_region_;
};

}  // namespace

absl::Status RunFastRegisterDemo(const FastRegisterDemoOptions& options,
                                 const std::function<void(const DemoStep&)>& on_step, FastRegisterReport& report) {
  return FastRegisterDemo(options, on_step, report).Run();
}

}  // namespace rnicd::ctl
