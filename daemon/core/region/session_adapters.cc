#include "daemon/core/region/session_adapters.h"

#include <memory>
#include <utility>

#include "base/status.h"

namespace rnicd::core {

absl::StatusOr<AdapterId> SessionAdapters::Open(const std::string& name, NdkVersion version) {
  RNICD_RETURN_IF_ERROR(CheckNdkVersion(version));
  RNICD_ASSIGN_OR_RETURN(Charge charge, Charge::Take(ledger_, Resource::kAdapters, 1));
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<provider::DeviceAdapter> device, node_.provider.OpenAdapter(name));
  const auto adapter = std::make_shared<Adapter>(name, std::move(device), std::move(charge));
  const AdapterId id = table_.Insert(adapter);
  // A search for adapters of removed cards may have come too early to find it.
  if (adapter->removed()) {
    on_removed_();
  }
  return id;
}

absl::StatusOr<NdkAdapterInfo> SessionAdapters::QueryInfo(AdapterId id) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<Adapter> adapter, FindIn(table_, id, "adapter_id"));
  RNICD_ASSIGN_OR_RETURN(const Closable::Hold hold, adapter->Acquire());
  NdkAdapterInfo info = adapter->device().info();
  info.version = kNdkVersion;
  return info;
}

MaybePending<> SessionAdapters::Close(AdapterId id, const Done<>& done) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<Adapter> adapter, FindIn(table_, id, "adapter_id"));
  return CloseThenRemove(id, *adapter, done);
}

}  // namespace rnicd::core
