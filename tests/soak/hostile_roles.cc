// The roles that use the sockets without librnicd, correctly or incorrectly.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "base/error_reason.h"
#include "base/files/unique_fd.h"
#include "base/units.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "tests/integration/half_call.h"
#include "tests/soak/role.h"
#include "tests/support/calls/fd_exchange.h"
#include "tests/support/calls/raw_client.h"
#include "tests/support/process/raw_socket.h"

namespace rnicd::soak {
namespace {

using test::MemoryStub;
using test::RawClient;
using test::SessionStub;

std::string RpcPath(const RoleOptions& options) { return options.socket_dir + "/rpc.sock"; }
std::string FdPath(const RoleOptions& options) { return options.socket_dir + "/fd.sock"; }

std::string ReasonOf(const test::CallOutcome& outcome) {
  return outcome.has_detail ? std::string(RowOf(static_cast<ErrorReason>(outcome.detail.reason())).name)
                            : "grpc_code_" + std::to_string(outcome.code);
}

// Counts a refusal; true if the call succeeded.
bool Allowed(const test::CallOutcome& outcome) {
  if (!outcome.ok()) {
    ReportRefused(ReasonOf(outcome));
  }
  return outcome.ok();
}

bool OpenSession(RawClient& client, const RoleOptions& options) {
  v1::OpenSessionRequest request;
  request.set_label(options.role);
  const bool opened = Allowed(client.Call(&SessionStub::OpenSession, request));
  ReportDone("sessions", opened ? 1 : 0);
  return opened;
}

std::string RandomBytes(Dice& dice, uint64_t count_max) {
  std::string bytes(dice.Below(count_max), '\0');
  for (char& c : bytes) {
    c = static_cast<char>(dice.Any());
  }
  return bytes;
}

// The liar's valid objects, so that a request can mix valid and invalid ids.
struct Own {
  uint64_t memory_id = 0;
  uint64_t mr_id = 0;
};

Own MakeOwn(RawClient& client) {
  Own own;
  v1::AllocateMemoryRequest memory;
  memory.set_size(kNdkPageBytes);
  own.memory_id = client.Call(&MemoryStub::AllocateMemory, memory).response.memory_id();
  v1::OpenAdapterRequest adapter;
  adapter.set_adapter_name("soft0");
  adapter.mutable_version()->set_major(2);
  v1::CreatePdRequest pd;
  pd.set_adapter_id(client.Call(&test::AdapterStub::OpenAdapter, adapter).response.adapter_id());
  v1::CreateMrRequest mr;
  mr.set_pd_id(client.Call(&MemoryStub::CreatePd, pd).response.pd_id());
  own.mr_id = client.Call(&MemoryStub::CreateMr, mr).response.mr_id();
  return own;
}

// Ids are assigned in order, so that small numbers probably belong to another client; the rest are unused.
uint64_t SomeId(Dice& dice, const Own& own) {
  const uint64_t id = dice.OneIn(4) ? dice.Any() : 1 + dice.Below(100'000);
  return id == own.memory_id || id == own.mr_id ? id + 1'000'000'000 : id;
}

void MustFail(const char* what, const test::CallOutcome& outcome) {
  if (Allowed(outcome)) {
    ReportWrong(std::string("liar: was allowed: ") + what);
  }
}

void LieAboutIds(RawClient& client, const Own& own, Dice& dice) {
  v1::SealMemoryRequest seal;
  seal.set_memory_id(SomeId(dice, own));
  MustFail("to seal memory with an unused or foreign id", client.Call(&MemoryStub::SealMemory, seal));
  v1::ReleaseMemoryRequest release;
  release.set_memory_id(SomeId(dice, own));
  MustFail("to release it", client.Call(&MemoryStub::ReleaseMemory, release));
  v1::DeregisterMrRequest deregister;
  deregister.set_mr_id(SomeId(dice, own));
  MustFail("to deregister a region with an unused or foreign id", client.Call(&MemoryStub::DeregisterMr, deregister));
  v1::CloseMrRequest close;
  close.set_mr_id(SomeId(dice, own));
  MustFail("to close it", client.Call(&MemoryStub::CloseMr, close));
}

void LieAboutChains(RawClient& client, const Own& own, Dice& dice) {
  std::vector<v1::MdlEntry> chain;
  for (uint64_t entries = dice.Below(6); entries > 0; --entries) {
    chain.push_back(test::MdlEntry(dice.OneIn(2) ? own.memory_id : SomeId(dice, own), dice.Any() >> dice.Below(64),
                                   dice.Any() >> dice.Below(64), dice.Any()));
  }
  // An entry outside of the only page.
  chain.push_back(test::MdlEntry(own.memory_id, kNdkPageBytes, 1 + dice.Below(1 << 20), dice.Any()));
  MustFail("a chain outside of its memory",
           client.Call(&MemoryStub::RegisterMr, test::RegisterRequest(own.mr_id, chain, dice.Any() >> dice.Below(64))));
}

// A call that is well formed except that its bytes are not a valid message.
void LieAboutMessages(const RoleOptions& options, Dice& dice) {
  static constexpr const char* kMethods[] = {
      "/rnicd.v1.SessionService/OpenSession",   "/rnicd.v1.MemoryService/RegisterMr", "/rnicd.v1.QueueService/Post",
      "/rnicd.v1.MemoryService/AllocateMemory", "/rnicd.v1.AdminService/GetStatus",   "/no.Service/NoMethod"};
  grpc::GenericStub stub(grpc::CreateChannel("unix:" + RpcPath(options), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + test::kTimeout);
  grpc::CompletionQueue queue;
  const std::string bytes = "\xff" + RandomBytes(dice, 2000);
  const grpc::Slice slice(bytes);
  const auto call =
      stub.PrepareUnaryCall(&context, kMethods[dice.Below(std::size(kMethods))], grpc::ByteBuffer(&slice, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (status.ok()) {
    ReportWrong("liar: a malformed message was accepted");
  }
  ReportRefused("grpc_code_" + std::to_string(status.error_code()));
}

// Half a call, a whole preface and half a frame, or noise; sometimes waits before closing the connection.
void LieAboutFrames(const RoleOptions& options, Dice& dice) {
  const UniqueFd socket = test::ConnectUnix(RpcPath(options), SOCK_STREAM);
  std::string bytes =
      test::HalfCallBytes("/rnicd.v1.MemoryService/RegisterMr", static_cast<uint32_t>(dice.Any() >> dice.Below(64)),
                          static_cast<uint32_t>(dice.Below(3000)));
  if (dice.OneIn(3)) {
    bytes.resize(dice.Below(bytes.size()));
  }
  if (dice.OneIn(3)) {
    bytes[dice.Below(bytes.size() + 1) % std::max<size_t>(bytes.size(), 1)] = static_cast<char>(dice.Any());
  }
  if (dice.OneIn(4)) {
    bytes = RandomBytes(dice, 5000);
  }
  test::SendBytes(socket.get(), bytes);
  if (dice.OneIn(3)) {
    usleep(static_cast<useconds_t>(dice.Below(300'000)));
  }
  ReportDone("broken_streams");
}

void LieAboutDescriptors(const RoleOptions& options, Dice& dice) {
  std::vector<UniqueFd> owned;
  std::vector<int> descriptors;
  for (uint64_t count = dice.Below(12); count > 0; --count) {
    owned.emplace_back(dice.OneIn(2) ? memfd_create("soak", MFD_ALLOW_SEALING) : open("/dev/null", O_RDWR | O_CLOEXEC));
    descriptors.push_back(owned.back().get());
  }
  const std::string bytes =
      dice.OneIn(2) ? RandomBytes(dice, 200)
                    : test::FdRequestBytes(RandomBytes(dice, 64), static_cast<uint32_t>(descriptors.size()));
  if (test::ExchangeFd(FdPath(options), bytes, descriptors).ok()) {
    ReportWrong("liar: a made-up ticket was accepted");
  }
  ReportDone("broken_packets");
}

}  // namespace

void PlayFlooder(const RoleOptions& options, Dice& dice) {
  RawClient client(RpcPath(options));
  OpenSession(client, options);
  uint64_t answered = 0;
  uint64_t limited = 0;
  const auto end = Clock::now() + std::chrono::milliseconds(1000 + dice.Below(1500));
  while (Clock::now() < end) {
    const auto outcome = client.Call(&SessionStub::GetSession, {});
    if (outcome.ok()) {
      ++answered;
    } else if (ReasonOf(outcome) == "RATE_LIMITED") {
      ++limited;
    } else if (!Allowed(outcome)) {
      break;
    }
  }
  ReportDone("flood_calls", answered);
  ReportRefused("RATE_LIMITED", limited);
}

void PlayLiar(const RoleOptions& options, Dice& dice) {
  RawClient client(RpcPath(options));
  if (!OpenSession(client, options)) {
    return;
  }
  const Own own = MakeOwn(client);
  for (int lies = 0; lies < 12; ++lies) {
    switch (dice.Below(5)) {
      case 0:
        LieAboutIds(client, own, dice);
        break;
      case 1:
        LieAboutChains(client, own, dice);
        break;
      case 2:
        LieAboutMessages(options, dice);
        break;
      case 3:
        LieAboutFrames(options, dice);
        break;
      default:
        LieAboutDescriptors(options, dice);
    }
  }
  ReportDone("lies", 12);
}

void PlayForker(const RoleOptions& options, Dice& dice) {
  RawClient client(RpcPath(options));
  if (OpenSession(client, options)) {
    MakeOwn(client);
  }
  const auto lifetime = static_cast<unsigned>(1 + dice.Below(3));
  // _Fork skips gRPC's fork handlers: the child only keeps the sockets, and exits by itself.
  const pid_t heir = _Fork();
  if (heir == 0) {
    sleep(lifetime);
    _exit(0);
  }
  ReportHeir(heir);
  ReportDone("forks");
  _exit(0);
}

void PlayReconnector(const RoleOptions& options, Dice& dice) {
  const auto end = Clock::now() + std::chrono::milliseconds(500 + dice.Below(1000));
  uint64_t connections = 0;
  for (; Clock::now() < end; ++connections) {
    if (dice.OneIn(4)) {
      RawClient client(RpcPath(options));
      OpenSession(client, options);
    } else {
      const bool rpc = dice.OneIn(2);
      test::ConnectUnix(rpc ? RpcPath(options) : FdPath(options), rpc ? SOCK_STREAM : SOCK_SEQPACKET);
    }
  }
  ReportDone("connections", connections);
}

}  // namespace rnicd::soak
