#include "client/kubernetes/resources/resource.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "client/kubernetes/resources/names_test.h"

namespace rnicd::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Message(std::string_view text) { return std::string(ParseResources(text).status().message()); }

TEST(ParseResources, ReadsNamesUnitsAndCounts) {
  const auto resources = ParseResources("rnicd.io/memory-64mi=64MiB,rnicd.io/memory-1gi=1GiB:16");
  ASSERT_TRUE(resources.ok()) << resources.status();
  EXPECT_THAT(*resources,
              ElementsAre(ResourceSpec{.name = "rnicd.io/memory-64mi", .unit_bytes = 64 * kMiB, .count = 0},
                          ResourceSpec{.name = "rnicd.io/memory-1gi", .unit_bytes = 1024 * kMiB, .count = 16}));
}

TEST(ParseResources, NamesAreThoseOfExtendedResources) {
  const std::string label(63, 'a');
  for (const std::string& name :
       {std::string("a/b"), "a-1.b2/" + label, absl::StrCat(label, ".", label, ".", label, ".c/Memory_64.Mi-x")}) {
    EXPECT_TRUE(ParseResources(name + "=4096").ok()) << name;
  }
  for (const std::string& name :
       {std::string(), std::string("memory"), std::string("rnicd.io/"), std::string("/memory"),
        std::string("rnicd.io/a/b"), std::string("Rnicd.io/memory"), std::string("rnicd..io/memory"),
        std::string("-rnicd.io/memory"), std::string("rnicd_io/memory"), std::string("rnicd.io./memory"),
        std::string("rnicd.io/-memory"), std::string("rnicd.io/memory-"), std::string("rnicd.io/mem ory"),
        "rnicd.io/" + label + "a", label + "a/memory",
        absl::StrCat(label, ".", label, ".", label, ".", std::string(53, 'b'), "/memory")}) {
    EXPECT_THAT(Message(name + "=4096"), HasSubstr("such as rnicd.io/memory-64mi")) << name;
  }
}

TEST(ParseResources, NamesThatKubernetesKeepsToItselfAreRefused) {
  EXPECT_THAT(Message("kubernetes.io/memory=4096"), HasSubstr("belong to Kubernetes"));
  EXPECT_THAT(Message("node.kubernetes.io/memory=4096"), HasSubstr("belong to Kubernetes"));
  EXPECT_THAT(Message("requests.io/memory=4096"), HasSubstr("belong to Kubernetes"));
}

TEST(ParseResources, AUnitIsWholePages) {
  for (const char* unit : {"", "0", "4095", "6144", "64mi", "-4096", "64 MiB"}) {
    EXPECT_THAT(Message(std::string("a/b=") + unit), HasSubstr("multiple of 4096")) << unit;
  }
}

TEST(ParseResources, ACountThatIsWrittenIsAtLeastOne) {
  for (const char* count : {"", "0", "-1", "x", "1:2", "18446744073709551616"}) {
    EXPECT_THAT(Message(std::string("a/b=4096:") + count), HasSubstr("number from 1")) << count;
  }
}

TEST(ParseResources, NothingAndHalfOfSomethingAreRefused) {
  EXPECT_THAT(Message(""), HasSubstr("not a name and a unit"));
  EXPECT_THAT(Message("a/b=4096,"), HasSubstr("not a name and a unit"));
  EXPECT_THAT(Message("a/b"), HasSubstr("resource 'a/b'"));
}

// Both would be served on the socket that the type names.
TEST(ParseResources, TwoResourcesOfOneTypeAreRefused) {
  EXPECT_THAT(Message("a/b=4096,a/b=8192"), HasSubstr("another resource has this type"));
  EXPECT_THAT(Message("a/b=4096,c/b=8192"), HasSubstr("another resource has this type"));
}

TEST(TypeOf, IsWhatStandsBehindTheSlash) {
  EXPECT_EQ(TypeOf("rnicd.io/memory-64mi"), "memory-64mi");
  EXPECT_EQ(TypeOf("memory"), "memory");
}

}  // namespace
}  // namespace rnicd::kubernetes
