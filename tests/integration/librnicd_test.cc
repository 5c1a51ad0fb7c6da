// The C++ library against the real daemon: what a workload does, and what happens to it when the daemon exits.
#include <fcntl.h>

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/access_rights.h"
#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/transport_failure.h"
#include "tests/support/admin_client.h"
#include "tests/support/daemon_process.h"
#include "tests/support/memory_file.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/tested_provider.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kClientPage = 4096;
constexpr uint64_t kMiB = 1 << 20;

absl::StatusOr<Client> ConnectTo(const DaemonProcess& daemon) {
  return Client::Connect({.socket_dir = daemon.socket_dir(), .label = "librnicd"});
}

class Librnicd : public DaemonTest {
 protected:
  explicit Librnicd(const std::vector<std::string>& flags = {}) : DaemonTest(flags) {}

  Client MustConnect() {
    auto client = ConnectTo(daemon());
    if (!client.ok()) {
      ADD_FAILURE() << client.status();
      std::abort();
    }
    return *std::move(client);
  }
  Memory MustAllocate(const Client& client, uint64_t size) {
    auto memory = Memory::Allocate(client, {.size = size});
    if (!memory.ok()) {
      ADD_FAILURE() << memory.status();
      std::abort();
    }
    return *std::move(memory);
  }
};

TEST_F(Librnicd, AllocatedMemoryIsRegisteredAndGivenBack) {
  const Client client = MustConnect();
  {
    const Memory memory = MustAllocate(client, 64 * kClientPage);
    ASSERT_EQ(memory.bytes().size(), 64 * kClientPage);
    std::fill(memory.bytes().begin(), memory.bytes().end(), std::byte{0x5a});
    const auto region = MemoryRegion::Register(memory, kMrFlagRemoteWrite);
    ASSERT_TRUE(region.ok()) << region.status();
    EXPECT_EQ(region->base_address().value, memory.address().value);
    EXPECT_EQ(region->length(), memory.size());
    EXPECT_NE(region->remote_token().value, 0u);
    const std::optional<v1::RegionInfo> seen = AdminRegion(daemon(), region->id().value);
    ASSERT_TRUE(seen.has_value());
    EXPECT_EQ(seen->flags(), kMrFlagRemoteWrite);
    EXPECT_EQ(seen->pages(), 64u);
  }
  const v1::GetStatusResponse status = AdminStatus(daemon());
  EXPECT_EQ(status.registered_pages(), 0u);
  EXPECT_EQ(Used(status, "memory_bytes"), 0u);
  EXPECT_EQ(status.sessions(), 1u);
}

TEST_F(Librnicd, OwnMemoryIsImported) {
  const Client client = MustConnect();
  const UniqueFd file = MakeSealableMemfd(kMiB);
  const auto memory = Memory::Import(client, file.get(), kMiB);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const auto part = memory->bytes().subspan(kClientPage, 100);
  const auto region = MemoryRegion::Register(*memory, part, kMrFlagRemoteRead);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_EQ(region->length(), 100u);
  EXPECT_EQ(region->base_address().value, memory->address().value + kClientPage);
}

TEST_F(Librnicd, RefusalsCarryReasonAndField) {
  const Client client = MustConnect();
  const auto unaligned = Memory::Allocate(client, {.size = 4097});
  EXPECT_TRUE(FailedWith(unaligned.status(), ErrorReason::MEMORY_SIZE_UNALIGNED)) << unaligned.status();
  EXPECT_EQ(ErrorInfoOf(unaligned.status()).field, "size");
  EXPECT_EQ(NtStatusOf(unaligned.status()), NtStatus::kInvalidParameter);
  const UniqueFd unsealable = MakeMemfd(kClientPage, 0);
  EXPECT_TRUE(
      FailedWith(Memory::Import(client, unsealable.get(), kClientPage).status(), ErrorReason::MEMORY_NOT_SEALABLE));
  const UniqueFd device(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(FailedWith(Memory::Import(client, device.get(), kClientPage).status(), ErrorReason::MEMORY_NOT_MEMORY));
  const Memory memory = MustAllocate(client, kClientPage);
  EXPECT_TRUE(FailedWith(MemoryRegion::Register(memory, 0x40).status(), ErrorReason::FLAGS_UNKNOWN));
  EXPECT_EQ(AdminStatus(daemon()).device_regions(), 0u);
}

TEST_F(Librnicd, BatchRegistersManyParts) {
  constexpr size_t kParts = 100;
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, kParts * kClientPage);
  std::vector<std::span<const std::byte>> parts;
  for (size_t index = 0; index < kParts; ++index) {
    parts.push_back(memory.bytes().subspan(index * kClientPage, kClientPage));
  }
  auto outcomes = MemoryRegion::RegisterBatch(memory, parts, kMrFlagLocalWrite);
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  std::set<uint32_t> tokens;
  std::vector<MemoryRegion> regions;
  for (auto& outcome : *outcomes) {
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    tokens.insert(outcome->local_token().value);
    regions.push_back(*std::move(outcome));
  }
  EXPECT_EQ(tokens.size(), kParts);
  EXPECT_EQ(AdminStatus(daemon()).device_regions(), kParts);
  EXPECT_TRUE(MemoryRegion::CloseBatch(std::move(regions)).ok());
  EXPECT_EQ(AdminStatus(daemon()).device_regions(), 0u);
}

