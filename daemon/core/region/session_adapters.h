#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "daemon/core/region/adapter.h"
#include "daemon/core/request/session_objects.h"

namespace rnicd::core {

// The adapters that a session has opened.
// Source: OPEN_NDK_ADAPTER_HANDLER, NDK_FN_QUERY_ADAPTER_INFO.
class SessionAdapters final : public SessionObjects<AdapterId, Adapter> {
 public:
  explicit SessionAdapters(SessionRequests& requests) : SessionObjects(requests) {}

  absl::StatusOr<AdapterId> Open(const std::string& name, NdkVersion version);
  absl::StatusOr<NdkAdapterInfo> QueryInfo(AdapterId id);
  MaybePending<> Close(AdapterId id, const Done<>& done);
};

}  // namespace rnicd::core
