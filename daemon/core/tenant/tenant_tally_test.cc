#include "daemon/core/tenant/tenant_tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"

namespace rnicd::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::string> Labels(const TallyBook& book) {
  std::vector<std::string> labels;
  for (const auto& tally : book.All()) {
    labels.push_back(tally->label());
  }
  return labels;
}

uint64_t AllRegistrations(const TallyBook& book) {
  uint64_t sum = 0;
  for (const auto& tally : book.All()) {
    sum += tally->registrations(true) + tally->registrations(false);
  }
  return sum;
}

TEST(TenantTally, CountsByOutcomeAndReason) {
  TenantTally tally("storage");
  tally.CountRegistration(true);
  tally.CountRegistration(true);
  tally.CountRegistration(false);
  tally.CountDeregistration(true);
  tally.CountRefusal(MakeError(ErrorReason::QUOTA_PINNED_BYTES));
  tally.CountRefusal(MakeError(ErrorReason::QUOTA_PINNED_BYTES));
  EXPECT_EQ(tally.registrations(true), 2u);
  EXPECT_EQ(tally.registrations(false), 1u);
  EXPECT_EQ(tally.deregistrations(true), 1u);
  EXPECT_EQ(tally.deregistrations(false), 0u);
  EXPECT_THAT(tally.refusals(), ElementsAre(Pair(ErrorReason::QUOTA_PINNED_BYTES, 2u)));
}

TEST(TenantTally, AStatusThatIsNotOursIsAnInternalFault) {
  TenantTally tally("storage");
  tally.CountRefusal(absl::UnknownError("from elsewhere"));
  EXPECT_THAT(tally.refusals(), ElementsAre(Pair(ErrorReason::INTERNAL_FAULT, 1u)));
}

TEST(TallyBook, ATenantThatComesBackGoesOnCounting) {
  TallyBook book(2);
  book.Open("storage")->CountRegistration(true);
  EXPECT_EQ(book.Open("storage")->registrations(true), 1u);
  EXPECT_THAT(Labels(book), ElementsAre("storage", "other"));
}

TEST(TallyBook, TenantsBeyondTheLimitShareOne) {
  TallyBook book(1);
  const auto first = book.Open("first");
  const auto second = book.Open("second");
  const auto third = book.Open("third");
  EXPECT_EQ(first->label(), "first");
  EXPECT_EQ(second->label(), "other");
  EXPECT_EQ(second, third);
  EXPECT_THAT(Labels(book), ElementsAre("first", "other"));
}

TEST(TallyBook, APlaceIsTakenFromTheTenantThatIsGoneLongest) {
  TallyBook book(2);
  book.Open("first")->CountRegistration(true);
  book.Open("second")->CountRegistration(true);
  book.Open("first")->CountRegistration(false);
  EXPECT_EQ(book.Open("third")->label(), "third");
  EXPECT_THAT(Labels(book), ElementsAre("first", "third", "other"));
  EXPECT_EQ(AllRegistrations(book), 3u) << "the counts of the one that went are those of the others now";
}

TEST(TallyBook, ALivingTenantKeepsItsPlace) {
  TallyBook book(1);
  const auto alive = book.Open("alive");
  for (int count = 0; count < 3; ++count) {
    EXPECT_EQ(book.Open("late")->label(), "other");
  }
  EXPECT_EQ(book.Open("alive"), alive);
}

TEST(TallyBook, ATenantThatIsReallyCalledOtherIsOneOfTheOthers) {
  TallyBook book(5);
  EXPECT_EQ(book.Open("other"), book.Open("other"));
  EXPECT_THAT(Labels(book), ElementsAre("other"));
}

TEST(TallyBook, NothingWasRefusedBeforeItHappened) {
  TallyBook book(5);
  EXPECT_THAT(book.Open("quiet")->refusals(), IsEmpty());
}

}  // namespace
}  // namespace rnicd::core
