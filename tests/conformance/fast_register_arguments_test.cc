// Group D of the edge cases: the arguments of a fast registration. Accepted registrations are checked by the bytes that
// a peer reads and writes, because only they reveal a wrong page, offset or length.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/fast_scene.h"
#include "tests/conformance/ndk_conformance.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
constexpr char kPageArrayField[] = "fast_register.adapter_page_array";
constexpr char kFboField[] = "fast_register.fbo";
constexpr char kLengthField[] = "fast_register.length";
constexpr char kBaseField[] = "fast_register.base_virtual_address";

// Row 44. NDK: as many pages as the region was initialized for, or fewer.
TEST_P(NdkConformance, Case044_CountUpToTheInitializedOneWorks) {
  FastScene scene(daemon(), 4);
  for (const std::vector<size_t>& pages : std::vector<std::vector<size_t>>{{0, 1, 2, 3}, {0}, {1, 2}}) {
    const auto length = static_cast<uint32_t>(pages.size() * kPage);
    const uint32_t token = scene.Register(pages, length, kBase, kOpRemoteRead);
    EXPECT_TRUE(scene.Read(kBase, token, length) == scene.Laid(pages, 0, length)) << pages.size() << " pages";
    scene.far().MustRun(InvalidateMrRequest(scene.mr()));
  }
}

// Row 44, one page more. NDK names no code. Recommended: STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case044_CountAboveTheInitializedOneIsRefused) {
  FastScene scene(daemon(), 4);
  scene.far().ExpectPostRefused(scene.Request({0, 1, 2, 3, 0}, kPage, kBase, kOpRemoteRead),
                                ErrorReason::PAGE_COUNT_ABOVE_REGION, kPageArrayField);
  // A refused request has no effect: the queue pair and the region stay usable.
  scene.RegisterWhole(kOpRemoteRead);
}

// Row 45. NDK's rule on the length leaves no room for count 0, and names no code. Recommended:
// STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case045_CountZeroIsRefused) {
  FastScene scene(daemon(), 1);
  scene.far().ExpectPostRefused(scene.Request({}, 1, kBase, kOpRemoteRead), ErrorReason::FIELD_OUT_OF_RANGE,
                                kPageArrayField);
}

// Row 45. NDK is silent on length 0. Recommended: STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case045_LengthZeroIsRefused) {
  FastScene scene(daemon(), 1);
  scene.far().ExpectPostRefused(scene.Request({0}, 0, kBase, kOpRemoteRead), ErrorReason::LENGTH_ZERO, kLengthField);
}

// Row 46. NDK: the region may begin at any byte of the first page, the last one too.
TEST_P(NdkConformance, Case046_LastByteOfTheFirstPageMayBeTheFirstOfTheRegion) {
  FastScene scene(daemon(), 2);
  constexpr uint32_t kFbo = kPage - 1;
  const uint32_t token = scene.Register({0, 1}, kPage + 1, kBase + kFbo, kOpEveryRight, kFbo);
  EXPECT_TRUE(scene.Read(kBase + kFbo, token, kPage + 1) == scene.Laid({0, 1}, kFbo, kPage + 1));
  scene.Write("ab", kBase + kFbo, token);
  EXPECT_EQ(scene.memory().Text(kFbo, 2), "ab");
}

// Row 46. An offset behind the first page has no documented code. Recommended: STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case046_OffsetBehindTheFirstPageIsRefused) {
  FastScene scene(daemon(), 4);
  for (const uint32_t fbo : {uint32_t{kPage}, uint32_t{kPage} + 7, std::numeric_limits<uint32_t>::max()}) {
    scene.far().ExpectPostRefused(scene.Request({0, 1, 2, 3}, 1, kBase + fbo, kOpRemoteRead, fbo),
                                  ErrorReason::FIELD_OUT_OF_RANGE, kFboField);
  }
}

// Row 47. NDK: the base is the offset plus any whole number of pages. It need not be the address of anything.
TEST_P(NdkConformance, Case047_BaseIsTheOffsetPlusWholePages) {
  FastScene scene(daemon(), 2);
  constexpr uint32_t kFbo = 100;
  constexpr uint32_t kLength = kPage + 50;
  for (const uint64_t pages : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40, (kMax >> 12) - 1}) {
    const uint64_t base = kFbo + pages * kPage;
    const uint32_t token = scene.Register({1, 0}, kLength, base, kOpRemoteRead, kFbo);
    EXPECT_TRUE(scene.Read(base, token, kLength) == scene.Laid({1, 0}, kFbo, kLength)) << "base " << base;
    EXPECT_TRUE(scene.Read(base + kPage, token, 50) == scene.Laid({1, 0}, kFbo + kPage, 50)) << "base " << base;
    scene.far().MustRun(InvalidateMrRequest(scene.mr()));
  }
}

