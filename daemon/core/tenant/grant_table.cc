#include "daemon/core/tenant/grant_table.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

#include "base/status.h"

namespace rnicd::core {
namespace {

// A secret is "rnicd-grant-", the grant's id, a dash and 256 random bits; the id finds the grant, the whole is
// compared.
constexpr std::string_view kPrefix = "rnicd-grant-";
constexpr size_t kDigits = 16;
constexpr int kRandomWords = 4;
constexpr size_t kSecretBytes = kPrefix.size() + kDigits + 1 + kRandomWords * kDigits;

void AppendHex(std::string& text, uint64_t value) {
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(value));
  text.append(digits, kDigits);
}

std::optional<GrantId> IdOf(std::string_view secret) {
  if (!secret.starts_with(kPrefix) || secret.size() != kSecretBytes) {
    return std::nullopt;
  }
  const char* const begin = secret.data() + kPrefix.size();
  GrantId id;
  const auto parsed = std::from_chars(begin, begin + kDigits, id.value, 16);
  return parsed.ec == std::errc() && parsed.ptr == begin + kDigits ? std::optional(id) : std::nullopt;
}

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_./").find(c) != std::string_view::npos;
}

std::string NewSecret(GrantId id, RandomSource& random) {
  // Never reallocates, so that no part of the secret stays behind in freed memory.
  std::string secret;
  secret.reserve(kSecretBytes);
  secret += kPrefix;
  AppendHex(secret, id.value);
  secret += '-';
  for (int word = 0; word < kRandomWords; ++word) {
    AppendHex(secret, random.Next());
  }
  return secret;
}

size_t CountOf(const std::shared_ptr<const DeviceSet>& devices) { return devices == nullptr ? 0 : devices->ids.size(); }

absl::Status CheckName(const std::string& name) {
  if (name.empty() || name.size() > kMaxGrantNameBytes || !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "name");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status GrantTable::CheckHere() const {
  return handed_over_ ? MakeError(ErrorReason::DAEMON_HANDED_OVER) : absl::OkStatus();
}

absl::Status GrantTable::CheckFree(const GrantTerms& terms) const {
  if (grants_.size() >= kMaxGrants) {
    return MakeError(
        ErrorInfo{.reason = ErrorReason::QUOTA_GRANTS, .limit = kMaxGrants, .used = grants_.size(), .requested = 1});
  }
  if (CountOf(terms.devices) > kMaxGrantDevices - devices_) {
    return MakeError(ErrorInfo{.reason = ErrorReason::QUOTA_GRANTS,
                               .field = "devices",
                               .limit = kMaxGrantDevices,
                               .used = devices_,
                               .requested = CountOf(terms.devices)});
  }
  if (names_.contains(terms.name)) {
    return MakeError(ErrorReason::GRANT_NAME_TAKEN, "name");
  }
  if (terms.renewal.has_value() && grants_.contains(terms.renewal->id)) {
    return MakeError(ErrorReason::GRANT_NAME_TAKEN, "renewal.grant_id");
  }
  return absl::OkStatus();
}

GrantId GrantTable::NewId() {
  GrantId id{random_.Next()};
  while (id.value == 0 || grants_.contains(id)) {
    id.value = random_.Next();
  }
  return id;
}

absl::StatusOr<IssuedGrant> GrantTable::Create(const GrantTerms& terms, const MakeTenant& make) {
  RNICD_RETURN_IF_ERROR(CheckName(terms.name));
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckHere());
  RNICD_RETURN_IF_ERROR(CheckFree(terms));
  const GrantId id = terms.renewal.has_value() ? terms.renewal->id : NewId();
  IssuedGrant issued{.id = id, .secret = {}, .tenant = make(id)};
  std::optional<SecretDigest> digest = terms.renewal.has_value() ? terms.renewal->digest : std::nullopt;
  if (!terms.door && !terms.renewal.has_value()) {
    issued.secret = NewSecret(id, random_);
    digest = SecretDigest::Of(issued.secret);
  }
  const Instant now = clock_.Now();
  const auto age = terms.renewal.has_value() ? terms.renewal->age : std::chrono::milliseconds(0);
  GrantView view{.id = id, .created = now - age, .tenant = issued.tenant, .devices = terms.devices};
  if (terms.door) {
    issued.tenant->door().Make();
  }
  view.tenant->BindTo(terms.pod_uid);
  if (terms.lifetime.count() > 0) {
    view.expiry = now + terms.lifetime;
  }
  devices_ += CountOf(terms.devices);
  names_.insert(terms.name);
  grants_.emplace(id, Entry{.digest = digest, .name = terms.name, .view = std::move(view)});
  return issued;
}

