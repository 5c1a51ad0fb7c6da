// What the module refuses before the card sees it.
#include <cerrno>
#include <functional>

#include "tests/vm/fr/fixture.h"

namespace {

struct BadOp {
  const char* name;
  int error;
  std::function<void(rnicd_fr_op&, std::vector<rnicd_fr_run>&)> spoil;
};

void PrintTo(const BadOp& bad, std::ostream* out) { *out << bad.name; }

class BadRegistration : public FastRegistration, public testing::WithParamInterface<BadOp> {};

TEST_P(BadRegistration, IsRefusedAndTheNextOneWorks) {
  std::vector<rnicd_fr_run> runs = {FirstPage()};
  rnicd_fr_op op = RegisterOp(OnePage(), 0, 1);
  GetParam().spoil(op, runs);
  EXPECT_EQ(domain_.Run(op, runs), -GetParam().error);
  ASSERT_EQ(Register(OnePage()), 0);
  EXPECT_TRUE(pair_.Writes(kBase, Token(0, 0), 8));
}

using Op = rnicd_fr_op;
using Runs = std::vector<rnicd_fr_run>;

INSTANTIATE_TEST_SUITE_P(
    Fields, BadRegistration,
    testing::Values(BadOp{"UnknownKind", EINVAL, [](Op& op, Runs&) { op.kind = 3; }},
                    BadOp{"UnknownRegion", ENOENT, [](Op& op, Runs&) { op.region = 77; }},
                    BadOp{"UnknownSlot", EINVAL, [](Op& op, Runs&) { op.slot = 2; }},
                    BadOp{"LongKey", EINVAL, [](Op& op, Runs&) { op.key = 256; }},
                    BadOp{"BaseNotCongruent", EINVAL, [](Op& op, Runs&) { op.base += 8; }},
                    BadOp{"BaseAtTheEnd", EINVAL,
                          [](Op& op, Runs&) {
                            op.base = UINT64_MAX - 95;
                            op.offset = 4000;
                            op.length = 97;
                          }},
                    BadOp{"NoBytes", EINVAL, [](Op& op, Runs&) { op.length = 0; }},
                    BadOp{"MoreBytesThanPages", EINVAL, [](Op& op, Runs&) { op.length = kPage + 1; }},
                    BadOp{"MorePagesThanBytes", EINVAL, [](Op&, Runs& runs) { runs[0].count = 2; }},
                    BadOp{"HugeLength", EINVAL, [](Op& op, Runs&) { op.length = UINT64_MAX; }},
                    BadOp{"OffsetBehindThePage", EINVAL, [](Op& op, Runs&) { op.offset = kPage; }},
                    BadOp{"UnknownRight", EINVAL, [](Op& op, Runs&) { op.access |= 8; }},
                    BadOp{"RemoteWriteWithoutLocal", EINVAL, [](Op& op, Runs&) { op.access = RNICD_FR_REMOTE_WRITE; }},
                    BadOp{"NoRuns", EINVAL, [](Op& op, Runs&) { op.run_count = 0; }},
                    BadOp{"RunsBehindTheEnd", EINVAL, [](Op& op, Runs&) { op.first_run = 1; }},
                    BadOp{"RunsThatWrap", EINVAL, [](Op& op, Runs&) { op.first_run = UINT32_MAX; }},
                    BadOp{"UnknownMapping", ENOENT, [](Op&, Runs& runs) { runs[0].mapping = 99; }},
                    BadOp{"PageBehindTheMapping", EINVAL, [](Op&, Runs& runs) { runs[0].page = 8; }},
                    BadOp{"EmptyRun", EINVAL, [](Op&, Runs& runs) { runs[0].count = 0; }},
                    BadOp{"ReservedOfRun", EINVAL, [](Op&, Runs& runs) { runs[0].reserved = 1; }}),
    [](const auto& parameter) { return parameter.param.name; });

TEST_F(FastRegistration, MorePagesThanTheCardTakesAreRefused) {
  rnicd_fr_create_region region;
  EXPECT_EQ(domain_.CreateRegion(domain_.region_pages_max() + 1, region), EINVAL);
  EXPECT_EQ(domain_.CreateRegion(0, region), EINVAL);
}

TEST_F(FastRegistration, SlotInForceIsNotRegisteredAgain) {
  ASSERT_EQ(Register(OnePage()), 0);
  EXPECT_EQ(Register(OnePage()), -EBUSY);
}

TEST_F(FastRegistration, SlotIsFreeOnlyForTheCallBehindTheInvalidation) {
  ASSERT_EQ(Register(OnePage()), 0);
  std::vector<rnicd_fr_run> runs = {FirstPage()};
  std::vector<rnicd_fr_op> ops = {InvalidateOp(region_.region, 0, 0), RegisterOp(OnePage(), 0, 1),
                                  InvalidateOp(region_.region, 1, 0)};
  ASSERT_EQ(domain_.Submit(ops, runs), 0);
  EXPECT_EQ(ops[0].result, 0);
  EXPECT_EQ(ops[1].result, -EBUSY);
  EXPECT_EQ(ops[2].result, -ECANCELED);
  EXPECT_EQ(Register(OnePage()), 0);
}

TEST_F(FastRegistration, InvalidationNeedsTheKeyOfARegistration) {
  EXPECT_EQ(Invalidate(0, 0), -ENOENT);
  ASSERT_EQ(Register(OnePage()), 0);
  EXPECT_EQ(Invalidate(0, 1), -EINVAL);
  EXPECT_EQ(Invalidate(0, 0), 0);
}

TEST_F(FastRegistration, MappingInForceIsNotUnmapped) {
  ASSERT_EQ(Register(OnePage()), 0);
  EXPECT_EQ(domain_.Unmap(mapping_), EBUSY);
  ASSERT_EQ(Invalidate(0, 0), 0);
  EXPECT_EQ(domain_.Unmap(mapping_), 0);
  EXPECT_EQ(domain_.Unmap(mapping_), ENOENT);
}

TEST_F(FastRegistration, DestroyedRegionReachesNothing) {
  ASSERT_EQ(Register(OnePage()), 0);
  ASSERT_EQ(domain_.DestroyRegion(region_.region), 0);
  EXPECT_EQ(domain_.DestroyRegion(region_.region), ENOENT);
  EXPECT_FALSE(pair_.Writes(kBase, Token(0, 0), 8));
  EXPECT_EQ(domain_.Unmap(mapping_), 0);
}

TEST_F(FastRegistration, MapChecksItsRange) {
  for (const rnicd_fr_map bad : {rnicd_fr_map{.address = pages_.address() + 1, .length = kPage},
                                 rnicd_fr_map{.address = pages_.address(), .length = kPage - 1},
                                 rnicd_fr_map{.address = pages_.address(), .length = 0},
                                 rnicd_fr_map{.address = 0, .length = (RNICD_FR_MAPPING_PAGES_MAX + 1ULL) * kPage},
                                 rnicd_fr_map{.address = pages_.address(), .length = kPage, .reserved = 1}}) {
    rnicd_fr_map map = bad;
    EXPECT_EQ(Call(domain_.file(), RNICD_FR_MAP, &map), EINVAL);
  }
  rnicd_fr_map nothing = {.address = kPage, .length = kPage};
  EXPECT_EQ(Call(domain_.file(), RNICD_FR_MAP, &nothing), EFAULT);
}

TEST_F(FastRegistration, UnknownRequestsAreRefused) {
  EXPECT_EQ(Call(domain_.file(), _IO(RNICD_FR_MAGIC, 99), nullptr), ENOTTY);
  EXPECT_EQ(Call(control_.number(), RNICD_FR_SUBMIT, nullptr), ENOTTY);
  EXPECT_EQ(Call(domain_.file(), RNICD_FR_SUBMIT, nullptr), EFAULT);
}

}  // namespace
