#include "daemon/app/host/fast_module_linux.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rnicd::app {
namespace {

TEST(FastModule, IsNotUsedWhereItsPagesAreNotThoseOfNdk) {
  provider::VerbsOptions verbs{.kernel_page_bytes = 65536};
  OpenFastModule(verbs);
  EXPECT_EQ(verbs.fast_module, nullptr);
  EXPECT_THAT(verbs.no_fast_module, ::testing::HasSubstr("65536 bytes"));
}

}  // namespace
}  // namespace rnicd::app
