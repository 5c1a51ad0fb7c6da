// Memory that the daemon keeps ready: who gets it, what of it is counted, and that nobody sees what another had.
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "client/cpp/memory_region.h"
#include "tests/integration/library/librnicd_fixture.h"
#include "tests/support/admin_client.h"
#include "tests/support/metrics_page.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kFile = 4 * kMiB;
constexpr uint64_t kNodeLimit = 16 * kMiB;

// Each byte is compared with the next.
bool IsZero(std::span<const std::byte> bytes) {
  return bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

class MemoryPool : public Librnicd {
 protected:
  MemoryPool()
      : Librnicd(
            {kMetricsOnFreePort, "--memory_pool=4KiB:4MiBx2", "--max_memory_bytes=" + std::to_string(kNodeLimit)}) {}

  v1::MemoryPoolStatus Status() { return AdminStatus(daemon()).memory_pool(); }
  void AwaitReady(uint32_t files) {
    ASSERT_TRUE(Eventually([&] { return Status().classes(0).ready() == files; })) << Status().DebugString();
  }
  // Until nobody has anything: there is no room for the memory of two tests, or two sessions.
  void AwaitRest() {
    ASSERT_TRUE(Eventually([&] {
      const v1::GetStatusResponse status = AdminStatus(daemon());
      return status.sessions() + status.sessions_ending() == 0;
    }));
  }
  static Memory MustAllocateAuto(const Client& client, uint64_t size) {
    return Must(Memory::Allocate(client, {.size = size}));
  }
};

TEST_F(MemoryPool, WhoAsksForItsSizeGetsWhatIsReadyAndItIsRefilled) {
  ASSERT_NO_FATAL_FAILURE(AwaitRest());
  AwaitReady(2);
  const v1::MemoryPoolStatus before = Status();
  const Client client = MustConnect();
  const Memory memory = MustAllocateAuto(client, kFile);
  EXPECT_TRUE(memory.from_pool());
  EXPECT_EQ(memory.page_size(), PageSize::k4KiB);
  EXPECT_TRUE(IsZero(memory.bytes()));
  std::memset(memory.bytes().data(), 1, memory.size());
  EXPECT_TRUE(MemoryRegion::Register(memory, 0).ok());
  const Memory cut = MustAllocateAuto(client, 3 * kMiB);
  EXPECT_TRUE(cut.from_pool());
  EXPECT_EQ(cut.size(), 3 * kMiB);
  EXPECT_FALSE(MustAllocateAuto(client, kClientPage).from_pool()) << "a file for this would be made in vain";
  AwaitReady(2);
  const uint64_t hits = before.services(0).hits() + 2;
  const uint64_t misses = before.services(0).misses() + 1;
  EXPECT_EQ(Status().services(0).hits(), hits);
  EXPECT_EQ(Status().services(0).misses(), misses);
  const MetricsPage page(HttpGet(AdminStatus(daemon()).metrics_address(), "/metrics").body);
  EXPECT_EQ(page.Value("rnicd_memory_pool_ready_bytes{page_size=\"4096\",numa_node=\"-1\"}"), 2.0 * kFile);
  EXPECT_EQ(page.Value("rnicd_memory_pool_hits_total{page_size=\"4096\"}"), hits);
  EXPECT_EQ(page.Value("rnicd_memory_pool_misses_total{page_size=\"4096\"}"), misses);
}

TEST_F(MemoryPool, ItsPartOfTheNodesLimitGivesWay) {
  ASSERT_NO_FATAL_FAILURE(AwaitRest());
  AwaitReady(2);
  const Client client = MustConnect();
  EXPECT_EQ(MustAllocateAuto(client, kNodeLimit).size(), kNodeLimit);
  AwaitReady(2);
}

// Each session fills what it gets with a pattern and ends; the next one looks for any pattern, in memory that was
// ready, cut, made longer and made new.
TEST_F(MemoryPool, WhatOneSessionHadIsNeverSeenByAnother) {
  uint64_t from_pool = 0;
  for (int generation = 1; generation <= 12; ++generation) {
    ASSERT_NO_FATAL_FAILURE(AwaitRest());
    if (generation % 4 == 1) {
      AwaitReady(2);
    }
    const Client client = MustConnect();
    std::vector<Memory> held;
    for (const uint64_t size : {kFile, 3 * kMiB, 5 * kMiB, kMiB}) {
      const Memory& memory = held.emplace_back(MustAllocateAuto(client, size));
      from_pool += memory.from_pool() ? 1 : 0;
      ASSERT_TRUE(IsZero(memory.bytes()));
      std::memset(memory.bytes().data(), generation, memory.size());
    }
  }
  EXPECT_GE(from_pool, 6u);
}

}  // namespace
}  // namespace rnicd::test
