#include "client/kubernetes/grants/grant_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "client/kubernetes/node/folder_fixture_test.h"

namespace rnicd::kubernetes {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

GrantRecord Record(uint64_t id) {
  GrantRecord record{.grant_id = id,
                     .secret_sha256 = std::string(32, '\xfe'),
                     .name = "memory-64mi/numa0-0000/3f2a91bc",
                     .resource = "rnicd.io/memory-64mi",
                     .device_ids = {"numa0-0000", "numa1-0003"},
                     .made_ms = 1'800'000'000'123,
                     .pod = "storage/db-0",
                     .pod_uid = "0d9e1b5c",
                     .container = "main",
                     .suspended = true};
  record.secret_sha256.back() = '\0';
  record.limits.set_pinned_bytes(134217728);
  record.limits.set_requests_per_second(UINT64_MAX);
  return record;
}

std::string Summary(const GrantRecord& grant) {
  std::string text = std::to_string(grant.grant_id) + "|" + (grant.has_door ? "door" : "secret") + "|" +
                     grant.secret_sha256 + "|" + grant.name + "|" + grant.resource + "|" +
                     std::to_string(grant.made_ms) + "|" + grant.pod + "|" + grant.pod_uid + "|" + grant.container +
                     "|" + (grant.suspended ? "suspended" : "active") + "|" + grant.limits.SerializeAsString();
  for (const std::string& id : grant.device_ids) {
    text += "|" + id;
  }
  return text;
}

class GrantFileTest : public FolderFixture {
 protected:
  std::string Refusal(absl::StatusCode code = absl::StatusCode::kDataLoss) const {
    const auto grants = file_.Load();
    EXPECT_EQ(grants.status().code(), code) << Read("grants.json");
    return std::string(grants.status().message());
  }
  // Result of loading a file with one grant in which `from` is replaced.
  std::string RefusalWith(const std::string& from, const std::string& to,
                          absl::StatusCode code = absl::StatusCode::kDataLoss) const {
    EXPECT_TRUE(file_.Save({Record(7)}).ok());
    std::string text = Read("grants.json");
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    Write("grants.json", text.replace(at, from.size(), to));
    return Refusal(code);
  }

  const GrantFile file_{folder_};
};

TEST_F(GrantFileTest, KeepsAllOfAGrantAndTheOrder) {
  GrantRecord found{.grant_id = UINT64_MAX, .has_door = true, .name = "n", .resource = "a/b", .device_ids = {"x"}};
  ASSERT_TRUE(file_.Save({Record(7), found}).ok());
  const auto grants = file_.Load();
  ASSERT_TRUE(grants.ok()) << grants.status();
  ASSERT_THAT(*grants, SizeIs(2));
  EXPECT_EQ(Summary((*grants)[0]), Summary(Record(7)));
  EXPECT_EQ(Summary((*grants)[1]), Summary(found));
}

TEST_F(GrantFileTest, NoFileIsNoGrants) {
  ASSERT_TRUE(file_.Load().ok());
  EXPECT_THAT(*file_.Load(), IsEmpty());
}

TEST_F(GrantFileTest, NoGrantsAreAFileTheSame) {
  ASSERT_TRUE(file_.Save({}).ok());
  EXPECT_THAT(Names(), ElementsAre("grants.json"));
  EXPECT_THAT(*file_.Load(), IsEmpty());
}

TEST_F(GrantFileTest, NobodyElseMayReadIt) {
  ASSERT_TRUE(file_.Save({Record(7)}).ok());
  struct stat facts = {};
  ASSERT_EQ(stat(Path("grants.json").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600u);
}

// The format is public: people search the file, and other programs may read it.
TEST_F(GrantFileTest, IsAsTheReadmeSays) {
  ASSERT_TRUE(file_.Save({Record(7)}).ok());
  EXPECT_EQ(Read("grants.json"), R"({
 "version": 1,
 "grants": [
  {
   "grant_id": "7",
   "door": false,
   "secret_sha256": "fefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefe00",
   "name": "memory-64mi/numa0-0000/3f2a91bc",
   "resource": "rnicd.io/memory-64mi",
   "device_ids": [
    "numa0-0000",
    "numa1-0003"
   ],
   "limits": {
    "pinned_bytes": 134217728,
    "requests_per_second": 18446744073709551615
   },
   "made_ms": 1800000000123,
   "pod": "storage/db-0",
   "pod_uid": "0d9e1b5c",
   "container": "main",
   "suspended": true
  }
 ]
}
)");
}

TEST_F(GrantFileTest, AnInterruptedSaveLeavesTheOldGrants) {
  ASSERT_TRUE(file_.Save({Record(7)}).ok());
  Write("grants.json.new", Read("grants.json").substr(0, 100));
  ASSERT_THAT(*file_.Load(), SizeIs(1));
  ASSERT_TRUE(file_.Save({Record(7), Record(8)}).ok());
  EXPECT_THAT(*file_.Load(), SizeIs(2));
  EXPECT_THAT(Names(), ElementsAre("grants.json"));
}

TEST_F(GrantFileTest, BytesThatAreNoTextDoNotStopASave) {
  GrantRecord record = Record(7);
  record.pod = "storage/\xff\xfe";
  ASSERT_TRUE(file_.Save({record}).ok());
  EXPECT_THAT(*file_.Load(), SizeIs(1));
}

TEST_F(GrantFileTest, WhatCannotBeUnderstoodIsMovedAsideAndAnErrorOnce) {
  Write("grants.json", "{\"version\": 1, \"grants\": [");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("grants.json: it is not a JSON object"), HasSubstr("grants.json.bad")));
  EXPECT_THAT(Names(), ElementsAre("grants.json.bad"));
  EXPECT_THAT(*file_.Load(), IsEmpty());
}

