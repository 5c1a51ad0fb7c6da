#include "daemon/audit/audit_line.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"

namespace rnicd::audit {
namespace {

using Json = nlohmann::ordered_json;

// 2026-03-01T00:00:00.007Z: the day after a February without a leap day.
constexpr WallTime kTime =
    WallTime(std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + std::chrono::milliseconds(7));

const core::Caller& SomeCaller() {
  static const core::Caller caller{.pid = 17340,
                                   .uid = 65534,
                                   .gid = 65533,
                                   .role = core::Role::kWorkload,
                                   .container = {.pod_uid = "1b2c3d4e-0000-4000-8000-000000000001", .id = "ab12"}};
  return caller;
}

std::string FormatNow(const core::Decision& decision) { return Format(LineOf(decision, kTime)); }

// Parses one line; an empty object, after a test failure, when it is not JSON.
Json Parse(const std::string& line) {
  EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(json.is_object()) << line;
  return json.is_object() ? json : Json::object();
}

std::vector<std::string> Keys(const Json& json) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) {
    keys.push_back(key);
  }
  return keys;
}

TEST(AuditLine, AnAllowedCallSaysWhoWhatAndWhen) {
  EXPECT_EQ(
      FormatNow({.what = "MemoryService.CreateMr",
                 .caller = &SomeCaller(),
                 .tenant = "storage",
                 .session = SessionId{UINT64_MAX},
                 .object = "pd_id=4 mr_id=17",
                 .note = "n"}),
      R"({"time":"2026-03-01T00:00:00.007Z","what":"MemoryService.CreateMr","result":"allowed","reason":"",)"
      R"("field":"","pid":17340,"uid":65534,"gid":65533,"sid":"","pod_uid":"1b2c3d4e-0000-4000-8000-000000000001",)"
      R"("container_id":"ab12","role":"workload","tenant":"storage","namespace":"","pod":"","container":"",)"
      R"("session_id":"18446744073709551615",)"
      R"("object":"pd_id=4 mr_id=17","note":"n"})"
      "\n");
}

TEST(AuditLine, ARefusalByAQuotaHasItsFiguresAndNoOtherHas) {
  const Json quota = Parse(FormatNow({.what = "MemoryService.RegisterMr",
                                      .caller = &SomeCaller(),
                                      .status = MakeError(ErrorInfo{.reason = ErrorReason::QUOTA_PINNED_BYTES,
                                                                    .field = "length",
                                                                    .limit = 8192,
                                                                    .used = 4096,
                                                                    .requested = UINT64_MAX})}));
  EXPECT_EQ(quota.value("result", ""), "refused");
  EXPECT_EQ(quota.value("reason", ""), "QUOTA_PINNED_BYTES");
  EXPECT_EQ(quota.value("field", ""), "length");
  EXPECT_EQ(quota.value("limit", uint64_t{0}), 8192u);
  EXPECT_EQ(quota.value("used", uint64_t{0}), 4096u);
  EXPECT_EQ(quota.value("requested", uint64_t{0}), UINT64_MAX);
  const Json other =
      Parse(FormatNow({.what = "x", .caller = &SomeCaller(), .status = MakeError(ErrorReason::SESSION_REQUIRED, "f")}));
  EXPECT_FALSE(other.contains("limit"));
}

TEST(AuditLine, FaultsOfOursAreNoRefusals) {
  for (const absl::Status& fault : {MakeError(ErrorReason::INTERNAL_FAULT), MakeError(ErrorReason::DEVICE_FAILED),
                                    absl::InternalError("a stranger's failure")}) {
    EXPECT_EQ(Parse(FormatNow({.what = "x", .status = fault})).value("result", ""), "failed") << fault;
  }
}

// The front door has no reasons: the cause of a refused connection is in the note.
TEST(AuditLine, ARefusalWithoutAReasonSaysItsCode) {
  const Json json = Parse(FormatNow({.what = "connection",
                                     .caller = &SomeCaller(),
                                     .status = absl::PermissionDeniedError("turned away"),
                                     .note = core::kRefusedRole}));
  EXPECT_EQ(json.value("result", ""), "refused");
  EXPECT_EQ(json.value("reason", ""), "PERMISSION_DENIED");
  EXPECT_EQ(json.value("note", ""), "not_an_operator");
}

