// The roles that attack what the daemon bounds: memory beyond a limit, its front door, and the memory of rings.
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <iterator>
#include <string>
#include <vector>

#include "base/error_reason.h"
#include "base/files/unique_fd.h"
#include "base/units.h"
#include "tests/integration/http2_frames.h"
#include "tests/soak/role.h"
#include "tests/support/calls/fd_exchange.h"
#include "tests/support/calls/raw_client.h"
#include "tests/support/hostile/ring_attacks.h"
#include "tests/support/process/raw_socket.h"

namespace rnicd::soak {
namespace {

using test::BigEndian;
using test::Frame;
using test::FrameType;
using test::MemoryStub;
using test::RawClient;
using test::SessionStub;

constexpr char kOpenSession[] = "/rnicd.v1.SessionService/OpenSession";

std::string NameOf(const test::CallOutcome& outcome) {
  return outcome.has_detail ? std::string(RowOf(static_cast<ErrorReason>(outcome.detail.reason())).name)
                            : "grpc_code_" + std::to_string(outcome.code);
}

// Allocates memory, releases it and keeps its descriptor. Empty when it was refused.
UniqueFd KeepReleased(RawClient& client, const RoleOptions& options, uint64_t bytes) {
  v1::AllocateMemoryRequest request;
  request.set_size(bytes);
  const auto allocated = client.Call(&MemoryStub::AllocateMemory, request);
  if (!allocated.ok()) {
    ReportRefused(NameOf(allocated));
    return UniqueFd();
  }
  test::FdAnswer answer = test::FetchFd(options.socket_dir + "/fd.sock", allocated.response.fd_ticket());
  v1::ReleaseMemoryRequest release;
  release.set_memory_id(allocated.response.memory_id());
  client.Call(&MemoryStub::ReleaseMemory, release);
  return answer.ok() && !answer.descriptors.empty() ? std::move(answer.descriptors[0]) : UniqueFd();
}

// Bytes that a client repeats; each needs a stream of its own or none.
std::string Volley(Dice& dice, uint32_t stream) {
  switch (dice.Below(5)) {
    case 0:
      return Frame(FrameType::kSettings, 0, 0, "");
    case 1:
      return Frame(FrameType::kPing, 0, 0, std::string(8, 'p'));
    case 2:
      return test::WholeCall(kOpenSession, stream, "") + Frame(FrameType::kResetStream, 0, stream, BigEndian(8, 4));
    case 3:
      return test::HalfCall(kOpenSession, stream, 1 << 20, std::string(1000, 'm'));
    default:
      return Frame(FrameType::kHeaders, 0, stream, test::CallHeaders(kOpenSession));
  }
}

}  // namespace

void PlayKeeper(const RoleOptions& options, Dice& dice) {
  RawClient client(options.socket_dir + "/rpc.sock");
  v1::OpenSessionRequest request;
  request.set_label(options.role);
  client.Call(&SessionStub::OpenSession, request);
  std::vector<UniqueFd> kept;
  for (int tries = 0; tries < 12; ++tries) {
    kept.push_back(KeepReleased(client, options, (1 + dice.Below(16)) * kMiB));
  }
  ReportDone("kept_files", kept.size());
  const auto lifetime = static_cast<useconds_t>(dice.Below(1'000'000));
  // The heir has the descriptors, and exits by itself.
  const pid_t heir = dice.OneIn(2) ? _Fork() : -1;
  if (heir == 0) {
    usleep(lifetime);
    _exit(0);
  }
  if (heir > 0) {
    ReportHeir(heir);
    _exit(0);
  }
  usleep(lifetime);
}

void PlayBesieger(const RoleOptions& options, Dice& dice) {
  const auto end = Clock::now() + std::chrono::milliseconds(500 + dice.Below(1500));
  uint64_t bytes = 0;
  while (Clock::now() < end) {
    const UniqueFd socket = test::ConnectUnix(options.socket_dir + "/rpc.sock", SOCK_STREAM);
    std::string text = test::Hello();
    for (uint32_t stream = 1; stream < 2000; stream += 2) {
      text += Volley(dice, stream);
    }
    // What the daemon answers is not read. It may hang up, or stop reading.
    for (ssize_t sent = 0; !text.empty() && Clock::now() < end; text.erase(0, static_cast<size_t>(sent))) {
      sent = send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0) {
        break;
      }
      bytes += static_cast<uint64_t>(sent);
    }
    usleep(static_cast<useconds_t>(dice.Below(50'000)));
  }
  ReportDone("siege_bytes", bytes);
}

void PlayRaider(const RoleOptions& options, Dice& dice) {
  const std::vector<std::string> attacks = test::RingAttackNames();
  const auto end = Clock::now() + std::chrono::milliseconds(500 + dice.Below(1500));
  const uint64_t rounds = test::RunRingAttack(attacks[dice.Below(attacks.size())], options.socket_dir, dice.Any(),
                                              [end](uint64_t /*rounds*/) { return Clock::now() < end; });
  ReportDone("raids", rounds);
}

}  // namespace rnicd::soak
