#include "provider/soft/soft_region_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>

#include "provider/soft/soft_fixture_test.h"

namespace rnicd::provider {
namespace {

constexpr uint64_t kFirstByte = 0x100000;
constexpr AccessRights kAll{.local_write = true, .remote_read = true, .remote_write = true, .read_sink = true};

using Page = std::array<std::byte, kPage>;

class SoftRegionMemoryTest : public ::testing::Test {
 protected:
  std::array<Page, 2> pages_{};
  // Two pages, in the order second, first, so that a mistake in the order shows.
  std::vector<std::span<std::byte>> runs_{std::span<std::byte>(pages_[1]), std::span<std::byte>(pages_[0])};

  SoftRegionMemory::Shape Shape(const AccessRights& rights = kAll, uint64_t base = kFirstByte) {
    return {
        .domain = kDomain, .base = {base}, .length = 2 * kPage, .rights = rights, .runs = runs_, .backing = nullptr};
  }
  std::shared_ptr<SoftRegionMemory> Region(const AccessRights& rights = kAll, uint64_t base = kFirstByte) {
    return std::make_shared<SoftRegionMemory>(Shape(rights, base));
  }
  static bool Allows(const std::shared_ptr<SoftRegionMemory>& region, SoftAccess access, uint64_t address,
                     uint64_t length, uint64_t domain = kDomain) {
    SoftPins pins;
    return pins.Add(region, {.domain = domain}, access, {address}, length);
  }
  static bool Write(const std::shared_ptr<SoftRegionMemory>& region, uint64_t address, uint64_t length,
                    uint64_t domain = kDomain) {
    std::vector<std::byte> data(length, std::byte{0xab});
    return Transfer(region, SoftAccess::kRemoteWrite, address, data, domain);
  }
  // Either way, as a peer does it.
  static bool Transfer(const std::shared_ptr<SoftRegionMemory>& region, SoftAccess access, uint64_t address,
                       std::span<std::byte> data, uint64_t domain = kDomain) {
    SoftPins theirs;
    SoftPins ours;
    ours.AddHost(data);
    if (!theirs.Add(region, {.domain = domain}, access, {address}, data.size())) {
      return false;
    }
    const bool writes = access == SoftAccess::kRemoteWrite;
    CopyInOrder(writes ? ours.pieces() : theirs.pieces(), writes ? theirs.pieces() : ours.pieces(), data.size());
    return true;
  }
  bool Untouched() const {
    const auto zero = [](const Page& page) {
      return std::all_of(page.begin(), page.end(), [](std::byte b) { return b == std::byte{0}; });
    };
    return zero(pages_[0]) && zero(pages_[1]);
  }
};

TEST_F(SoftRegionMemoryTest, TheFirstAndTheLastByteCanBeWrittenAndNoneBeside) {
  const auto region = Region();
  EXPECT_TRUE(Write(region, kFirstByte, 1));
  EXPECT_TRUE(Write(region, kFirstByte + 2 * kPage - 1, 1));
  EXPECT_EQ(pages_[1].front(), std::byte{0xab});
  EXPECT_EQ(pages_[0].back(), std::byte{0xab});
  EXPECT_FALSE(Write(region, kFirstByte - 1, 1));
  EXPECT_FALSE(Write(region, kFirstByte + 2 * kPage, 1));
}

TEST_F(SoftRegionMemoryTest, ATransferThatPassesAnEndTouchesNothing) {
  const auto region = Region();
  EXPECT_FALSE(Write(region, kFirstByte - 1, 2));
  EXPECT_FALSE(Write(region, kFirstByte + 2 * kPage - 1, 2));
  EXPECT_FALSE(Write(region, kFirstByte, 2 * kPage + 1));
  EXPECT_FALSE(Write(region, UINT64_MAX, 2));
  EXPECT_FALSE(Write(region, 0, 1));
  EXPECT_TRUE(Untouched());
}

TEST_F(SoftRegionMemoryTest, AtTheTopOfTheAddressesNothingWraps) {
  const auto region = Region(kAll, UINT64_MAX - 2 * kPage);
  EXPECT_TRUE(Write(region, UINT64_MAX - 1, 1));
  EXPECT_FALSE(Write(region, UINT64_MAX, 1));
  EXPECT_FALSE(Write(region, UINT64_MAX - 1, 3));
}

TEST_F(SoftRegionMemoryTest, ItsLastByteMayBeTheLastAddress) {
  const auto region = Region(kAll, UINT64_MAX - 2 * kPage + 1);
  EXPECT_TRUE(Write(region, UINT64_MAX, 1));
  EXPECT_EQ(pages_[0].back(), std::byte{0xab});
  EXPECT_FALSE(Write(region, UINT64_MAX, 2));
  EXPECT_FALSE(Write(region, 0, 1));
}

TEST_F(SoftRegionMemoryTest, ScatteredRunsLandInTheRightPage) {
  const auto region = Region();
  char text[] = "across the seam";
  const uint64_t start = kFirstByte + kPage - 6;
  ASSERT_TRUE(Transfer(region, SoftAccess::kRemoteWrite, start, std::as_writable_bytes(std::span(text))));
  EXPECT_EQ(std::memcmp(pages_[1].data() + kPage - 6, "across", 6), 0);
  EXPECT_EQ(std::memcmp(pages_[0].data(), " the seam", 10), 0);
  char back[sizeof(text)] = {};
  ASSERT_TRUE(Transfer(region, SoftAccess::kRemoteRead, start, std::as_writable_bytes(std::span(back))));
  EXPECT_STREQ(back, text);
}

// The seam itself: an address that begins a run must not be taken for the end of the one before.
TEST_F(SoftRegionMemoryTest, EveryAddressAroundASeamLeadsToItsOwnByte) {
  const auto region = Region();
  for (uint64_t offset = kPage - 2; offset < kPage + 2; ++offset) {
    SoftPins pins;
    ASSERT_TRUE(pins.Add(region, {.domain = kDomain}, SoftAccess::kRemoteRead, {kFirstByte + offset}, 1));
    ASSERT_EQ(pins.pieces().size(), 1u);
    EXPECT_EQ(pins.pieces()[0].data(), offset < kPage ? &pages_[1][offset] : &pages_[0][offset - kPage]);
    EXPECT_EQ(pins.pieces()[0].size(), 1u);
  }
}

TEST_F(SoftRegionMemoryTest, AnotherDomainIsRefused) {
  const auto region = Region();
  for (const SoftAccess access : {SoftAccess::kLocalRead, SoftAccess::kLocalWrite, SoftAccess::kReadSink,
                                  SoftAccess::kRemoteRead, SoftAccess::kRemoteWrite, SoftAccess::kThroughWindow}) {
    EXPECT_TRUE(Allows(region, access, kFirstByte, 1));
    EXPECT_FALSE(Allows(region, access, kFirstByte, 1, kDomain + 1));
    EXPECT_FALSE(Allows(region, access, kFirstByte, 1, 0));
  }
}

TEST_F(SoftRegionMemoryTest, EachRightAllowsItsOwnTransferOnly) {
  const struct {
    AccessRights rights;
    bool local_write;
    bool read_sink;
    bool remote_read;
    bool remote_write;
  } kRows[] = {
      {{}, false, false, false, false},
      {{.remote_read = true}, false, false, true, false},
      {{.local_write = true}, true, false, false, false},
      {{.local_write = true, .remote_write = true}, true, false, false, true},
      {{.local_write = true, .read_sink = true}, true, true, false, false},
      // The bytes of a read are written: a sink needs both rights.
      {{.read_sink = true}, false, false, false, false},
  };
  for (const auto& row : kRows) {
    const auto region = Region(row.rights);
    EXPECT_TRUE(Allows(region, SoftAccess::kLocalRead, kFirstByte, 8)) << "local read is always granted";
    EXPECT_EQ(Allows(region, SoftAccess::kLocalWrite, kFirstByte, 8), row.local_write);
    EXPECT_EQ(Allows(region, SoftAccess::kReadSink, kFirstByte, 8), row.read_sink);
    EXPECT_EQ(Allows(region, SoftAccess::kRemoteRead, kFirstByte, 8), row.remote_read);
    EXPECT_EQ(Allows(region, SoftAccess::kRemoteWrite, kFirstByte, 8), row.remote_write);
    EXPECT_TRUE(Allows(region, SoftAccess::kThroughWindow, kFirstByte, 8)) << "a window has its own rights";
  }
}

TEST_F(SoftRegionMemoryTest, AfterRevokeNothingGetsThrough) {
  const auto region = Region();
  EXPECT_TRUE(region->Revoke());
  EXPECT_FALSE(region->Revoke()) << "only the first revokes";
  EXPECT_FALSE(Write(region, kFirstByte, 1));
  EXPECT_FALSE(Allows(region, SoftAccess::kRemoteRead, kFirstByte, 1));
  EXPECT_FALSE(Allows(region, SoftAccess::kLocalRead, kFirstByte, 1));
  EXPECT_TRUE(Untouched());
}

// The memory may be unmapped as soon as Revoke returns, so no copy may still be running then.
TEST_F(SoftRegionMemoryTest, RevokeWaitsForARunningCopy) {
  for (int round = 0; round < 50; ++round) {
    const auto region = Region();
    std::atomic<bool> started{false};
    std::thread peer([&] {
      while (Write(region, kFirstByte, 2 * kPage)) {
        started = true;
      }
    });
    while (!started) {
      std::this_thread::yield();
    }
    region->Revoke();
    // These plain writes race with the peer's copy if Revoke did not wait; the thread sanitizer would report it.
    pages_ = {};
    EXPECT_TRUE(Untouched());
    peer.join();
    EXPECT_TRUE(Untouched());
  }
}

TEST_F(SoftRegionMemoryTest, TheBackingIsLetGoWhenTheLastCopyIsOver) {
  auto shape = Shape();
  auto owned = std::make_shared<int>(0);
  const std::weak_ptr<int> backing = owned;
  shape.backing = std::move(owned);
  const auto region = std::make_shared<SoftRegionMemory>(std::move(shape));
  std::optional<SoftPins> pins(std::in_place);
  ASSERT_TRUE(pins->Add(region, {.domain = kDomain}, SoftAccess::kRemoteRead, {kFirstByte}, 1));
  std::thread revoker([&] { region->Revoke(); });
  while (Allows(region, SoftAccess::kRemoteRead, kFirstByte, 1)) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(backing.expired()) << "a copy is still reading it";
  pins.reset();
  revoker.join();
  EXPECT_TRUE(backing.expired()) << "though the region itself lives on";
}

TEST_F(SoftRegionMemoryTest, WindowsKeepItUntilTheLastIsGone) {
  const auto region = Region();
  EXPECT_TRUE(region->AddWindow());
  EXPECT_TRUE(region->AddWindow());
  EXPECT_FALSE(region->RefuseWindows());
  region->RemoveWindow();
  EXPECT_FALSE(region->RefuseWindows());
  EXPECT_TRUE(region->AddWindow()) << "a refusal leaves it as it was";
  region->RemoveWindow();
  region->RemoveWindow();
  EXPECT_TRUE(region->RefuseWindows());
  EXPECT_FALSE(region->AddWindow()) << "a window must not come between the question and the end";
}

}  // namespace
}  // namespace rnicd::provider
