// Properties 10 and 11: memory is reclaimed however its owner ends, and no peer reaches it after that.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/integration/trust_fixture.h"
#include "tests/support/process/child_client.h"

namespace rnicd::test {
namespace {

// --- 10: death in every form ---

constexpr uint64_t kPagesOfAClient = 64;
constexpr uint64_t kRegionsOfAClient = 8;
constexpr uint64_t kRegisteredPagesOfAClient = kPagesOfAClient * kRegionsOfAClient;

// A client that holds allocated or imported memory, registered more than once, and a queue pair.
std::unique_ptr<ChildClient> Holder(DaemonProcess& daemon, bool imports) {
  auto client = ChildClient::Start(daemon, WorkloadUid());
  if (client != nullptr) {
    const std::string size = std::to_string(kPagesOfAClient * kPage);
    client->MustRun("open holder");
    const std::string memory = client->MustRun((imports ? "import " : "alloc ") + size).values["memory"];
    client->MustRun("touch " + size);
    client->MustRun("regions " + memory + " " + size + " 7 " + std::to_string(kRegionsOfAClient));
    client->MustRun("qp");
  }
  return client;
}

void ExpectNoPageLeft(DaemonProcess& daemon) {
  EXPECT_TRUE(Eventually([&] { return AdminStatus(daemon).sessions() == 0; }));
  const v1::GetStatusResponse status = AdminStatus(daemon);
  EXPECT_EQ(status.registered_pages(), 0u);
  EXPECT_EQ(status.device_regions(), 0u);
  for (const char* const resource : {"pinned_bytes", "registered_bytes", "memory_bytes", "memory_objects", "regions"}) {
    EXPECT_EQ(Used(status, resource), 0u) << resource;
  }
}

// SIGKILL is also what the kernel sends when memory runs out.
TEST_F(Trust, Property10ADeadClientLeavesNoPage) {
  for (const int signal : {SIGKILL, SIGTERM, SIGHUP}) {
    const auto allocated = Holder(daemon(), false);
    const auto imported = Holder(daemon(), true);
    ASSERT_TRUE(allocated != nullptr && imported != nullptr);
    EXPECT_EQ(AdminStatus(daemon()).registered_pages(), 2 * kRegisteredPagesOfAClient);
    for (const auto& client : {allocated.get(), imported.get()}) {
      client->process().Signal(signal);
      const auto end = client->process().WaitForEnd();
      ASSERT_TRUE(end.has_value());
      EXPECT_EQ(end->signal, signal);
    }
    ExpectNoPageLeft(daemon());
  }
}

// The kernel does not report that a process was stopped. Its memory stays charged, and is reclaimed when it is killed.
TEST_F(Trust, Property10AStoppedClientKeepsItsPagesUntilItIsKilled) {
  const auto stopped = Holder(daemon(), false);
  const auto running = Holder(daemon(), true);
  ASSERT_TRUE(stopped != nullptr && running != nullptr);
  ASSERT_TRUE(stopped->process().StopAndWait());
  running->KillHard();
  EXPECT_TRUE(Eventually([&] { return AdminStatus(daemon()).sessions() == 1; }));
  const v1::GetStatusResponse status = AdminStatus(daemon());
  EXPECT_EQ(status.registered_pages(), kRegisteredPagesOfAClient);
  EXPECT_EQ(Used(status, "pinned_bytes"), kPagesOfAClient * kPage);
  // Nothing was taken back meanwhile: it goes on in its session.
  stopped->process().Signal(SIGCONT);
  stopped->MustRun("session");
  ASSERT_TRUE(stopped->process().StopAndWait());
  stopped->KillHard();
  ExpectNoPageLeft(daemon());
}

TEST_F(Trust, Property10ManyThatDieAtOnceLeaveNoPage) {
  constexpr int kClients = 12;
  std::vector<std::unique_ptr<ChildClient>> clients;
  for (int index = 0; index < kClients; ++index) {
    clients.push_back(Holder(daemon(), index % 2 == 0));
    ASSERT_NE(clients.back(), nullptr);
    if (index % 3 == 0) {
      ASSERT_TRUE(clients.back()->process().StopAndWait());
    }
  }
  EXPECT_EQ(AdminStatus(daemon()).registered_pages(), kClients * kRegisteredPagesOfAClient);
  for (const auto& client : clients) {
    client->process().Signal(SIGKILL);
  }
  for (const auto& client : clients) {
    EXPECT_TRUE(client->process().WaitForEnd().has_value());
  }
  ExpectNoPageLeft(daemon());
}

// --- 11: no use after unmap ---

constexpr char kText[] = "of the object";
constexpr size_t kTextBytes = sizeof(kText) - 1;
constexpr char kOtherText[] = "of the process";

// The owner's view of a memory object: a file and a mapping, both of which the owner may release at any time.
struct OwnedMemory {
  uint64_t id = 0;
  UniqueFd file;
  std::unique_ptr<SharedMapping> mapping;
};

OwnedMemory Allocated(TestSession& session, DaemonProcess&) {
  const v1::AllocateMemoryResponse memory = session.Allocate(kPage);
  OwnedMemory owned{.id = memory.memory_id(), .file = session.Fetch(memory.fd_ticket()), .mapping = nullptr};
  owned.mapping = std::make_unique<SharedMapping>(owned.file.get(), kPage);
  return owned;
}

OwnedMemory Imported(TestSession& session, DaemonProcess& daemon) {
  const v1::ImportMemoryResponse memory = session.Import(kPage);
  OwnedMemory owned{.id = memory.memory_id(), .file = MakeSealableMemfd(kPage), .mapping = nullptr};
  owned.mapping = std::make_unique<SharedMapping>(owned.file.get(), kPage);
  ExpectFdOk(SendFd(daemon.fd_socket(), memory.fd_ticket(), owned.file.get()));
  return owned;
}

using MakeMemory = std::function<OwnedMemory(TestSession&, DaemonProcess&)>;

// ReDMArk's attack A6: an owner frees memory that it registered for others.
void UnmapWhileRegistered(DaemonProcess& daemon, const MakeMemory& make) {
  ConnectedPair pair(daemon);
  SharedPage sink(pair.near_session, "before");
  OwnedMemory owned = make(pair.far_session, daemon);
  ASSERT_EQ(owned.mapping->bytes().size(), kPage);
  std::memcpy(owned.mapping->bytes().data(), kText, kTextBytes);
  ExpectOk(pair.far_session.Seal(owned.id));
  const uint64_t address = owned.mapping->address();
  v1::RegisterMrRequest request =
      RegisterRequest(pair.far_session.CreateMr(), {MdlEntry(owned.id, 0, kPage, address)}, kPage);
  request.set_flags(kEveryMrRight);
  const auto registered = pair.far_session.Register(request);
  ASSERT_TRUE(ExpectOk(registered));
  const uint32_t token = registered.response.registration().remote_token();

  // The process maps other memory at that address afterwards.
  owned.mapping.reset();
  owned.file.Reset(-1);
  void* const place = reinterpret_cast<void*>(address);
  void* const other =
      mmap(place, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (other != MAP_FAILED) {
    std::memcpy(other, kOtherText, sizeof(kOtherText));
  }
  EXPECT_EQ(ReadFrom(pair.near, sink, address, token, kTextBytes), kStatusSuccess);
  EXPECT_EQ(sink.memory.Text(0, kTextBytes), kText) << "a peer reads the object's bytes and nothing else";
  pair.near.MustRun(InlineWriteRequest("by the peer..", address, token));
  if (other != MAP_FAILED) {
    EXPECT_EQ(std::memcmp(other, kOtherText, sizeof(kOtherText)), 0);
    munmap(other, kPage);
  }

  // The object cannot be released while a peer can reach it, and afterwards no peer can.
  ExpectRefused(pair.far_session.Release(owned.id), ErrorReason::MEMORY_IN_USE, "memory_id");
  ExpectOk(pair.far_session.Deregister(request.mr_id()));
  ExpectOk(pair.far_session.Release(owned.id));
  sink.memory.SetText(0, "before");
  EXPECT_EQ(ReadFrom(pair.near, sink, address, token, kTextBytes), kAccessViolation);
  EXPECT_EQ(sink.memory.Text(0, 6), "before");
}

TEST_F(Trust, Property11UnmappedMemoryOfTheDaemonsMakingIsTheObjectsUntilItIsDeregistered) {
  UnmapWhileRegistered(daemon(), Allocated);
}

TEST_F(Trust, Property11UnmappedMemoryOfTheClientsMakingIsTheObjectsUntilItIsDeregistered) {
  UnmapWhileRegistered(daemon(), Imported);
}

// After the seal no process can remove or replace the pages of a registration.
TEST_F(Trust, Property11PagesCannotBeTakenAwayUnderARegistration) {
  ConnectedPair pair(daemon());
  SharedPage sink(pair.near_session, "before");
  OwnedMemory owned = Imported(pair.far_session, daemon());
  std::memcpy(owned.mapping->bytes().data(), kText, kTextBytes);
  ExpectOk(pair.far_session.Seal(owned.id));
  const uint32_t token =
      pair.far_session.RegisterWhole(pair.far_session.CreateMr(), owned.id, kPage, kEveryMrRight).remote_token();
  EXPECT_NE(ftruncate(owned.file.get(), 0), 0);
  EXPECT_NE(fallocate(owned.file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kPage), 0);
  EXPECT_NE(madvise(owned.mapping->bytes().data(), kPage, MADV_REMOVE), 0);
  EXPECT_EQ(ReadFrom(pair.near, sink, kBase, token, kTextBytes), kStatusSuccess);
  EXPECT_EQ(sink.memory.Text(0, kTextBytes), kText);
}

}  // namespace
}  // namespace rnicd::test