TEST_F(GrantFileTest, AnotherVersionIsRefusedAndStaysWhereItIs) {
  EXPECT_THAT(RefusalWith("\"version\": 1", "\"version\": 2", absl::StatusCode::kFailedPrecondition),
              HasSubstr("is of version 2, and this release reads 1"));
  EXPECT_THAT(Names(), ElementsAre("grants.json"));
}

TEST_F(GrantFileTest, AFileThatOthersMayWriteIsRefusedAndStaysWhereItIs) {
  ASSERT_TRUE(file_.Save({Record(7)}).ok());
  ASSERT_EQ(chmod(Path("grants.json").c_str(), 0666), 0);
  EXPECT_THAT(Refusal(absl::StatusCode::kFailedPrecondition), HasSubstr("is writable by group or others"));
  EXPECT_THAT(Names(), ElementsAre("grants.json"));
}

TEST_F(GrantFileTest, MembersOfTheDocumentAreChecked) {
  EXPECT_THAT(RefusalWith("\"version\": 1", "\"version\": \"1\""), HasSubstr("no version"));
  EXPECT_THAT(RefusalWith("\"version\": 1,", ""), HasSubstr("no version"));
  EXPECT_THAT(RefusalWith("\"grants\"", "\"others\""), HasSubstr("grants is not a list"));
  EXPECT_THAT(RefusalWith("\"grants\": [", "\"grants\": [[],"), HasSubstr("grants[0]: it is not an object"));
  Write("grants.json", "[]");
  EXPECT_THAT(Refusal(), HasSubstr("not a JSON object"));
}

TEST_F(GrantFileTest, MembersOfAGrantAreChecked) {
  EXPECT_THAT(RefusalWith("\"7\"", "7"), HasSubstr("grants[0]: grant_id is not text"));
  EXPECT_THAT(RefusalWith("\"7\"", "\"0\""), HasSubstr("grant_id is not a number from 1"));
  EXPECT_THAT(RefusalWith("fefe", "fe"), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(RefusalWith("fefe", "fexe"), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(RefusalWith("\"name\"", "\"other\""), HasSubstr("name is not text"));
  EXPECT_THAT(RefusalWith("\"rnicd.io/memory-64mi\"", "null"), HasSubstr("resource is not text"));
  EXPECT_THAT(RefusalWith("\"numa0-0000\"", "3"), HasSubstr("device_ids is not a list of names"));
  EXPECT_THAT(RefusalWith("\"numa0-0000\"", "\"\""), HasSubstr("device_ids is not a list of names"));
  EXPECT_THAT(RefusalWith("134217728", "-1"), HasSubstr("'pinned_bytes' is not a limit, or not a number"));
  EXPECT_THAT(RefusalWith("pinned_bytes", "pages"), HasSubstr("'pages' is not a limit"));
  EXPECT_THAT(RefusalWith("1800000000123", "1.5"), HasSubstr("made_ms is not a time"));
  EXPECT_THAT(RefusalWith("1800000000123", "9223372036854775808"), HasSubstr("made_ms is not a time"));
  EXPECT_THAT(RefusalWith("\"storage/db-0\"", "[]"), HasSubstr("pod is not text"));
  EXPECT_THAT(RefusalWith("\"0d9e1b5c\"", "7"), HasSubstr("pod_uid is not text"));
  EXPECT_THAT(RefusalWith("\"main\"", "7"), HasSubstr("container is not text"));
  EXPECT_THAT(RefusalWith("\"suspended\": true", "\"suspended\": 1"), HasSubstr("suspended is not true or false"));
  EXPECT_THAT(RefusalWith("\"door\": false", "\"door\": 1"), HasSubstr("door is not true or false"));
}

TEST_F(GrantFileTest, AnIdThatIsThereTwiceIsRefused) {
  ASSERT_TRUE(file_.Save({Record(7), Record(7)}).ok());
  EXPECT_THAT(Refusal(), HasSubstr("grants[1]: its grant_id is there twice"));
}

TEST_F(GrantFileTest, MembersOfLaterReleasesArePassedOver) {
  ASSERT_TRUE(file_.Save({Record(7)}).ok());
  std::string text = Read("grants.json");
  Write("grants.json", text.replace(text.find("\"grant_id\""), 0, "\"colour\": [1], "));
  EXPECT_THAT(*file_.Load(), SizeIs(1));
}

TEST_F(GrantFileTest, MembersThatEarlierReleasesDidNotWriteMayBeMissing) {
  ASSERT_TRUE(file_.Save({Record(7)}).ok());
  std::string text = Read("grants.json");
  for (const char* line :
       {"   \"door\": false,\n", "   \"pod_uid\": \"0d9e1b5c\",\n", "   \"container\": \"main\",\n"}) {
    text.erase(text.find(line), std::string_view(line).size());
  }
  Write("grants.json", text);
  const auto grants = file_.Load();
  ASSERT_TRUE(grants.ok()) << grants.status();
  EXPECT_EQ(grants->front().pod, "storage/db-0");
  EXPECT_EQ(grants->front().container, "");
  EXPECT_FALSE(grants->front().has_door);
}

}  // namespace
}  // namespace rnicd::kubernetes