TEST_F(Librnicd, CloseReportsWhatWasHeld) {
  Client client = MustConnect();
  const Memory memory = MustAllocate(client, 4 * kClientPage);
  const auto region = MemoryRegion::Register(memory, 0);
  ASSERT_TRUE(region.ok()) << region.status();
  const auto reclaimed = client.Close();
  ASSERT_TRUE(reclaimed.ok()) << reclaimed.status();
  EXPECT_EQ(reclaimed->regions, 1u);
  EXPECT_EQ(reclaimed->pinned_bytes, 4 * kClientPage);
  EXPECT_FALSE(client.GetSession().ok());
  // The mapping belongs to this process and stays usable.
  memory.bytes().front() = std::byte{1};
}

class LibrnicdPending : public Librnicd {
 protected:
  LibrnicdPending()
      : Librnicd({"--pending_threshold_bytes=4096", ProviderFlag("register_delay_us", std::chrono::milliseconds(50))}) {
  }
};

TEST_F(LibrnicdPending, AsynchronousRegistrationCallsBackOnce) {
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, kMiB);
  std::promise<absl::StatusOr<MemoryRegion>> registered;
  MemoryRegion::RegisterAsync(memory, memory.bytes(), kMrFlagRemoteRead,
                              [&](absl::StatusOr<MemoryRegion> region) { registered.set_value(std::move(region)); });
  auto outcome = registered.get_future();
  ASSERT_EQ(outcome.wait_for(kTimeout), std::future_status::ready);
  absl::StatusOr<MemoryRegion> region = outcome.get();
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_EQ(region->length(), kMiB);
  std::promise<absl::Status> closed;
  MemoryRegion::CloseAsync(*std::move(region), [&](const absl::Status& status) { closed.set_value(status); });
  auto close_outcome = closed.get_future();
  ASSERT_EQ(close_outcome.wait_for(kTimeout), std::future_status::ready);
  EXPECT_TRUE(close_outcome.get().ok());
  EXPECT_EQ(AdminStatus(daemon()).device_regions(), 0u);
}

TEST(LibrnicdWithoutDaemon, ConnectFailsAtOnce) {
  const auto client = Client::Connect({.socket_dir = "/nonexistent"});
  ASSERT_FALSE(client.ok());
  EXPECT_TRUE(IsTransportFailure(client.status())) << client.status();
}

TEST(LibrnicdWithoutDaemon, ClientLearnsThatTheDaemonIsGone) {
  auto daemon = DaemonProcess::Start();
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  std::promise<absl::Status> ended;
  auto client = Client::Connect({.socket_dir = (*daemon)->socket_dir(),
                                 .on_session_ended = [&](const absl::Status& why) { ended.set_value(why); }});
  ASSERT_TRUE(client.ok()) << client.status();
  {
    auto memory = Memory::Allocate(*client, {.size = kMiB});
    ASSERT_TRUE(memory.ok()) << memory.status();
    const auto region = MemoryRegion::Register(*memory, 0);
    ASSERT_TRUE(region.ok()) << region.status();
    (*daemon)->KillHard();
    auto why = ended.get_future();
    ASSERT_EQ(why.wait_for(kTimeout), std::future_status::ready);
    EXPECT_FALSE(why.get().ok());
    memory->bytes().front() = std::byte{1};
    EXPECT_FALSE(client->GetSession().ok());
  }
}

TEST(LibrnicdWithoutDaemon, ClientIsToldThatTheDaemonStops) {
  auto daemon = DaemonProcess::Start({.flags = {"--pending_threshold_bytes=4096"}});
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  std::promise<absl::Status> ended;
  auto client = Client::Connect({.socket_dir = (*daemon)->socket_dir(),
                                 .on_session_ended = [&](const absl::Status& why) { ended.set_value(why); }});
  ASSERT_TRUE(client.ok()) << client.status();
  // An arrived completion proves that the event stream is open.
  const auto memory = Memory::Allocate(*client, {.size = kClientPage});
  ASSERT_TRUE(memory.ok()) << memory.status();
  std::promise<absl::Status> registered;
  MemoryRegion::RegisterAsync(*memory, memory->bytes(), 0, [&](const absl::StatusOr<MemoryRegion>& region) {
    registered.set_value(region.status());
  });
  EXPECT_TRUE(registered.get_future().get().ok());
  const absl::Status stopped = (*daemon)->Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
  auto why = ended.get_future();
  ASSERT_EQ(why.wait_for(kTimeout), std::future_status::ready);
  const absl::Status status = why.get();
  EXPECT_TRUE(FailedWith(status, ErrorReason::SESSION_ENDING)) << status;
  EXPECT_EQ(ErrorInfoOf(status).field, "daemon_stopping");
}

}  // namespace
}  // namespace rnicd::test