TEST(AuditLine, KeysAreTheSameForEveryDecision) {
  const Json by_caller = Parse(FormatNow({.what = "x", .caller = &SomeCaller()}));
  const Json by_daemon = Parse(FormatNow({.what = "grant.expire", .tenant = "grant/a"}));
  EXPECT_EQ(Keys(by_caller), Keys(by_daemon));
  EXPECT_TRUE(by_daemon["pid"].is_null());
  EXPECT_TRUE(by_daemon["uid"].is_null());
  EXPECT_EQ(by_daemon.value("role", ""), "daemon");
  EXPECT_EQ(by_daemon.value("session_id", "?"), "");
}

std::shared_ptr<const core::Workload> WorkloadOf(const std::vector<std::string>& device_ids) {
  const auto devices = std::make_shared<core::DeviceSet>();
  devices->resource = "rnicd.io/memory-64mi";
  devices->ids = device_ids;
  return std::make_shared<core::Workload>(
      core::Workload{.name = {.namespace_name = "ml", .pod = "train-0", .container = "main"}, .devices = devices});
}

TEST(AuditLine, ATenantIsNamedAsKubernetesDoes) {
  const Json json = Parse(FormatNow({.what = "x", .tenant = "grant/a", .workload = WorkloadOf({"m-0", "m-1"})}));
  EXPECT_EQ(json.value("namespace", ""), "ml");
  EXPECT_EQ(json.value("pod", ""), "train-0");
  EXPECT_EQ(json.value("container", ""), "main");
  EXPECT_EQ(json.value("devices", ""), "rnicd.io/memory-64mi=m-0,m-1");
}

TEST(AuditLine, WithoutDevicesTheLineHasNoKeyForThem) {
  core::Workload pod;
  pod.name = {.namespace_name = "ml", .pod = "train-0", .container = ""};
  const Json json = Parse(FormatNow({.what = "x", .workload = std::make_shared<core::Workload>(pod)}));
  EXPECT_EQ(json.value("pod", ""), "train-0");
  EXPECT_EQ(json.value("container", "?"), "");
  EXPECT_FALSE(json.contains("devices"));
}

