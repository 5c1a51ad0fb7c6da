#include "daemon/policy/strict_text.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "daemon/policy/policy_fixture_test.h"
#include "rnicd/v1/policy.pb.h"

namespace rnicd::policy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

TEST(StrictText, AnUnknownFieldIsRefusedAtItsLine) {
  EXPECT_THAT(ErrorsIn("# comment\ntenant {\n  name: \"a\"\n  limit { regions: 1 }\n}\n"),
              ElementsAre("4: Message type \"rnicd.v1.TenantPolicy\" has no field named \"limit\"."));
}

TEST(StrictText, AFieldOfAnotherCaseIsUnknown) {
  EXPECT_THAT(ErrorsIn("\nDefault_Tenant: \"a\""), ElementsAre(StartsWith("2: Message type")));
}

TEST(StrictText, AFieldByItsNumberIsRefused) {
  EXPECT_THAT(ErrorsIn("2: \"a\""), ElementsAre(StartsWith("1: Expected identifier")));
}

TEST(StrictText, AFieldThatStandsTwiceIsRefused) {
  EXPECT_THAT(ErrorsIn("default_tenant: \"a\"\ndefault_tenant: \"a\""),
              ElementsAre("2: Non-repeated field \"default_tenant\" is specified multiple times."));
  EXPECT_THAT(ErrorsIn("tenant {\n limits {}\n limits {}\n}"),
              ElementsAre("3: Non-repeated field \"limits\" is specified multiple times."));
  EXPECT_THAT(ErrorsIn("tenant {\n match {\n uid: 0\n uid: 1\n}}"),
              ElementsAre("4: Non-repeated field \"uid\" is specified multiple times."));
}

TEST(StrictText, AFieldThatStandsTwiceIsRefusedAlsoWhenItIsZeroFirst) {
  EXPECT_THAT(ErrorsIn("tenant { limits {\n regions: 0\n regions: 5\n} }"),
              ElementsAre("3: Non-repeated field \"regions\" is specified multiple times."));
  EXPECT_THAT(ErrorsIn("default_tenant: \"\"\ndefault_tenant: \"a\""),
              ElementsAre("2: Non-repeated field \"default_tenant\" is specified multiple times."));
}

TEST(StrictText, AnUnknownEnumeratorIsRefusedByNameAndByNumber) {
  EXPECT_THAT(ErrorsIn("tenant {\n sharing: SHARING_NONE\n}"),
              ElementsAre("2: Unknown enumeration value of \"SHARING_NONE\" for field \"sharing\"."));
  EXPECT_THAT(ErrorsIn("tenant {\n sharing: 7\n}"),
              ElementsAre("2: Unknown enumeration value of \"7\" for field \"sharing\"."));
  EXPECT_THAT(ErrorsIn("# sharing\ntenant {\n name: \"a#\" sharing: -3 # next: \"\n # sharing: 4\n\n}"),
              ElementsAre("3: Unknown enumeration value of \"-3\" for field \"sharing\"."));
}

TEST(StrictText, NumbersThatAreNoneAreRefused) {
  for (const char* number : {"-1", "1e3", "1.5", "18446744073709551616", "\"5\"", "0x", "5k", "five"}) {
    EXPECT_THAT(ErrorsIn(std::string("tenant { limits {\n regions: ") + number + "\n} }"), Not(IsEmpty())) << number;
  }
  EXPECT_THAT(ErrorsIn("tenant { match {\n uid: 4294967296\n} }"), ElementsAre("2: Integer out of range (4294967296)"));
}

TEST(StrictText, ExtensionsAndAnyAreRefused) {
  EXPECT_THAT(ErrorsIn("\n[some.extension]: 1"), ElementsAre(StartsWith("2: Extension \"some.extension\"")));
  EXPECT_THAT(ErrorsIn("\n[type.googleapis.com/rnicd.v1.TenantPolicy] { name: \"a\" }"),
              ElementsAre(StartsWith("2: ")));
}

TEST(StrictText, ATextThatBreaksOffIsRefused) {
  EXPECT_THAT(ErrorsIn("default_tenant: \"a\"\ntenant {\n  name: \"a\"\n"), ElementsAre(StartsWith("4: ")));
  EXPECT_THAT(ErrorsIn("default_tenant: \"a"), Not(IsEmpty()));
}

TEST(StrictText, CommentsOfOtherLanguagesAreRefused) {
  EXPECT_THAT(ErrorsIn("// comment\n"), ElementsAre(StartsWith("1: ")));
}

TEST(StrictText, ALeadingByteOrderMarkIsRefused) { EXPECT_THAT(ErrorsIn("\xEF\xBB\xBF\n"), Not(IsEmpty())); }

