#include "base/system/faulty_os.h"

namespace rnicd {

// Every view of Windows begins at 64 KiB, the largest page of any kernel.
absl::StatusOr<std::span<std::byte>> FaultyOs::PlaceAtPage(std::span<std::byte> mapping) const { return mapping; }

}  // namespace rnicd