TEST(AuditLine, DevicesAreCutAsEveryText) {
  const Json json =
      Parse(FormatNow({.what = "x", .workload = WorkloadOf(std::vector<std::string>(10'000, "memory-0001"))}));
  EXPECT_EQ(json.value("devices", "").size(), 1024u);
}

TEST(AuditLine, EveryRoleHasItsName) {
  const auto role_of = [](core::Role role) {
    const core::Caller caller{.role = role};
    return Parse(FormatNow({.what = "x", .caller = &caller})).value("role", "");
  };
  EXPECT_EQ(role_of(core::Role::kWorkload), "workload");
  EXPECT_EQ(role_of(core::Role::kOperator), "operator");
  EXPECT_EQ(role_of(core::Role::kDevicePlugin), "device_plugin");
}

TEST(AuditLine, NoByteOfATextBreaksTheLineOrForgesAKey) {
  std::string hostile;
  for (int byte = 0; byte < 256; ++byte) {
    hostile += static_cast<char>(byte);
  }
  hostile += R"(","result":"allowed","uid":0,"x":")";
  core::Caller caller = SomeCaller();
  caller.container.pod_uid = hostile;
  const std::string line = FormatNow({.what = hostile,
                                      .caller = &caller,
                                      .tenant = hostile,
                                      .object = hostile,
                                      .status = MakeError(ErrorReason::FIELD_OUT_OF_RANGE, hostile),
                                      .note = hostile});
  const Json json = Parse(line);
  EXPECT_EQ(json.value("result", ""), "refused");
  EXPECT_EQ(json.value("uid", 0u), 65534u);
  EXPECT_EQ(Keys(json), Keys(Parse(FormatNow({.what = "x", .caller = &caller}))));
  for (const char c : line.substr(0, line.size() - 1)) {
    EXPECT_TRUE(c >= ' ' && c <= '~') << "byte " << static_cast<int>(c);
  }
}

TEST(AuditLine, ATextOfAnyLengthGivesALineOfBoundedLength) {
  const std::string endless(1 << 20, 'x');
  const std::string line = FormatNow({.what = endless,
                                      .caller = &SomeCaller(),
                                      .tenant = endless,
                                      .object = endless,
                                      .status = MakeError(ErrorReason::FIELD_OUT_OF_RANGE, endless),
                                      .note = endless});
  EXPECT_LT(line.size(), 8192u);
  EXPECT_GT(line.size(), 5 * 1024u) << "what is said must not be lost either";
  Parse(line);
}

TEST(AuditLine, LostLinesAreALineOfTheirOwn) {
  EXPECT_EQ(FormatLost(kTime, 42), "{\"time\":\"2026-03-01T00:00:00.007Z\",\"what\":\"audit.lost\",\"count\":42}\n");
}

TEST(AuditLine, ACountIsALineWithItsNumberAndTimes) {
  AuditLine line = LineOf({.what = "x", .caller = &SomeCaller()}, kTime);
  line.times = 7;
  line.first = kTime - std::chrono::seconds(2);
  line.last = kTime - std::chrono::seconds(1);
  const Json json = Parse(Format(line));
  EXPECT_EQ(json["time"], "2026-03-01T00:00:00.007Z");
  EXPECT_EQ(json["times"], 7);
  EXPECT_EQ(json["first"], "2026-02-28T23:59:58.007Z");
  EXPECT_EQ(json["last"], "2026-02-28T23:59:59.007Z");
  EXPECT_FALSE(Parse(FormatNow({.what = "x"})).contains("times"));
}

TEST(AuditLine, LeftOutLinesAreALineOfTheirOwn) {
  EXPECT_EQ(Format(LeftOutLine("uid 5", 42, kTime, kTime)),
            R"({"time":"2026-03-01T00:00:00.007Z","what":"audit.left_out","owner":"uid 5","count":42,)"
            R"("first":"2026-03-01T00:00:00.007Z","last":"2026-03-01T00:00:00.007Z"})"
            "\n");
}

// The longest value of everything that is no text, with texts of each kind of byte.
TEST(AuditLine, BytesMaxIsNoLessThanTheLineAndLittleMore) {
  constexpr uint64_t kMost = UINT64_MAX;
  for (const std::string& text :
       {std::string(), std::string(500, 'a'), std::string(500, '\1'), std::string(500, '\xff'), std::string(500, '"'),
        std::string(500, '\x7f'), std::string("\xf0\x9f\x92\xa9")}) {
    AuditLine line{.time = kTime,
                   .what = text,
                   .code = absl::StatusCode::kInvalidArgument,
                   .error = {.reason = ErrorReason::MESSAGE_MALFORMED, .field = text},
                   .tenant = text,
                   .workload = {.namespace_name = text, .pod = text, .container = text},
                   .devices = text,
                   .object = text,
                   .note = text};
    const auto expect_close = [&line] {
      const std::string formatted = Format(line);
      EXPECT_GE(BytesMax(line), formatted.size()) << formatted.substr(0, 200);
      EXPECT_LE(BytesMax(line), formatted.size() * 3 / 2 + 150) << formatted.substr(0, 200);
    };
    expect_close();
    line.caller = core::Caller{.pid = INT32_MIN,
                               .uid = UINT32_MAX,
                               .gid = UINT32_MAX,
                               .role = core::Role::kDevicePlugin,
                               .container = {text, text}};
    line.session_id = kMost;
    line.error.limit = line.error.used = line.error.requested = kMost;
    line.error.reason = ErrorReason::FLAGS_INCOMPLETE_REMOTE_WRITE;
    line.times = kMost;
    expect_close();
    line.left_out_of = "container " + std::string(64, 'f');
    EXPECT_GE(BytesMax(line), Format(line).size());
  }
}

}  // namespace
}  // namespace rnicd::audit
