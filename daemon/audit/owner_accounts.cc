#include "daemon/audit/owner_accounts.h"

#include <iterator>
#include <utility>

#include "daemon/core/tenant/caller.h"

namespace rnicd::audit {
namespace {

constexpr char kUnknown[] = "unknown";
constexpr char kOthers[] = "others";

}  // namespace

LineResult OwnerAccounts::Add(AuditLine line, const Moment& now, std::vector<AuditLine>& out) {
  if (!line.caller.has_value() && line.what != "connection") {
    out.push_back(std::move(line));
    return LineResult::kWritten;
  }
  OwnerAccount& account = AccountOf(line.caller.has_value() ? core::OwnerOf(*line.caller) : kUnknown);
  return account.Add(std::move(line), now, out);
}

OwnerAccount& OwnerAccounts::AccountOf(std::string owner) {
  if (accounts_.size() >= kOwnersMax && !accounts_.contains(owner)) {
    owner = kOthers;
  }
  return accounts_.try_emplace(owner, owner, bytes_per_second_).first->second;
}

void OwnerAccounts::TakeDue(const Moment& now, std::vector<AuditLine>& out) {
  for (auto entry = accounts_.begin(); entry != accounts_.end();) {
    entry->second.TakeDue(now, out);
    entry = entry->second.IsIdle(now.instant) ? accounts_.erase(entry) : std::next(entry);
  }
}

void OwnerAccounts::TakeAll(const Moment& now, std::vector<AuditLine>& out) {
  for (auto& [owner, account] : accounts_) {
    account.TakeAll(now, out);
  }
}

}  // namespace rnicd::audit
