#include "provider/soft/soft_region_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "base/status.h"

namespace rnicd::provider {
namespace {

constexpr uint64_t kBase = 0x100000;
constexpr uint64_t kPage = kNdkPageBytes;
constexpr uint64_t kDomain = 5;
constexpr AccessRights kAll{.local_write = true, .remote_read = true, .remote_write = true};

using Page = std::array<std::byte, kPage>;

class SoftRegionMemoryTest : public ::testing::Test {
 protected:
  std::array<Page, 2> pages_{};
  // Two pages, in the order second, first, so that a mistake in the order shows.
  std::array<std::span<std::byte>, 2> runs_{std::span<std::byte>(pages_[1]), std::span<std::byte>(pages_[0])};

  SoftRegionMemory Region(const AccessRights& rights = kAll, uint64_t base = kBase) {
    return SoftRegionMemory(kDomain, {.base = {base}, .length = 2 * kPage, .runs = runs_, .rights = rights});
  }
  static absl::Status Write(SoftRegionMemory& region, uint64_t address, uint64_t length, uint64_t domain = kDomain) {
    const std::vector<std::byte> data(length, std::byte{0xab});
    return region.RemoteWrite(domain, {address}, data);
  }
  static absl::Status Read(SoftRegionMemory& region, uint64_t address, uint64_t length, uint64_t domain = kDomain) {
    std::vector<std::byte> data(length);
    return region.RemoteRead(domain, {address}, data);
  }
  static bool Refused(const absl::Status& status) { return FailedWith(status, ErrorReason::REMOTE_ACCESS); }
  bool Untouched() const {
    const auto zero = [](const Page& page) {
      return std::all_of(page.begin(), page.end(), [](std::byte b) { return b == std::byte{0}; });
    };
    return zero(pages_[0]) && zero(pages_[1]);
  }
};

TEST_F(SoftRegionMemoryTest, TheFirstAndTheLastByteCanBeWrittenAndNoneBeside) {
  SoftRegionMemory region = Region();
  EXPECT_TRUE(Write(region, kBase, 1).ok());
  EXPECT_TRUE(Write(region, kBase + 2 * kPage - 1, 1).ok());
  EXPECT_EQ(pages_[1].front(), std::byte{0xab});
  EXPECT_EQ(pages_[0].back(), std::byte{0xab});
  EXPECT_TRUE(Refused(Write(region, kBase - 1, 1)));
  EXPECT_TRUE(Refused(Write(region, kBase + 2 * kPage, 1)));
}

TEST_F(SoftRegionMemoryTest, ATransferThatPassesAnEndTouchesNothing) {
  SoftRegionMemory region = Region();
  EXPECT_TRUE(Refused(Write(region, kBase - 1, 2)));
  EXPECT_TRUE(Refused(Write(region, kBase + 2 * kPage - 1, 2)));
  EXPECT_TRUE(Refused(Write(region, kBase, 2 * kPage + 1)));
  EXPECT_TRUE(Refused(Write(region, UINT64_MAX, 2)));
  EXPECT_TRUE(Refused(Write(region, 0, 1)));
  EXPECT_TRUE(Untouched());
}

TEST_F(SoftRegionMemoryTest, AtTheTopOfTheAddressesNothingWraps) {
  SoftRegionMemory region = Region(kAll, UINT64_MAX - 2 * kPage);
  EXPECT_TRUE(Write(region, UINT64_MAX - 1, 1).ok());
  EXPECT_TRUE(Refused(Write(region, UINT64_MAX, 1)));
  EXPECT_TRUE(Refused(Write(region, UINT64_MAX - 1, 3)));
}

TEST_F(SoftRegionMemoryTest, ScatteredRunsLandInTheRightPage) {
  SoftRegionMemory region = Region();
  const char text[] = "across the seam";
  const auto bytes = std::as_bytes(std::span(text));
  const uint64_t start = kBase + kPage - 6;
  ASSERT_TRUE(region.RemoteWrite(kDomain, {start}, bytes).ok());
  EXPECT_EQ(std::memcmp(pages_[1].data() + kPage - 6, "across", 6), 0);
  EXPECT_EQ(std::memcmp(pages_[0].data(), " the seam", 10), 0);
  char back[sizeof(text)] = {};
  ASSERT_TRUE(region.RemoteRead(kDomain, {start}, std::as_writable_bytes(std::span(back))).ok());
  EXPECT_STREQ(back, text);
}

TEST_F(SoftRegionMemoryTest, AnotherDomainIsRefused) {
  SoftRegionMemory region = Region();
  EXPECT_TRUE(Refused(Write(region, kBase, 1, kDomain + 1)));
  EXPECT_TRUE(Refused(Read(region, kBase, 1, kDomain + 1)));
  EXPECT_TRUE(Refused(Read(region, kBase, 1, 0)));
  EXPECT_TRUE(Untouched());
}

TEST_F(SoftRegionMemoryTest, EachRightAllowsItsOwnTransferOnly) {
  SoftRegionMemory read_only = Region({.remote_read = true});
  EXPECT_TRUE(Read(read_only, kBase, 8).ok());
  EXPECT_TRUE(Refused(Write(read_only, kBase, 8)));
  SoftRegionMemory write_only = Region({.local_write = true, .remote_write = true});
  EXPECT_TRUE(Refused(Read(write_only, kBase, 8)));
  EXPECT_TRUE(Write(write_only, kBase, 8).ok());
  SoftRegionMemory local_only = Region({.local_write = true, .read_sink = true});
  EXPECT_TRUE(Refused(Read(local_only, kBase, 8)));
  EXPECT_TRUE(Refused(Write(local_only, kBase, 8)));
}

TEST_F(SoftRegionMemoryTest, AfterRevokeNothingGetsThrough) {
  SoftRegionMemory region = Region();
  region.Revoke();
  EXPECT_TRUE(Refused(Write(region, kBase, 1)));
  EXPECT_TRUE(Refused(Read(region, kBase, 1)));
  EXPECT_TRUE(Untouched());
}

// The memory may be unmapped as soon as Revoke returns, so no copy may still be running then.
TEST_F(SoftRegionMemoryTest, RevokeWaitsForARunningCopy) {
  for (int round = 0; round < 50; ++round) {
    SoftRegionMemory region = Region();
    std::atomic<bool> started{false};
    std::thread peer([&] {
      while (Write(region, kBase, 2 * kPage).ok()) {
        started = true;
      }
    });
    while (!started) {
      std::this_thread::yield();
    }
    region.Revoke();
    // These plain writes race with the peer's copy if Revoke did not wait: the thread sanitizer would tell.
    pages_ = {};
    EXPECT_TRUE(Untouched());
    peer.join();
    EXPECT_TRUE(Untouched());
  }
}

}  // namespace
}  // namespace rnicd::provider
