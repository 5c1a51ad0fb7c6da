#include "provider/soft/memory/soft_target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <initializer_list>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>

namespace rnicd::provider {
namespace {

std::span<std::byte> BytesOf(std::string& text) { return std::as_writable_bytes(std::span(text)); }

// `text` in pieces of these sizes, empty ones included.
Pieces Cut(std::string& text, std::initializer_list<size_t> sizes) {
  Pieces pieces;
  size_t offset = 0;
  for (const size_t size : sizes) {
    pieces.push_back(BytesOf(text).subspan(offset, size));
    offset += size;
  }
  return pieces;
}

TEST(CopyInOrder, PiecesOfBothSidesNeedNotMatch) {
  std::string from = "abcdefgh";
  for (const Pieces& source : {Cut(from, {8}), Cut(from, {1, 0, 5, 2}), Cut(from, {0, 3, 5}), Cut(from, {7, 1, 0})}) {
    std::string to = "........";
    for (const Pieces& target : {Cut(to, {8}), Cut(to, {3, 3, 0, 2}), Cut(to, {0, 0, 8}), Cut(to, {1, 1, 6})}) {
      to.assign(8, '.');
      CopyInOrder(source, target, 8);
      EXPECT_EQ(to, from);
    }
  }
}

TEST(CopyInOrder, NothingBehindTheLengthChanges) {
  std::string from = "abcdefgh";
  for (size_t length = 0; length <= from.size(); ++length) {
    std::string to = "........";
    CopyInOrder(Cut(from, {2, 2, 4}), Cut(to, {3, 5}), length);
    EXPECT_EQ(to, from.substr(0, length) + std::string(8 - length, '.'));
  }
}

TEST(CopyInOrder, NoBytesNeedNoPieces) { CopyInOrder({}, {}, 0); }

TEST(CopyInOrder, SidesThatOverlapAreMovedNotSmeared) {
  std::string text = "0123456789";
  CopyInOrder({BytesOf(text).subspan(0, 8)}, {BytesOf(text).subspan(2, 8)}, 8);
  EXPECT_EQ(text, "0101234567");
  text = "0123456789";
  CopyInOrder({BytesOf(text).subspan(2, 8)}, {BytesOf(text).subspan(0, 8)}, 8);
  EXPECT_EQ(text, "2345678989");
  text = "0123456789";
  CopyInOrder({BytesOf(text)}, {BytesOf(text)}, 10);
  EXPECT_EQ(text, "0123456789");
}

// The last byte of the target is the first of the source: were it written early, the copy would begin with it.
TEST(CopyInOrder, TheLastByteIsWrittenLast) {
  std::string text = "abcd";
  std::string rest = "...";
  CopyInOrder({BytesOf(text)}, {BytesOf(rest), BytesOf(text).subspan(0, 1)}, 4);
  EXPECT_EQ(rest, "abc");
  EXPECT_EQ(text, "dbcd");
}

TEST(CopyInOrder, WhoSeesTheLastByteSeesAllOthers) {
  constexpr unsigned char kRounds = 200;
  std::array<unsigned char, 4096> from{};
  std::array<unsigned char, 4096> to{};
  std::atomic_ref last(to.back());
  std::atomic<int> checked{0};
  std::thread poller([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (last.load(std::memory_order_acquire) != round) {
        std::this_thread::yield();
      }
      EXPECT_EQ(std::count(to.begin(), to.end() - 1, round), 4095);
      checked = round;
    }
  });
  for (int round = 1; round <= kRounds; ++round) {
    from.fill(static_cast<unsigned char>(round));
    const auto bytes = std::as_writable_bytes(std::span(from));
    CopyInOrder({bytes.first(1000), bytes.subspan(1000)}, {std::as_writable_bytes(std::span(to))}, from.size());
    while (checked != round) {
      std::this_thread::yield();
    }
  }
  poller.join();
}

// Counts open pins, and refuses addresses from 100 on.
class CountingTarget final : public SoftTarget {
 public:
  bool Pin(const SoftAccessor&, SoftAccess, VirtualAddress address, uint64_t, Pieces& pieces) override {
    if (address.value >= 100) {
      return false;
    }
    pieces.push_back(byte_);
    ++pinned;
    return true;
  }
  void Unpin() override { --pinned; }

  int pinned = 0;

 private:
  std::array<std::byte, 1> byte_{};
};

TEST(SoftPins, EveryPinIsLetGoOnceAtTheEnd) {
  const auto target = std::make_shared<CountingTarget>();
  {
    SoftPins pins;
    EXPECT_TRUE(pins.Add(target, {}, SoftAccess::kLocalRead, {1}, 1));
    EXPECT_TRUE(pins.Add(target, {}, SoftAccess::kLocalRead, {2}, 1));
    EXPECT_EQ(target->pinned, 2);
    EXPECT_EQ(pins.pieces().size(), 2u);
  }
  EXPECT_EQ(target->pinned, 0);
}

TEST(SoftPins, WhatWasRefusedIsNotLetGo) {
  const auto target = std::make_shared<CountingTarget>();
  {
    SoftPins pins;
    EXPECT_FALSE(pins.Add(nullptr, {}, SoftAccess::kLocalRead, {1}, 1)) << "a token that leads nowhere";
    EXPECT_FALSE(pins.Add(target, {}, SoftAccess::kLocalRead, {100}, 1));
    EXPECT_TRUE(pins.pieces().empty());
  }
  EXPECT_EQ(target->pinned, 0);
}

TEST(SoftPins, HostBytesKeepTheirPlaceAmongTheOthers) {
  const auto target = std::make_shared<CountingTarget>();
  std::string host = "host";
  SoftPins pins;
  EXPECT_TRUE(pins.Add(target, {}, SoftAccess::kLocalRead, {1}, 1));
  pins.AddHost(BytesOf(host));
  EXPECT_TRUE(pins.Add(target, {}, SoftAccess::kLocalRead, {1}, 1));
  ASSERT_EQ(pins.pieces().size(), 3u);
  EXPECT_EQ(pins.pieces()[1].data(), BytesOf(host).data());
}

TEST(SoftTarget, CannotBeInvalidatedByAPeerUnlessItSaysSo) { EXPECT_FALSE(CountingTarget().InvalidateByToken({})); }

}  // namespace
}  // namespace rnicd::provider
