// Registrations of dma-bufs: the call to the card, what it may answer, and what a region of one cannot do.

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "provider/verbs/fake/verbs_dmabuf_fake.h"
#include "provider/verbs/fake/verbs_fixture_test.h"
#include "provider/verbs/memory/verbs_memory_region.h"

namespace rnicd::provider {
namespace {

using ::testing::SizeIs;

class VerbsDmabufTest : public ::testing::Test {
 protected:
  VerbsDmabufTest() {
    EXPECT_EQ(ftruncate(buffer_.get(), 8 * kPage), 0);
    fake_.set_automatic(false);
  }
  ~VerbsDmabufTest() override { EXPECT_THAT(fake_.violations(), ::testing::IsEmpty()); }

  static FakeVerbs& WorkingByItself(FakeVerbs& fake) {
    fake.set_automatic(true);
    return fake;
  }
  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> Register(DeviceProtectionDomain& domain) {
    return domain.RegisterDmabuf({.base = {Side::kBase + 8},
                                  .length = 2 * kPage,
                                  .file = buffer_.get(),
                                  .offset = 3 * kPage + 8,
                                  .rights = kAllRights});
  }
  uint64_t Inode() const {
    struct stat file = {};
    EXPECT_EQ(fstat(buffer_.get(), &file), 0);
    return file.st_ino;
  }

