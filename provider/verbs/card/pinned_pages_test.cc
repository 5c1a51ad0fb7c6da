// What is pinned for fast registrations by the kernel, and how long.

#include "provider/verbs/card/pinned_pages.h"

#include "provider/verbs/fake/kernel_fixture_test.h"

namespace rnicd::provider {
namespace {

constexpr size_t kPages = 200;

class PinnedPagesTest : public ::testing::Test {
 protected:
  PinnedPagesTest() {
    rnicd_fr_take taken = {};
    EXPECT_EQ(module_.Take(&pd_, 1, 0, taken), 0);
    domain_ = std::make_shared<ModuleDomain>(module_, taken);
  }
  std::span<std::byte> Pages(size_t first, size_t count) {
    return memory_.bytes().subspan(first * kPage, count * kPage);
  }
  PinnedRuns Pin(std::vector<std::span<std::byte>> runs) {
    PinnedRuns pinned;
    const absl::Status status = pages_->Pin(domain_, runs, pinned);
    EXPECT_TRUE(status.ok()) << status;
    return pinned;
  }
  std::unique_ptr<DeviceMapping> Add(std::span<std::byte> run) { return pages_->Add({&run, 1}); }

  FakeVerbs card_;
  FakeFastModule module_{card_};
  ibv_pd pd_ = {};
  SharedPages memory_{kPages};
  std::shared_ptr<ModuleDomain> domain_;
  const std::shared_ptr<PinnedPages> pages_ = std::make_shared<PinnedPages>();
};

TEST_F(PinnedPagesTest, APageIsPinnedOnceWithItsNeighbours) {
  const auto mapping = Add(Pages(0, kPages));
  const PinnedRuns first = Pin({Pages(70, 1)});
  EXPECT_EQ(module_.mappings(), 1u);
  EXPECT_LE(module_.mapped_pages(), 64u) << "of a block, so that a request waits for little";
  const uint64_t pinned = module_.mapped_pages();
  const PinnedRuns second = Pin({Pages(70, 1)});
  EXPECT_EQ(module_.mapped_pages(), pinned);
  EXPECT_EQ(first.blocks, second.blocks);
}

TEST_F(PinnedPagesTest, ARunOverSeveralBlocksIsAllOfItsPagesInOrder) {
  const auto mapping = Add(Pages(0, kPages));
  const PinnedRuns pinned = Pin({Pages(10, 150), Pages(3, 1)});
  size_t pages = 0;
  size_t block = 0;
  for (const rnicd_fr_run& run : pinned.runs) {
    while (pinned.blocks[block]->mapping() != run.mapping) {
      ++block;
    }
    const size_t expected = pages < 150 ? 10 + pages : 3;
    EXPECT_EQ(pinned.blocks[block]->bytes().data() + run.page * kPage, Pages(expected, 1).data());
    pages += run.count;
    block = 0;
  }
  EXPECT_EQ(pages, 151u);
}

TEST_F(PinnedPagesTest, WhatNoMappingHasAnyMoreIsLetGo) {
  auto mapping = Add(Pages(0, kPages));
  auto other = Add(Pages(100, 20));
  Pin({Pages(0, kPages)});
  EXPECT_EQ(module_.mapped_pages(), kPages);
  mapping.reset();
  EXPECT_LE(module_.mapped_pages(), 20u) << "only blocks that lie in the other mapping";
  other.reset();
  EXPECT_EQ(module_.mapped_pages(), 0u);
}

TEST_F(PinnedPagesTest, ARegistrationKeepsItsBlocks) {
  auto mapping = Add(Pages(0, 10));
  PinnedRuns pinned = Pin({Pages(2, 1)});
  mapping.reset();
  EXPECT_EQ(module_.mappings(), 1u);
  pinned = {};
  EXPECT_EQ(module_.mappings(), 0u);
}

TEST_F(PinnedPagesTest, BytesWithoutAMappingArePinnedForTheirRegistrationOnly) {
  PinnedRuns pinned = Pin({Pages(5, 3)});
  EXPECT_EQ(module_.mapped_pages(), 3u);
  pinned = {};
  EXPECT_EQ(module_.mapped_pages(), 0u);
}

TEST_F(PinnedPagesTest, OnlyBytesOfAMappingArePinned) {
  const auto mapping = Add(Pages(20, 5));
  Pin({Pages(22, 1)});
  EXPECT_GE(module_.mapped_pages(), 1u);
  EXPECT_LE(module_.mapped_pages(), 5u) << "the pages around it may be anything; a block may end among them";
}

TEST_F(PinnedPagesTest, SeamsInsideAPageAreRefused) {
  const auto mapping = Add(Pages(0, 10));
  PinnedRuns pinned;
  const std::vector<std::span<std::byte>> runs = {Pages(0, 1).first(100), Pages(2, 1)};
  EXPECT_TRUE(FailedWith(pages_->Pin(domain_, runs, pinned), ErrorReason::DEVICE_NOT_CAPABLE));
}

TEST_F(PinnedPagesTest, AForgottenDomainKeepsNothing) {
  const auto mapping = Add(Pages(0, kPages));
  Pin({Pages(0, kPages)});
  pages_->Drop(*domain_);
  EXPECT_EQ(module_.mappings(), 0u);
}

// Against a count for each page.
TEST_F(PinnedPagesTest, AnyMixOfMappingsPinsWhatIsMappedAndNoMore) {
  std::minstd_rand random(4711);
  std::vector<std::pair<std::unique_ptr<DeviceMapping>, std::pair<size_t, size_t>>> mappings;
  for (int round = 0; round < 2000; ++round) {
    if (random() % 2 == 0 || mappings.empty()) {
      const size_t first = random() % kPages;
      const size_t count = 1 + random() % (kPages - first);
      mappings.emplace_back(Add(Pages(first, count)), std::pair(first, count));
    } else {
      mappings.erase(mappings.begin() + static_cast<ptrdiff_t>(random() % mappings.size()));
    }
    std::vector<int> covered(kPages);
    for (const auto& [mapping, range] : mappings) {
      for (size_t page = range.first; page < range.first + range.second; ++page) {
        ++covered[page];
      }
    }
    const size_t page = random() % kPages;
    const PinnedRuns pinned = Pin({Pages(page, 1)});
    const std::span<std::byte> block = pinned.blocks.front()->bytes();
    if (covered[page] == 0) {
      EXPECT_EQ(block.size(), kPage);
    }
    for (const std::byte* at = block.data(); at < block.data() + block.size(); at += kPage) {
      const auto index = static_cast<size_t>(at - memory_.bytes().data()) / kPage;
      EXPECT_TRUE(covered[index] > 0 || index == page) << "page " << index << " in round " << round;
    }
  }
  mappings.clear();
  EXPECT_EQ(module_.mapped_pages(), 0u);
}

}  // namespace
}  // namespace rnicd::provider
