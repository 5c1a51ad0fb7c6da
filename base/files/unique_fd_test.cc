#include "base/files/unique_fd.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/files/any_descriptor_fixture.h"

namespace rnicd {
namespace {

TEST(UniqueFd, ClosesWhenItGoes) {
  int number = -1;
  {
    const UniqueFd fd = OpenAnyDescriptor();
    number = fd.get();
    EXPECT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
}

TEST(UniqueFd, MovesItsDescriptorAndKeepsNone) {
  UniqueFd first = OpenAnyDescriptor();
  const int number = first.get();
  UniqueFd second(std::move(first));
  EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): tests the moved-from state.
  UniqueFd third = OpenAnyDescriptor();
  const int replaced = third.get();
  third = std::move(second);
  EXPECT_EQ(third.get(), number);
  EXPECT_FALSE(IsOpen(replaced)) << "assigning closes what was held";
  UniqueFd& alias = third;
  third = std::move(alias);
  EXPECT_TRUE(IsOpen(number)) << "assigning it to itself changes nothing";
}

TEST(UniqueFd, ReleaseLetsGoWithoutClosing) {
  UniqueFd fd = OpenAnyDescriptor();
  const int number = fd.Release();
  EXPECT_FALSE(fd.valid());
  EXPECT_TRUE(IsOpen(number));
  fd.Reset(number);
  fd.Reset(-1);
  EXPECT_FALSE(IsOpen(number));
}

}  // namespace
}  // namespace rnicd
