#include "daemon/core/memory/shared_file.h"

#include <string>

#include "base/status.h"
#include "base/units.h"

namespace rnicd::core {

absl::Status RingsUnavailable(const absl::Status& cause) {
  return MakeErrorWithDetail(ErrorReason::RINGS_UNAVAILABLE, std::string(cause.message()));
}

absl::StatusOr<std::unique_ptr<SharedFile>> SharedFile::Create(Os& os, LingeringMemory& lingering, uint64_t bytes,
                                                               Charge charge) {
  absl::StatusOr<UniqueFd> file = os.CreateMemoryFile(bytes, kNdkPageBytes);
  if (!file.ok()) {
    return RingsUnavailable(file.status());
  }
  if (const absl::Status sealed = os.AddSeals(file->get(), {.shrink = true, .grow = true}); !sealed.ok()) {
    return RingsUnavailable(sealed);
  }
  const absl::StatusOr<FileWatch::Id> watch = lingering.Watch(file->get());
  if (!watch.ok()) {
    return RingsUnavailable(watch.status());
  }
  const absl::StatusOr<std::span<std::byte>> mapping = os.Map(file->get(), bytes);
  if (!mapping.ok()) {
    return RingsUnavailable(mapping.status());
  }
  std::unique_ptr<SharedFile> shared(
      new SharedFile(os, lingering, *watch, *std::move(file), *mapping, std::move(charge)));
  // A page that cannot be allocated is an error here; later it would raise a signal.
  if (const absl::Status populated = os.Populate(*mapping); !populated.ok()) {
    return RingsUnavailable(populated);
  }
  return shared;
}

SharedFile::~SharedFile() {
  (void)os_.Unmap(mapping_);
  lingering_.Keep(watch_, std::move(file_), {.object = {}, .bytes = std::move(charge_)});
}

absl::StatusOr<UniqueFd> SharedFile::Duplicate() const {
  absl::StatusOr<UniqueFd> duplicate = os_.Duplicate(file_.get());
  return duplicate.ok() ? std::move(duplicate) : RingsUnavailable(duplicate.status());
}

}  // namespace rnicd::core
