#include "tests/support/process/left_out.h"

#include <gtest/gtest.h>

namespace rnicd::test {
namespace {

TEST(LeftOutOnVerbs, EveryNameIsATest) { ExpectLeftOutTestsExist("Provider/", false); }

}  // namespace
}  // namespace rnicd::test