  const UniqueFd buffer_{memfd_create("dmabuf", MFD_CLOEXEC)};
  FakeDmabufVerbs fake_;
  Daemon daemon_{WorkingByItself(fake_)};
  const std::unique_ptr<DeviceAdapter> adapter_ = *daemon_.provider().OpenAdapter("fake0");
  const std::unique_ptr<DeviceProtectionDomain> domain_ = *adapter_->CreateProtectionDomain();
};

// The card of these tests refuses what a kernel refuses.
TEST(FakeDmabufVerbs, RefusesAsTheKernelDoes) {
  const UniqueFd buffer(memfd_create("dmabuf", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(buffer.get(), 2 * kPage), 0);
  FakeDmabufVerbs card;
  FakeVerbs incapable;
  const auto error_of = [&buffer](FakeVerbs& on, uint64_t offset, size_t length, int access) {
    ibv_context* const context = on.Open({.name = "fake0"});
    ibv_pd* const pd = on.AllocPd(context);
    errno = 0;
    EXPECT_EQ(on.RegDmabufMr(pd, offset, length, kPage, buffer.get(), access), nullptr);
    const int error = errno;
    EXPECT_EQ(on.DeallocPd(pd), 0);
    EXPECT_EQ(on.Close(context), 0);
    return error;
  };
  EXPECT_EQ(error_of(incapable, 0, 8, 0), EOPNOTSUPP) << "as rxe";
  EXPECT_EQ(error_of(card, kPage, kPage + 1, 0), EINVAL) << "beyond its end";
  EXPECT_EQ(error_of(card, 8, 8, 0), EINVAL) << "not the same place within a page";
  EXPECT_EQ(error_of(card, 0, 8, IBV_ACCESS_MW_BIND), EINVAL) << "a right that the kernel does not give";
}

TEST_F(VerbsDmabufTest, APartOfItLiesAtItsOwnersAddressUnderTheKeysOfTheCard) {
  auto region = Register(*domain_);
  ASSERT_TRUE(region.ok()) << region.status();
  const FakeRegion made = fake_.regions().back();
  EXPECT_EQ(made.dmabuf_inode, Inode());
  EXPECT_EQ(made.dmabuf_offset, 3 * kPage + 8);
  EXPECT_EQ(made.length, 2 * kPage);
  EXPECT_EQ(made.iova, Side::kBase + 8);
  EXPECT_EQ(made.address, nullptr);
  EXPECT_EQ(made.access, AccessFlags(kAllRights));
  EXPECT_EQ((*region)->local_token().value, made.lkey);
  EXPECT_EQ((*region)->remote_token().value, made.rkey);
  EXPECT_EQ(daemon_.provider().live_regions(), 1u);
}

TEST_F(VerbsDmabufTest, ItEndsWithItsDeregistrationOrItsOwner) {
  const size_t regions = fake_.regions().size();
  auto first = Register(*domain_);
  auto second = Register(*domain_);
  ASSERT_TRUE(first.ok() && second.ok());
  fake_.FailNext("DeregMr", EBUSY);
  EXPECT_FALSE((*first)->Deregister().ok());
  EXPECT_THAT(fake_.regions(), SizeIs(regions + 2)) << "a failure changes nothing";
  EXPECT_TRUE((*first)->Deregister().ok());
  EXPECT_TRUE((*first)->Deregister().ok());
  EXPECT_THAT(fake_.regions(), SizeIs(regions + 1));
  second->reset();
  EXPECT_THAT(fake_.regions(), SizeIs(regions));
  EXPECT_EQ(daemon_.provider().live_regions(), 0u);
}

TEST_F(VerbsDmabufTest, ARefusalLeavesNothing) {
  fake_.FailNext("RegDmabufMr", EOPNOTSUPP);
  EXPECT_TRUE(FailedWith(Register(*domain_).status(), ErrorReason::DEVICE_NOT_CAPABLE));
  fake_.FailNext("RegDmabufMr", EIO);
  EXPECT_TRUE(FailedWith(Register(*domain_).status(), ErrorReason::MEMORY_NOT_PINNABLE)) << "the card is still there";
  EXPECT_EQ(daemon_.provider().live_regions(), 0u);
  EXPECT_TRUE(Register(*domain_).ok());
}

TEST_F(VerbsDmabufTest, ARemovedCardIsNotAsked) {
  fake_.RemoveDevice("fake0");
  ASSERT_TRUE(Eventually([&] { return daemon_.provider().ListAdapters().empty(); }));
  const uint64_t calls = fake_.calls("RegDmabufMr");
  EXPECT_TRUE(FailedWith(Register(*domain_).status(), ErrorReason::DEVICE_REMOVED));
  EXPECT_EQ(fake_.calls("RegDmabufMr"), calls);
}

TEST_F(VerbsDmabufTest, RequestsNameItByItsTokens) {
  Side side(daemon_);
  ASSERT_TRUE(side.ConnectTo(side).ok());
  const auto region = Register(side.domain());
  ASSERT_TRUE(region.ok()) << region.status();
  const ScatterGatherEntry inside{.address = {Side::kBase + 8}, .length = 64, .token = (*region)->local_token()};
  side.Post(Write(1, {inside}, (*region)->remote_token()));
  ASSERT_THAT(side.posted(), SizeIs(1));
  EXPECT_EQ(side.posted()[0].entries[0].lkey, (*region)->local_token().value);
  ASSERT_TRUE(fake_.Complete(side.number()));
  ASSERT_TRUE(side.Initiated(1));
  EXPECT_EQ(side.initiated()[0].status, kOk);
  ScatterGatherEntry outside = inside;
  outside.address = {Side::kBase + 2 * kPage};
  side.Post(Write(2, {outside}, (*region)->remote_token()));
  ASSERT_TRUE(side.Initiated(2));
  EXPECT_EQ(side.initiated()[1].status, NtStatus::kAccessViolation);
}

// A window by registration needs the bytes, one of the card's a right that the kernel does not give.
TEST_F(VerbsDmabufTest, NoWindowIsBoundToIt) {
  Side side(daemon_);
  ASSERT_TRUE(side.ConnectTo(side).ok());
  absl::StatusOr<std::shared_ptr<DeviceMemoryRegion>> region = Register(side.domain());
  ASSERT_TRUE(region.ok()) << region.status();
  const auto window = *side.domain().CreateMemoryWindow();
  EXPECT_TRUE(side.Refuses(Bind(1, window, *region), ErrorReason::DEVICE_NOT_CAPABLE));
  EXPECT_TRUE((*region)->Deregister().ok()) << "nothing is bound";
}

}  // namespace
}  // namespace rnicd::provider
