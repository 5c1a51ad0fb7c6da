// Cards on kernels with pages of 16 and 64 KiB: what is whole pages works as on others, and the rest is refused with
// one reason and a detail that names the pages, before the card is asked.
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "provider/verbs/fake/verbs_dmabuf_fake.h"
#include "provider/verbs/fake/verbs_fixture_test.h"

namespace rnicd::provider {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

VerbsOptions OptionsOf(uint64_t page_bytes) {
  VerbsOptions options = QuietOptions();
  options.kernel_page_bytes = page_bytes;
  return options;
}

class VerbsKernelPages : public ::testing::TestWithParam<uint64_t> {
 protected:
  VerbsKernelPages() : daemon_(Prepared(fake_), OptionsOf(GetParam())) { EXPECT_TRUE(side_.ConnectTo(side_).ok()); }
  ~VerbsKernelPages() override { EXPECT_THAT(fake_.violations(), ::testing::IsEmpty()); }

  static FakeVerbs& Prepared(FakeVerbs& fake) {
    fake.kernel_page_bytes = GetParam();
    fake.set_automatic(true);
    return fake;
  }
  // A page of the kernel's; there are four.
  std::span<std::byte> Page(size_t number) const { return pages_.bytes().subspan(number * GetParam(), GetParam()); }
  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> Register(const std::vector<std::span<std::byte>>& runs,
                                                               uint64_t base = Side::kBase) {
    uint64_t length = 0;
    for (const std::span<std::byte> run : runs) {
      length += run.size();
    }
    return side_.domain().RegisterMemory({.base = {base}, .length = length, .runs = runs, .rights = kAllRights});
  }
  // Refused for the kernel's pages; the card was not asked, and counts nothing.
  void ExpectRefused(const absl::Status& status) {
    EXPECT_TRUE(FailedWith(status, ErrorReason::DEVICE_NOT_CAPABLE)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(GetParam()) + " bytes"));
    EXPECT_THAT(fake_.regions(), SizeIs(regions_));
    EXPECT_EQ(daemon_.provider().live_regions(), live_);
  }
  std::shared_ptr<DeviceFastRegion> FastRegion() {
    auto region = side_.domain().CreateFastRegion(64, true);
    EXPECT_TRUE(region.ok()) << region.status();
    regions_ = fake_.regions().size();
    live_ = daemon_.provider().live_regions();
    return *std::move(region);
  }

  SharedPages pages_{4 * (uint64_t{64} << 10) / kPage};
  FakeDmabufVerbs fake_;
  Daemon daemon_;
  Side side_{daemon_};
  size_t regions_ = fake_.regions().size();
  uint64_t live_ = daemon_.provider().live_regions();
};

TEST_P(VerbsKernelPages, BytesThatLieTogetherAreRegisteredAtTheirPlaceInAPage) {
  const auto region = Register({Page(0).subspan(kPage + 8, 100)}, Side::kBase + kPage + 8);
  EXPECT_TRUE(region.ok()) << region.status();
  EXPECT_THAT(fake_.regions(), SizeIs(regions_ + 1));
}

TEST_P(VerbsKernelPages, AnotherPlaceInAPageIsRefused) {
  ExpectRefused(Register({Page(0).subspan(kPage + 8, 100)}, Side::kBase + 8).status());
}

TEST_P(VerbsKernelPages, WholePagesAreJoined) {
  const auto region = Register({Page(2).subspan(kPage), Page(0), Page(3).first(kPage)}, Side::kBase + kPage);
  EXPECT_TRUE(region.ok()) << region.status();
  EXPECT_EQ(fake_.regions().back().length, 2 * GetParam());
}

TEST_P(VerbsKernelPages, PartsOfPagesAreNotJoined) {
  ExpectRefused(Register({Page(2).first(kPage), Page(0)}).status());
  ExpectRefused(Register({Page(2), Page(0).subspan(kPage)}).status());
}

TEST_P(VerbsKernelPages, AFastRegistrationOfScatteredPagesOfNdkIsRefusedWhenItIsPosted) {
  const auto region = FastRegion();
  const RemoteToken before = region->remote_token();
  EXPECT_TRUE(side_.Refuses(FastRegister(1, region, {Page(1).first(kPage), Page(0).first(kPage)}),
                            ErrorReason::DEVICE_NOT_CAPABLE));
  EXPECT_THAT(fake_.regions(), SizeIs(regions_));
  EXPECT_EQ(region->remote_token(), before);
  side_.Post(FastRegister(2, region, {Page(1), Page(0)}));
  ASSERT_TRUE(side_.Initiated(1));
  EXPECT_EQ(side_.initiated()[0].status, kOk);
}

TEST_P(VerbsKernelPages, PayloadOfThisProcessTravelsInPiecesThatAreWholePages) {
  const auto host = [](std::span<std::byte> bytes) {
    return ScatterGatherEntry{.host = bytes, .length = static_cast<uint32_t>(bytes.size())};
  };
  fake_.set_automatic(false);
  side_.Post(Send(1, {host(Page(2).first(kPage)), host(Page(0).first(kPage))}));
  ASSERT_THAT(side_.posted(), SizeIs(1));
  EXPECT_THAT(side_.posted()[0].entries, SizeIs(2));
  ASSERT_TRUE(fake_.Complete(side_.number()));
  side_.Post(Send(2, {host(Page(2)), host(Page(0))}));
  // The thread that handles the completion may be the one that posts.
  ASSERT_TRUE(Eventually([&] { return side_.posted().size() == 1; }));
  EXPECT_THAT(side_.posted()[0].entries, SizeIs(1));
}

TEST_P(VerbsKernelPages, APartOfADmabufIsRegisteredAtItsPlaceInAPage) {
  const UniqueFd buffer(memfd_create("dmabuf", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(buffer.get(), static_cast<off_t>(2 * GetParam())), 0);
  const auto part = [&](uint64_t offset) {
    return side_.domain().RegisterDmabuf(
        {.base = {Side::kBase + kPage}, .length = 100, .file = buffer.get(), .offset = offset, .rights = kAllRights});
  };
  EXPECT_TRUE(part(GetParam() + kPage).ok());
  ExpectRefused(part(GetParam()).status());
}

INSTANTIATE_TEST_SUITE_P(Of, VerbsKernelPages, ::testing::Values(16 << 10, 64 << 10),
                         [](const auto& row) { return std::to_string(row.param >> 10) + "KiB"; });

}  // namespace
}  // namespace rnicd::provider
