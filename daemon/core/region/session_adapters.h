#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "daemon/core/region/adapter.h"
#include "daemon/core/request/session_objects.h"

namespace rnicd::core {

// The adapters that a session has opened.
// Source: OPEN_NDK_ADAPTER_HANDLER, NDK_FN_QUERY_ADAPTER_INFO.
class SessionAdapters final : public SessionObjects<AdapterId, Adapter> {
 public:
  // `on_removed` is called where the card of a new adapter has been removed meanwhile.
  SessionAdapters(SessionRequests& requests, std::function<void()> on_removed)
      : SessionObjects(requests), on_removed_(std::move(on_removed)) {}

  absl::StatusOr<AdapterId> Open(const std::string& name, NdkVersion version);
  absl::StatusOr<NdkAdapterInfo> QueryInfo(AdapterId id);
  MaybePending<> Close(AdapterId id, const Done<>& done);

 private:
  const std::function<void()> on_removed_;
};

}  // namespace rnicd::core
