// The policy file: any text is either refused with line numbers, or has one meaning and can be used.

#include <google/protobuf/text_format.h>

#include <charconv>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/manual_clock_fake.h"
#include "base/secrets/seeded_random_fake.h"
#include "daemon/core/tenant/tenant_directory.h"
#include "daemon/policy/policy_file.h"
#include "rnicd/v1/policy.pb.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/policy_text.h"
#include "tests/fuzz/split.h"

namespace rnicd::fuzz {
namespace {

constexpr size_t kParseErrorsMax = 20;
constexpr std::string_view kPodUid = "01234567-89ab-cdef-0123-456789abcdef";
constexpr uid_t kOwnUid = 65532;

std::vector<core::Caller> Callers() {
  std::vector<core::Caller> callers;
  for (const uid_t uid : {uid_t{0}, uid_t{1000}, kOwnUid, uid_t{UINT32_MAX}}) {
    callers.push_back({.uid = uid, .gid = uid});
    callers.push_back({.uid = uid, .gid = 0, .container = {.pod_uid = std::string(kPodUid), .id = ""}});
  }
  return callers;
}

core::PodFacts KnownPod() {
  return {.uid = std::string(kPodUid), .namespace_name = "storage", .name = "pod-0", .labels = {{"tier", "gold"}}};
}

// The line number in "file:LINE: REASON"; 0 if the text does not have that form.
int LineOf(std::string_view text) {
  constexpr std::string_view kFile = "file:";
  int line = 0;
  if (!text.starts_with(kFile)) {
    return 0;
  }
  text.remove_prefix(kFile.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), line);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return error == std::errc() && text.starts_with(": ") && text.size() > 2 ? line : 0;
}

void CheckRefusal(const absl::Status& status) {
  Check(absl::IsInvalidArgument(status), "a policy is refused as an invalid argument");
  const std::vector<std::string> errors = Split(std::string(status.message()), '\n');
  Check(errors.size() <= kParseErrorsMax, "the number of parse errors is bounded");
  int last = 1;
  for (const std::string& text : errors) {
    const int line = LineOf(text);
    Check(line >= last, "each error has its line number, in order, and contains no line break");
    last = line;
  }
}

// Checks that a parsed policy can be used: for callers with and without pods, and in place of another policy.
void Use(const core::Policy& policy) {
  const ManualClock clock;
  SeededRandom random(1);
  const auto ledger = std::make_shared<core::Ledger>(core::Limits{}, nullptr);
  core::TenantDirectory directory(core::Policy{}, ledger, random, clock);
  directory.SetPods({KnownPod()});
  directory.SetPolicy(policy);
  std::set<std::string> rules;
  for (const core::TenantRule& rule : policy.tenants) {
    Check(rules.insert(rule.name).second, "tenant names are unique");
  }
  Check(policy.default_tenant.empty() || rules.contains(policy.default_tenant), "the default tenant exists");
  for (const core::Caller& caller : Callers()) {
    const auto tenant = directory.TenantOf(caller, "");
    Check(tenant.ok() || policy.default_tenant.empty(), "with a default tenant every caller has a tenant");
    if (tenant.ok()) {
      Check(rules.contains((*tenant)->rule()), "a tenant's rule is in the policy");
      Check((*tenant)->name().starts_with((*tenant)->rule()), "a tenant's name begins with its rule's");
    }
    (void)directory.RoleOf(caller, caller.uid == kOwnUid);
  }
  directory.SetPolicy(policy);
  (void)directory.Sweep();
}

void TryPolicy(const std::string& text) {
  const absl::StatusOr<core::Policy> policy = policy::ParsePolicy(text, "file");
  if (!policy.ok()) {
    CheckRefusal(policy.status());
    return;
  }
  v1::Policy lenient;
  // The text format does not know the byte order mark that a file may begin with.
  const std::string unmarked = text.starts_with("\xEF\xBB\xBF") ? text.substr(3) : text;
  Check(google::protobuf::TextFormat::ParseFromString(unmarked, &lenient),
        "the text format accepts every accepted policy");
  Use(*policy);
  const std::string written = PolicyText(*policy);
  const absl::StatusOr<core::Policy> again = policy::ParsePolicy(written, "written");
  Check(again.ok(), "a printed policy is accepted");
  Check(PolicyText(*again) == written, "and means the same");
}

}  // namespace
}  // namespace rnicd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rnicd::fuzz::TryPolicy(std::string(rnicd::fuzz::AsText(data, size)));
  return 0;
}
