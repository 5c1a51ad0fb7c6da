// Memory objects: allocated or imported, mapped by their owner, sealed, registered, released.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/calls/fd_exchange.h"
#include "tests/support/process/child_client.h"
#include "tests/support/process/memory_file.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kSize = 16 * kPage;
constexpr uint64_t kHugePage = 2 << 20;

class MemoryObjects : public DaemonTest {};

// Expects that the owner of a sealed file cannot remove its pages in any way.
void ExpectPagesCannotGo(int fd, const SharedMapping& mapping) {
  EXPECT_NE(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kPage), 0) << "a hole was punched";
  EXPECT_EQ(errno, EPERM);
  EXPECT_NE(ftruncate(fd, kPage), 0) << "the file was cut";
  EXPECT_EQ(errno, EPERM);
  EXPECT_NE(madvise(mapping.bytes().data(), kPage, MADV_REMOVE), 0) << "a hole was punched through the mapping";
  const SharedMapping late(fd, kSize);
  EXPECT_TRUE(late.bytes().empty()) << "a new writable mapping was made";
  const char byte = 1;
  EXPECT_NE(pwrite(fd, &byte, 1, 0), 1) << "the file was written through the descriptor";
  EXPECT_NE(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0) << "the set of seals is not final";
}

TEST_F(MemoryObjects, AllocatedIsFetchedMappedSealedAndRegistered) {
  TestSession session(daemon());
  const v1::AllocateMemoryResponse memory = session.Allocate(kSize);
  EXPECT_EQ(memory.fd_ticket().size(), 16u);
  EXPECT_GT(memory.ticket_lifetime_ms(), 0u);
  const UniqueFd file = session.Fetch(memory.fd_ticket());
  EXPECT_EQ(lseek(file.get(), 0, SEEK_END), static_cast<off_t>(kSize));
  const SharedMapping mapping(file.get(), kSize);
  ASSERT_EQ(mapping.bytes().size(), kSize);
  const auto sealed = session.Seal(memory.memory_id());
  ExpectOk(sealed);
  EXPECT_EQ(sealed.response.size(), kSize);
  EXPECT_EQ(sealed.response.page_size(), v1::PAGE_SIZE_4KIB);
  const auto registered = session.Register(
      RegisterRequest(session.CreateMr(), {MdlEntry(memory.memory_id(), 0, kSize, mapping.address())}, kSize));
  ExpectOk(registered);
  EXPECT_EQ(registered.response.registration().base_virtual_address(), mapping.address());
}

TEST_F(MemoryObjects, SealedAllocatedMemoryKeepsItsPages) {
  TestSession session(daemon());
  const v1::AllocateMemoryResponse memory = session.Allocate(kSize);
  const UniqueFd file = session.Fetch(memory.fd_ticket());
  const SharedMapping mapping(file.get(), kSize);
  ExpectOk(session.Seal(memory.memory_id()));
  ExpectPagesCannotGo(file.get(), mapping);
  // The mapping made before the seal still works.
  mapping.bytes().back() = std::byte{0x42};
  EXPECT_EQ(mapping.bytes().back(), std::byte{0x42});
}

TEST_F(MemoryObjects, SealedImportedMemoryKeepsItsPages) {
  TestSession session(daemon());
  const UniqueFd file = MakeSealableMemfd(kSize);
  const SharedMapping mapping(file.get(), kSize);
  mapping.bytes().front() = std::byte{0x17};
  const v1::ImportMemoryResponse memory = session.Import(kSize);
  ExpectFdOk(SendFd(daemon().fd_socket(), memory.fd_ticket(), file.get()));
  ExpectOk(session.Seal(memory.memory_id()));
  ExpectPagesCannotGo(file.get(), mapping);
  mapping.bytes().back() = std::byte{0x42};
  EXPECT_EQ(mapping.bytes().front(), std::byte{0x17});
  session.RegisterWhole(session.CreateMr(), memory.memory_id(), kSize);
}

// Huge pages come from the node's pool, which on most machines that run this test is empty.
TEST_F(MemoryObjects, HugePagesComeFromThePoolOrAreRefused) {
  uint64_t free_pages = 0;
  std::ifstream("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") >> free_pages;
  TestSession session(daemon());
  v1::AllocateMemoryRequest request;
  request.set_page_size(v1::PAGE_SIZE_2MIB);
  request.set_size(kHugePage + kPage);
  ExpectRefused(session.Call(&MemoryStub::AllocateMemory, request), ErrorReason::MEMORY_SIZE_UNALIGNED, "size");
  request.set_size((free_pages + 1) * kHugePage);
  const auto too_much = session.Call(&MemoryStub::AllocateMemory, request);
  EXPECT_EQ(too_much.code, grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(too_much.detail.reason(), v1::ERROR_REASON_MEMORY_PAGES_UNAVAILABLE);
  EXPECT_EQ(session.Use("memory_bytes").used(), 0u);
  if (free_pages > 0) {
    request.set_size(kHugePage);
    ExpectOk(session.Call(&MemoryStub::AllocateMemory, request));
  }
}

TEST_F(MemoryObjects, ClientThatDiesBeforeTheSealLeavesNothing) {
  const auto client = ChildClient::Start(daemon(), WorkloadUid());
  ASSERT_NE(client, nullptr);
  client->MustRun("open");
  client->MustRun("ticket 65536");
  EXPECT_EQ(AdminStatus(daemon()).fd_tickets(), 1u);
  client->KillHard();
  ExpectNothingHeld(daemon(), idle());
}

}  // namespace
}  // namespace rnicd::test