// A later form of a message in policy.proto: a removed field, and a real oneof beside an optional field.
constexpr char kAgedFile[] = R"(
    name: "aged.proto" syntax: "proto3"
    message_type {
      name: "Aged" reserved_name: "old"
      field { name: "a" number: 1 type: TYPE_UINT32 label: LABEL_OPTIONAL oneof_index: 0 }
      field { name: "b" number: 2 type: TYPE_UINT32 label: LABEL_OPTIONAL oneof_index: 0 }
      field { name: "c" number: 3 type: TYPE_UINT32 label: LABEL_OPTIONAL oneof_index: 1 proto3_optional: true }
      oneof_decl { name: "either" }
      oneof_decl { name: "_c" }
    })";

TEST(StrictText, AReservedNameIsRefusedThoughTheFormatSkipsIt) {
  google::protobuf::FileDescriptorProto file;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kAgedFile, &file));
  google::protobuf::DescriptorPool pool;
  ASSERT_NE(pool.BuildFile(file), nullptr);
  google::protobuf::DynamicMessageFactory factory(&pool);
  const std::unique_ptr<google::protobuf::Message> aged(
      factory.GetPrototype(pool.FindMessageTypeByName("Aged"))->New());
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString("old: 5", aged.get())) << "it is not skipped any more";

  const auto errors_in = [&aged](std::string_view text) {
    google::protobuf::TextFormat::ParseInfoTree tree;
    ParseErrors errors;
    return ReadStrictly(text, *aged, tree, errors) ? "" : std::string(errors.ToStatus("f").message());
  };
  EXPECT_THAT(errors_in("a: 1\nold: 5"), StartsWith("f:2: "));
  EXPECT_THAT(errors_in("a: 1\nb: 2"), StartsWith("f:2: ")) << "both of a oneof";
  EXPECT_EQ(errors_in("b: 2 c: 3"), "");
}

TEST(StrictText, ErrorsComeInTheOrderOfLinesAndAreAtMostTwenty) {
  ParseErrors errors;
  for (int line = 30; line >= 1; --line) {
    errors.Add(line, "wrong");
  }
  const std::string text(errors.ToStatus("f").message());
  EXPECT_THAT(text, StartsWith("f:1: wrong\nf:2: wrong\n"));
  EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1, kParseErrorsMax);
}

TEST(StrictText, AnErrorIsOneShortPrintableLineWhateverTheFileHolds) {
  ParseErrors errors;
  errors.Add(1, "bad \x1b[31m\nname " + std::string(100000, 'x'));
  const std::string text(errors.ToStatus("f").message());
  EXPECT_THAT(text, StartsWith("f:1: bad ?[31m?name xxx"));
  EXPECT_LT(text.size(), 400u);
  EXPECT_THAT(ErrorsIn("tenant { " + std::string(100000, 'y') + ": 1 }"), SizeIs(1));
}

TEST(StrictText, TheLocationOfAMissingFieldIsItsMessage) {
  v1::TenantPolicy tenant;
  google::protobuf::TextFormat::ParseInfoTree tree;
  ParseErrors errors;
  ASSERT_TRUE(ReadStrictly("\n\nlimits {\n\n regions: 0 }", tenant, tree, errors));
  const SourceLocation location(v1::TenantPolicy::descriptor(), &tree);
  EXPECT_EQ(location.line(), 1);
  EXPECT_FALSE(location.Has(v1::TenantPolicy::kNameFieldNumber));
  EXPECT_EQ(location.LineOf(v1::TenantPolicy::kNameFieldNumber), 1);
  const SourceLocation limits = location.In(v1::TenantPolicy::kLimitsFieldNumber);
  EXPECT_EQ(limits.line(), 3);
  EXPECT_TRUE(limits.Has(v1::ResourceLimits::kRegionsFieldNumber)) << "zero, but written";
  EXPECT_EQ(limits.LineOf("regions"), 5);
  EXPECT_EQ(limits.LineOf("windows"), 3);
  EXPECT_EQ(location.In(v1::TenantPolicy::kSessionLimitsFieldNumber).LineOf("windows"), 1);
}

TEST(StrictText, TheElementsOfAListStandWhereTheirFirstFieldIs) {
  v1::TenantPolicy tenant;
  google::protobuf::TextFormat::ParseInfoTree tree;
  ParseErrors errors;
  ASSERT_TRUE(
      ReadStrictly("match: [\n{ gid: 9\nuid: 1 },\n{\n uid: 2 },\n{}]\nmatch { uid: 3 }", tenant, tree, errors));
  const SourceLocation location(v1::TenantPolicy::descriptor(), &tree);
  std::vector<int> lines;
  for (int index = 0; index < tenant.match_size(); ++index) {
    lines.push_back(location.In(v1::TenantPolicy::kMatchFieldNumber, index, tenant.match_size()).line());
  }
  EXPECT_THAT(lines, ElementsAre(2, 5, 1, 7)) << "of an empty one nothing is known but the list";
}

}  // namespace
}  // namespace rnicd::policy