// Row 47. A base that is not congruent has no documented code. Recommended: STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case047_BaseThatIsNotCongruentIsRefused) {
  FastScene scene(daemon(), 2);
  for (const auto& [base, fbo] : std::vector<std::pair<uint64_t, uint32_t>>{
           {kBase + 1, 0}, {kBase, 1}, {kBase + 99, 100}, {kBase + kPage - 1, 0}, {99, 100}}) {
    scene.far().ExpectPostRefused(scene.Request({0, 1}, 10, base, kOpRemoteRead, fbo), ErrorReason::BASE_NOT_CONGRUENT,
                                  kBaseField);
  }
}

// Row 48. NDK contradicts itself on base 0. Recommended: with offset 0 it is an address like any other.
TEST_P(NdkConformance, Case048_BaseZeroWorksWithOffsetZero) {
  FastScene scene(daemon(), 2);
  const uint32_t token = scene.Register({0, 1}, 2 * kPage, 0, kOpEveryRight);
  EXPECT_TRUE(scene.Read(0, token, 2 * kPage) == scene.Laid({0, 1}, 0, 2 * kPage));
  scene.Write("zero", 0, token);
  EXPECT_EQ(scene.memory().Text(0, 4), "zero");
}

// Row 48. NDK: base 0 only with offset 0. Recommended code: STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case048_BaseZeroWithAnOffsetIsRefused) {
  FastScene scene(daemon(), 1);
  scene.far().ExpectPostRefused(scene.Request({0}, 10, 0, kOpRemoteRead, 8), ErrorReason::BASE_NOT_CONGRUENT,
                                kBaseField);
}

// Row 49. NDK's rule on the length holds for sums that pass 64 bits as well; where two rules are broken at once there
// is no order between them. Recommended code of both: STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case049_OffsetPlusLengthDoesNotWrapAround) {
  FastScene scene(daemon(), 2);
  constexpr uint32_t kFbo = 100;
  for (const uint64_t length : {kMax, kMax - kFbo + 1, kMax - kFbo + 2}) {
    const auto posted = scene.far().Post({scene.Request({0, 1}, length, kBase + kFbo, kOpRemoteRead, kFbo)});
    ExpectOk(posted);
    EXPECT_EQ(posted.response.posted(), 0u);
    const bool names_the_length = posted.response.failure().reason() == v1::ERROR_REASON_LENGTH_ABOVE_PAGES;
    ExpectRefused(posted.response.failure(),
                  names_the_length ? ErrorReason::LENGTH_ABOVE_PAGES : ErrorReason::ADDRESS_RANGE_OVERFLOW,
                  std::string("requests[0].") + (names_the_length ? kLengthField : kBaseField));
  }
  EXPECT_TRUE(scene.far().DrainInitiator().empty());
}

// Row 49. NDK is silent on a base from which the region passes the end of the address space. Recommended:
// STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case049_BasePlusLengthDoesNotWrapAround) {
  FastScene scene(daemon(), 2);
  const uint64_t last_page = kMax - kPage + 1;
  scene.far().ExpectPostRefused(scene.Request({0, 1}, kPage + 1, last_page, kOpRemoteRead),
                                ErrorReason::ADDRESS_RANGE_OVERFLOW, kBaseField);
  scene.far().ExpectPostRefused(scene.Request({0, 1}, kPage + 1, last_page + 8, kOpRemoteRead, 8),
                                ErrorReason::ADDRESS_RANGE_OVERFLOW, kBaseField);
}

// Row 49, the other side: the highest addresses are addresses, and nothing behind them is reached by wrapping around.
TEST_P(NdkConformance, Case049_RegionAtTheTopOfTheAddressSpaceEndsThere) {
  FastScene scene(daemon(), 2);
  const uint64_t base = kMax - kPage + 1;
  const uint32_t token = scene.Register({0}, kPage - 1, base, kOpEveryRight);
  EXPECT_TRUE(scene.Read(base, token, kPage - 1) == scene.Laid({0}, 0, kPage - 1));
  EXPECT_EQ(scene.ReadStatus(base, token, kPage), kStatusAccessViolation);
  EXPECT_EQ(scene.ReadStatus(base + 1, token, 2 * kPage), kStatusAccessViolation);
  EXPECT_EQ(scene.WriteStatus("!", kMax, token), kStatusAccessViolation);
  EXPECT_EQ(scene.WriteStatus("!", 0, token), kStatusAccessViolation);
}

