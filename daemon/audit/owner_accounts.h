#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/audit/audit_line.h"
#include "daemon/audit/owner_account.h"

namespace rnicd::audit {

// The accounts of all owners: pods, containers and uids. Connections that were refused before their client was
// identified are the account "unknown". Other decisions that the daemon made by itself are always written.
// Threads: one at a time.
class OwnerAccounts {
 public:
  // Owners that have an account of their own. While there are so many, all others share the account "others": they
  // still lose no count, but share a budget.
  static constexpr size_t kOwnersMax = 512;

  // For each owner; 0: no limit.
  explicit OwnerAccounts(uint64_t bytes_per_second) : bytes_per_second_(bytes_per_second) {}

  // As OwnerAccount.
  LineResult Add(AuditLine line, const Moment& now, std::vector<AuditLine>& out);
  // Writes the counts that are due, and forgets idle accounts.
  void TakeDue(const Moment& now, std::vector<AuditLine>& out);
  void TakeAll(const Moment& now, std::vector<AuditLine>& out);
  // True when nothing can become due.
  bool empty() const { return accounts_.empty(); }

 private:
  OwnerAccount& AccountOf(std::string owner);

  const uint64_t bytes_per_second_;
  std::unordered_map<std::string, OwnerAccount> accounts_;
};

}  // namespace rnicd::audit
