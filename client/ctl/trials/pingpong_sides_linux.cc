#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/secrets/random.h"
#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"
#include "client/ctl/trials/demo_pages.h"
#include "client/ctl/trials/peer_link_linux.h"
#include "client/ctl/trials/pingpong_message.h"
#include "client/ctl/trials/pingpong_sides.h"
#include "client/ctl/trials/queue_end.h"

namespace rnicd::ctl {
namespace {

// Requests are posted one at a time.
constexpr uint32_t kPingpongDepth = 4;

uint32_t NewSeed() { return static_cast<uint32_t>(KernelRandom().Next()); }

uint64_t MedianOf(std::vector<uint64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// What both sides have: a session, registered memory, and an end of the connection.
struct PingpongSide {
  Client client;
  Memory memory;
  MemoryRegion region;
  QueueEnd end;

  static absl::StatusOr<PingpongSide> Open(const PingpongOptions& options, uint32_t mr_flags) {
    RNICD_ASSIGN_OR_RETURN(Client client, Client::Connect({.socket_dir = options.socket_dir,
                                                           .label = "pingpong",
                                                           .grant = options.grant,
                                                           .adapter_name = options.adapter}));
    RNICD_ASSIGN_OR_RETURN(Memory memory, Memory::Allocate(client, {.size = options.bytes}));
    RNICD_ASSIGN_OR_RETURN(MemoryRegion region, MemoryRegion::Register(memory, mr_flags));
    RNICD_ASSIGN_OR_RETURN(QueueEnd end, QueueEnd::Open(client, kPingpongDepth));
    return PingpongSide{std::move(client), std::move(memory), std::move(region), std::move(end)};
  }

  // OK when the memory has this pattern.
  absl::Status Check(uint32_t seed, const std::string& where) const {
    std::vector<size_t> order(memory.size() / kNdkPageBytes);
    std::iota(order.begin(), order.end(), size_t{0});
    const absl::Status status = CheckPattern(memory.bytes(), order, seed);
    return status.ok() ? status : absl::DataLossError(where + " " + std::string(status.message()));
  }
};

// The steps of either side, one method each.
class Pingpong {
 public:
  Pingpong(const PingpongOptions& options, const std::function<void(const DemoStep&)>& on_step, PingpongReport& report)
      : options_(options), on_step_(on_step), report_(report) {}

  absl::Status Run() {
    report_.listened = options_.listens;
    report_.bytes = options_.bytes;
    RNICD_RETURN_IF_ERROR(options_.listens ? Listen() : Connect());
    report_.held = true;
    return absl::OkStatus();
  }

 private:
  absl::Status Listen() {
    RNICD_ASSIGN_OR_RETURN(PingpongSide side, PingpongSide::Open(options_, kMrFlagRemoteRead | kMrFlagRemoteWrite));
    Done("a session gets " + Bytes() + " at " + FormatAddress(side.region.base_address().value) +
         " and lets a peer read and write it: token " + FormatToken(side.region.remote_token().value));
    RNICD_ASSIGN_OR_RETURN(PeerLink link, AcceptPeer());
    RNICD_RETURN_IF_ERROR(GreetAsListener(side, link));
    return CheckAndAnswer(side, link);
  }

  // Nobody else is listened to when the peer is there.
  absl::StatusOr<PeerLink> AcceptPeer() {
    RNICD_ASSIGN_OR_RETURN(const PeerListener listener, PeerListener::Open(options_.where));
    Done("it listens on " + FormatHostPort(listener.address()) + " for one peer");
    return listener.Accept(options_.wait);
  }

  // The peer may send as soon as it has the hello, so the queue pair must be connected before.
  absl::Status GreetAsListener(PingpongSide& side, PeerLink& link) {
    RNICD_ASSIGN_OR_RETURN(const std::string line, link.Receive("its hello"));
    RNICD_ASSIGN_OR_RETURN(const PingpongHello hello, ParsePingpongHello(line, false));
    RNICD_RETURN_IF_ERROR(side.end.pair.Connect(hello.queue_pair));
    const PingpongOffer offer{.memory = {.address = side.region.base_address(), .token = side.region.remote_token()},
                              .bytes = side.region.length()};
    RNICD_RETURN_IF_ERROR(link.Send(PingpongHelloLine({.queue_pair = side.end.pair.address(), .offer = offer})));
    Done("the queue pair is connected to the peer's, which gets the token");
    return absl::OkStatus();
  }

  absl::Status CheckAndAnswer(PingpongSide& side, PeerLink& link) {
    RNICD_ASSIGN_OR_RETURN(const std::string written, link.Receive("the seed of what it wrote"));
    RNICD_ASSIGN_OR_RETURN(const uint32_t seed, ParsePingpongSeed(written));
    RNICD_RETURN_IF_ERROR(side.Check(seed, "after the peer's writes"));
    Done("the peer has written: all " + std::to_string(options_.bytes) +
         " bytes in this process are the pattern of its seed " + std::to_string(seed));
    const uint32_t own_seed = NewSeed();
    FillPattern(side.memory.bytes(), own_seed);
    RNICD_RETURN_IF_ERROR(link.Send(PingpongSeedLine(own_seed)));
    RNICD_ASSIGN_OR_RETURN(const std::string read, link.Receive("the seed of what it read"));
    RNICD_ASSIGN_OR_RETURN(const uint32_t read_seed, ParsePingpongSeed(read));
    if (read_seed != own_seed) {
      return absl::DataLossError("the peer read the pattern of seed " + std::to_string(read_seed) + " instead of " +
                                 std::to_string(own_seed));
    }
    Done("this process wrote the pattern of seed " + std::to_string(own_seed) +
         " there, and the peer says that it read it");
    return absl::OkStatus();
  }

  absl::Status Connect() {
    RNICD_ASSIGN_OR_RETURN(PingpongSide side, PingpongSide::Open(options_, kMrFlagLocalWrite));
    Done("a session gets " + Bytes() + ", for its own requests only");
    Instant began = Instant::clock::now();
    RNICD_ASSIGN_OR_RETURN(PeerLink link, PeerLink::Connect(options_.where, options_.wait));
    Done("the peer listens on " + FormatHostPort(options_.where), MicrosecondsSince(began));
    began = Instant::clock::now();
    RNICD_ASSIGN_OR_RETURN(const RemoteMemory remote, GreetAsConnector(side, link));
    Done("the queue pair is connected to the peer's, which offers its memory at " +
             FormatAddress(remote.address.value) + ": token " + FormatToken(remote.token.value),
         MicrosecondsSince(began));
    RNICD_ASSIGN_OR_RETURN(const uint32_t seed, WriteAndReadBack(side, remote));
    RNICD_RETURN_IF_ERROR(link.Send(PingpongSeedLine(seed)));
    return ReadAnswer(side, link, remote);
  }

  absl::StatusOr<RemoteMemory> GreetAsConnector(PingpongSide& side, PeerLink& link) const {
    RNICD_RETURN_IF_ERROR(link.Send(PingpongHelloLine({.queue_pair = side.end.pair.address(), .offer = std::nullopt})));
    RNICD_ASSIGN_OR_RETURN(const std::string line, link.Receive("its hello"));
    RNICD_ASSIGN_OR_RETURN(const PingpongHello hello, ParsePingpongHello(line, true));
    if (hello.offer->bytes != options_.bytes) {
      return absl::FailedPreconditionError("the peer offers " + std::to_string(hello.offer->bytes) +
                                           " bytes, and this side has " + std::to_string(options_.bytes) +
                                           ": give both the same --size");
    }
    RNICD_RETURN_IF_ERROR(side.end.pair.Connect(hello.queue_pair));
    return hello.offer->memory;
  }

  // Returns the seed of the last round.
  absl::StatusOr<uint32_t> WriteAndReadBack(PingpongSide& side, const RemoteMemory& remote) {
    std::vector<uint64_t> writes;
    std::vector<uint64_t> reads;
    uint32_t seed = NewSeed();
    for (uint64_t round = 0; round < options_.rounds; ++round) {
      FillPattern(side.memory.bytes(), ++seed);
      RNICD_ASSIGN_OR_RETURN(writes.emplace_back(), side.end.Write(RangeOf(side, remote)));
      std::ranges::fill(side.memory.bytes(), std::byte{0});
      RNICD_ASSIGN_OR_RETURN(reads.emplace_back(), side.end.Read(RangeOf(side, remote)));
      RNICD_RETURN_IF_ERROR(side.Check(seed, "in what was written and read back"));
    }
    report_.rounds = options_.rounds;
    report_.write_us = MedianOf(std::move(writes));
    report_.read_us = MedianOf(std::move(reads));
    Done(Counted(report_.rounds, "round") + ": all " + std::to_string(options_.bytes) +
         " bytes written, read back and compared; median of a write " + std::to_string(report_.write_us) +
         " us, of a read " + std::to_string(report_.read_us) + " us");
    return seed;
  }

  absl::Status ReadAnswer(PingpongSide& side, PeerLink& link, const RemoteMemory& remote) {
    RNICD_ASSIGN_OR_RETURN(const std::string answer, link.Receive("the seed of its own bytes"));
    RNICD_ASSIGN_OR_RETURN(const uint32_t seed, ParsePingpongSeed(answer));
    RNICD_ASSIGN_OR_RETURN(const uint64_t took, side.end.Read(RangeOf(side, remote)));
    RNICD_RETURN_IF_ERROR(side.Check(seed, "in what the peer wrote"));
    RNICD_RETURN_IF_ERROR(link.Send(PingpongSeedLine(seed)));
    Done("the peer found them and wrote the pattern of seed " + std::to_string(seed) + ", which this side has read",
         took);
    return absl::OkStatus();
  }

  static TransferRange RangeOf(const PingpongSide& side, const RemoteMemory& remote) {
    return {.buffer = side.memory.bytes(), .token = side.region.local_token(), .remote = remote};
  }

  std::string Bytes() const { return FormatBytes(options_.bytes) + " of memory"; }

  void Done(std::string text, std::optional<uint64_t> microseconds = std::nullopt) {
    report_.steps.push_back(
        {.number = report_.steps.size() + 1, .text = std::move(text), .microseconds = microseconds});
    on_step_(report_.steps.back());
  }

  const PingpongOptions& options_;
  const std::function<void(const DemoStep&)>& on_step_;
  PingpongReport& report_;
};

}  // namespace

absl::Status RunPingpong(const PingpongOptions& options, const std::function<void(const DemoStep&)>& on_step,
                         PingpongReport& report) {
  return Pingpong(options, on_step, report).Run();
}

}  // namespace rnicd::ctl