// Row 50. NDK: the region may reach to the end of the last page.
TEST_P(NdkConformance, Case050_LengthMayReachTheEndOfTheLastPage) {
  FastScene scene(daemon(), 3);
  constexpr uint32_t kFbo = 1000;
  constexpr uint32_t kLength = 3 * kPage - kFbo;
  const uint32_t token = scene.Register({0, 1, 2}, kLength, kBase + kFbo, kOpEveryRight, kFbo);
  EXPECT_TRUE(scene.Read(kBase + kFbo, token, kLength) == scene.Laid({0, 1, 2}, kFbo, kLength));
  scene.Write("!", kBase + 3 * kPage - 1, token);
  EXPECT_EQ(scene.memory().Text(3 * kPage - 1, 1), "!");
}

// Row 50, one byte more. NDK names no code. Recommended: STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case050_LengthBehindTheLastPageIsRefused) {
  FastScene scene(daemon(), 3);
  for (const uint32_t fbo : {0u, 1u, 1000u, 4095u}) {
    scene.far().ExpectPostRefused(scene.Request({0, 1, 2}, 3 * kPage - fbo + 1, kBase + fbo, kOpRemoteRead, fbo),
                                  ErrorReason::LENGTH_ABOVE_PAGES, kLengthField);
  }
}

// Row 51. NDK: pages behind the length may be named, and cannot be reached.
TEST_P(NdkConformance, Case051_PagesBehindTheLengthCannotBeReached) {
  FastScene scene(daemon(), 4);
  constexpr uint32_t kLength = kPage + 10;
  const uint32_t token = scene.Register({0, 1, 2, 3}, kLength, kBase, kOpEveryRight);
  EXPECT_TRUE(scene.Read(kBase, token, kLength) == scene.Laid({0, 1, 2, 3}, 0, kLength));
  const std::string behind = scene.memory().Text(kLength, 3 * kPage - 10);
  EXPECT_EQ(scene.ReadStatus(kBase + kLength, token, 1), kStatusAccessViolation);
  EXPECT_EQ(scene.WriteStatus("!", kBase + kLength, token), kStatusAccessViolation);
  EXPECT_EQ(scene.WriteStatus("!", kBase + 3 * kPage, token), kStatusAccessViolation);
  EXPECT_TRUE(scene.memory().Text(kLength, 3 * kPage - 10) == behind);
}

// Row 52. NDK: every entry is the address of a page, and names no code. Recommended: STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case052_AddressInsideAPageIsRefused) {
  FastScene scene(daemon(), 3);
  for (const uint64_t shift : {uint64_t{1}, uint64_t{8}, kPage / 2, kPage - 1}) {
    std::vector<uint64_t> pages = scene.memory().Pages(0, 3);
    pages[1] += shift;
    scene.far().ExpectPostRefused(FastRegisterRequest(scene.mr(), pages, 10, kBase, kOpRemoteRead),
                                  ErrorReason::LOGICAL_ADDRESS_UNALIGNED, std::string(kPageArrayField).append("[1]"));
  }
}

// Row 53. NDK: the pages need not follow one another, and may come in any order. Both directions of access scatter
// alike.
TEST_P(NdkConformance, Case053_ScatteredAndDescendingPagesLieInTheOrderOfTheArray) {
  FastScene scene(daemon(), 6);
  constexpr uint32_t kFbo = 40;
  for (const std::vector<size_t>& pages : std::vector<std::vector<size_t>>{{5, 0, 3, 1}, {4, 3, 2, 1, 0}, {2, 5}}) {
    const auto length = static_cast<uint32_t>(pages.size() * kPage - kFbo);
    const uint32_t token = scene.Register(pages, length, kBase + kFbo, kOpEveryRight, kFbo);
    EXPECT_TRUE(scene.Read(kBase + kFbo, token, length) == scene.Laid(pages, kFbo, length));
    // Across the boundary of the first two pages.
    scene.Write("seam", kBase + kPage - 2, token);
    EXPECT_EQ(scene.memory().Text(pages[0] * kPage + kPage - 2, 2), "se");
    EXPECT_EQ(scene.memory().Text(pages[1] * kPage, 2), "am");
    scene.far().MustRun(InvalidateMrRequest(scene.mr()));
  }
}

// Row 53, with pages of two memory objects: the array may mix mappings.
TEST_P(NdkConformance, Case053_PagesOfTwoMappingsMakeOneRegion) {
  FastScene scene(daemon(), 2);
  TestMemory other(scene.far_session(), 2 * kPage);
  other.SetText(kPage, "from the other object");
  const std::vector<uint64_t> pages = {scene.memory().Pages(1, 1)[0], other.Pages(1, 1)[0]};
  scene.far().MustRun(FastRegisterRequest(scene.mr(), pages, 2 * kPage, kBase, kOpRemoteRead));
  const uint32_t token = scene.far_session().RemoteToken(scene.mr()).response.remote_token();
  EXPECT_TRUE(scene.Read(kBase, token, kPage) == scene.Laid({1}, 0, kPage));
  EXPECT_EQ(scene.Read(kBase + kPage, token, 21), "from the other object");
}