absl::StatusOr<std::shared_ptr<Tenant>> GrantTable::Present(std::string_view secret, const Caller& caller) const {
  MutexLock lock(mutex_);
  const std::optional<GrantId> id = IdOf(secret);
  const auto found = id.has_value() ? grants_.find(*id) : grants_.end();
  if (found == grants_.end()) {
    return MakeError(ErrorReason::GRANT_REFUSED, "grant");
  }
  const GrantView& view = found->second.view;
  if (!found->second.digest.has_value() || !found->second.digest->Matches(secret) ||
      !view.tenant->Admits(caller.container.pod_uid) || IsOver(view)) {
    return MakeError(ErrorReason::GRANT_REFUSED, "grant");
  }
  return view.tenant;
}

absl::StatusOr<std::shared_ptr<Tenant>> GrantTable::Enter(const Caller& caller) const {
  MutexLock lock(mutex_);
  const auto found = grants_.find(caller.door->grant());
  // A renewed grant has another tenant: this connection is of before.
  if (found == grants_.end() || found->second.view.tenant != caller.door ||
      !caller.door->Admits(caller.container.pod_uid) || IsOver(found->second.view)) {
    return MakeError(ErrorReason::GRANT_REFUSED);
  }
  return caller.door;
}

std::shared_ptr<Tenant> GrantTable::RemoveEntry(std::map<GrantId, Entry>::iterator entry) {
  std::shared_ptr<Tenant> tenant = std::move(entry->second.view.tenant);
  devices_ -= CountOf(entry->second.view.devices);
  names_.erase(entry->second.name);
  grants_.erase(entry);
  tenant->Close();
  ended_.push_back(tenant);
  return tenant;
}

absl::StatusOr<std::shared_ptr<Tenant>> GrantTable::Revoke(GrantId id) {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckHere());
  const auto found = grants_.find(id);
  if (found == grants_.end()) {
    return MakeError(ErrorReason::GRANT_NOT_FOUND, "grant_id");
  }
  return RemoveEntry(found);
}

absl::StatusOr<std::shared_ptr<Tenant>> GrantTable::Bind(GrantId id, const std::string& pod_uid) {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckHere());
  const auto found = grants_.find(id);
  if (found == grants_.end()) {
    return MakeError(ErrorReason::GRANT_NOT_FOUND, "grant_id");
  }
  found->second.view.tenant->BindTo(pod_uid);
  return found->second.view.tenant;
}

std::vector<std::shared_ptr<Tenant>> GrantTable::TakeExpired() {
  std::vector<std::shared_ptr<Tenant>> tenants;
  MutexLock lock(mutex_);
  // Only the table can create another reference to a tenant that has no other owner.
  std::erase_if(ended_, [](const auto& tenant) { return tenant.use_count() == 1 && tenant->ledger()->empty(); });
  for (auto entry = grants_.begin(); entry != grants_.end();) {
    const auto candidate = entry++;
    if (IsOver(candidate->second.view)) {
      tenants.push_back(RemoveEntry(candidate));
    }
  }
  return tenants;
}

std::vector<GrantView> GrantTable::List() const {
  std::vector<GrantView> views;
  MutexLock lock(mutex_);
  views.reserve(grants_.size());
  for (const auto& [id, entry] : grants_) {
    views.push_back(entry.view);
  }
  return views;
}

std::vector<std::shared_ptr<Tenant>> GrantTable::Tenants() const {
  std::vector<std::shared_ptr<Tenant>> tenants;
  MutexLock lock(mutex_);
  for (const auto& [id, entry] : grants_) {
    tenants.push_back(entry.view.tenant);
  }
  for (const std::shared_ptr<Tenant>& tenant : ended_) {
    if (!tenant->ledger()->empty()) {
      tenants.push_back(tenant);
    }
  }
  return tenants;
}

std::vector<HandedGrant> GrantTable::HandOver() {
  using std::chrono::milliseconds;
  std::vector<HandedGrant> grants;
  MutexLock lock(mutex_);
  handed_over_ = true;
  const Instant now = clock_.Now();
  for (const auto& [id, entry] : grants_) {
    const std::shared_ptr<Tenant>& tenant = entry.view.tenant;
    const std::optional<Instant>& expiry = entry.view.expiry;
    const auto left = expiry.has_value() ? std::chrono::ceil<milliseconds>(*expiry - now) : milliseconds(0);
    // One that is over ends here, with its sessions.
    if (!expiry.has_value() || left.count() > 0) {
      const auto age = std::chrono::floor<milliseconds>(now - entry.view.created);
      grants.push_back({.name = entry.name,
                        .pod_uid = tenant->pod_uid(),
                        .lifetime = left,
                        .limits = tenant->limits(),
                        .renewal = GrantRenewal{.id = id, .digest = entry.digest, .age = age},
                        .devices = entry.view.devices,
                        .door = tenant->door().exists()});
    }
  }
  return grants;
}

void GrantTable::TakeBack() {
  MutexLock lock(mutex_);
  handed_over_ = false;
}

}  // namespace rnicd::core
