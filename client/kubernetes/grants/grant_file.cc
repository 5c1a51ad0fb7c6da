#include "client/kubernetes/grants/grant_file.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "client/kubernetes/node/whole_file.h"

namespace rnicd::kubernetes {
namespace {

constexpr size_t kMaxGrantsBytes = 16 << 20;

}  // namespace

GrantFile::GrantFile(std::string folder) : path_(std::move(folder) + "/grants.json") {}

absl::StatusOr<std::vector<GrantRecord>> GrantFile::Load() const {
  RNICD_ASSIGN_OR_RETURN(const std::optional<std::string> text, ReadOwnFile(path_, kMaxGrantsBytes));
  if (!text.has_value()) {
    return std::vector<GrantRecord>();
  }
  absl::StatusOr<std::vector<GrantRecord>> grants = GrantsFromJson(*text);
  if (grants.ok()) {
    return grants;
  }
  // Another release wrote the file and may need it again, so it stays in place.
  if (absl::IsUnimplemented(grants.status())) {
    return absl::FailedPreconditionError(absl::StrCat(path_, ": ", grants.status().message()));
  }
  const std::string aside = path_ + ".bad";
  const bool moved = std::rename(path_.c_str(), aside.c_str()) == 0;
  const std::string what = absl::StrCat(path_, ": ", grants.status().message());
  return moved ? absl::DataLossError(absl::StrCat(what, "; moved to ", aside))
               : absl::FailedPreconditionError(absl::StrCat(what, "; it could not be moved aside"));
}

absl::Status GrantFile::Save(const std::vector<GrantRecord>& grants) const {
  return ReplaceFile(path_, GrantsToJson(grants));
}

}  // namespace rnicd::kubernetes