// Row 54. NDK is silent on a page that is listed twice. Recommended: it has two addresses.
TEST_P(NdkConformance, Case054_PageListedTwiceHasTwoAddresses) {
  FastScene scene(daemon(), 3);
  const uint32_t token = scene.Register({1, 0, 1}, 3 * kPage, kBase, kOpEveryRight);
  scene.Write("alias", kBase + 10, token);
  EXPECT_EQ(scene.Read(kBase + 2 * kPage + 10, token, 5), "alias");
  EXPECT_EQ(scene.memory().Text(kPage + 10, 5), "alias");
}

// Row 55. NDK is silent on how long the page array must live. Recommended: it is copied at the post. Here it is part of
// a message that is gone, and whose room other arrays have taken, before the request is executed.
TEST_P(NdkConformance, Case055_PageArrayIsCopiedAtThePost) {
  FastScene scene(daemon(), 4);
  HoldBack(scene.far());
  scene.far().MustPost({scene.Request({3, 1}, 2 * kPage, kBase, kOpRemoteRead)});
  const uint32_t token = scene.far_session().RemoteToken(scene.mr()).response.remote_token();
  for (int count = 0; count < 16; ++count) {
    const uint64_t other = FastRegion(scene.far_session(), 2);
    scene.far().MustPost({FastRegisterRequest(other, scene.memory().Pages({0, 2}), 2 * kPage, kBase, 0, 0, 2)});
  }
  Release(scene.near());
  for (int count = 0; count < 17; ++count) {
    EXPECT_EQ(scene.far().NextInitiator().result().ntstatus(), kStatusSuccess);
  }
  EXPECT_TRUE(scene.Read(kBase, token, 2 * kPage) == scene.Laid({3, 1}, 0, 2 * kPage));
}

// Row 56. NDK wants a fast region that is initialized, and names no code. Recommended: STATUS_INVALID_DEVICE_STATE.
TEST_P(NdkConformance, Case056_RegionThatIsNotInitializedIsRefused) {
  FastScene scene(daemon(), 1);
  const std::vector<uint64_t> pages = scene.memory().Pages(0, 1);
  scene.far().ExpectPostRefused(
      FastRegisterRequest(scene.far_session().CreateMr(true), pages, kPage, kBase, kOpRemoteRead),
      ErrorReason::REGION_NOT_INITIALIZED, "fast_register.mr_id");
}

TEST_P(NdkConformance, Case056_NormalRegionIsRefused) {
  FastScene scene(daemon(), 1);
  const std::vector<uint64_t> pages = scene.memory().Pages(0, 1);
  const uint64_t normal = scene.far_session().CreateMr(false);
  scene.far().ExpectPostRefused(FastRegisterRequest(normal, pages, kPage, kBase, kOpRemoteRead),
                                ErrorReason::REGION_WRONG_KIND, "fast_register.mr_id");
  // Same for a registered region, whose registration stays usable.
  const v1::Registration registration =
      scene.far_session().RegisterWhole(normal, scene.memory().id(), kPage, v1::MR_FLAG_ALLOW_REMOTE_READ);
  scene.far().ExpectPostRefused(FastRegisterRequest(normal, pages, kPage, kBase, kOpRemoteRead),
                                ErrorReason::REGION_WRONG_KIND, "fast_register.mr_id");
  EXPECT_TRUE(scene.Read(kBase, registration.remote_token(), kPage) == scene.Laid({0}, 0, kPage));
}

// Row 57. NDK is silent on a region of another protection domain. Recommended: STATUS_ACCESS_VIOLATION.
TEST_P(NdkConformance, Case057_RegionOfAnotherDomainIsRefused) {
  FastScene scene(daemon(), 1);
  v1::CreatePdRequest create_pd;
  create_pd.set_adapter_id(scene.far_session().adapter_id());
  const auto pd = scene.far_session().Call(&MemoryStub::CreatePd, create_pd);
  ExpectOk(pd);
  v1::CreateMrRequest create_mr;
  create_mr.set_pd_id(pd.response.pd_id());
  create_mr.set_fast_register(true);
  const auto mr = scene.far_session().Call(&MemoryStub::CreateMr, create_mr);
  ExpectOk(mr);
  ExpectOk(InitializeFast(scene.far_session(), mr.response.mr_id(), 1, true));
  scene.far().ExpectPostRefused(
      FastRegisterRequest(mr.response.mr_id(), scene.memory().Pages(0, 1), kPage, kBase, kOpRemoteRead),
      ErrorReason::DOMAIN_MISMATCH, "fast_register.mr_id");
}

}  // namespace
}  // namespace rnicd::test
