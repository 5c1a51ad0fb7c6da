#include "provider/networkdirect/card/nd_catalogue.h"

namespace rnicd::provider {
namespace {

// XP1_GUARANTEED_DELIVERY, XP1_GUARANTEED_ORDER, XP1_MESSAGE_ORIENTED, XP1_CONNECT_DATA.
constexpr uint32_t kServiceFlags = 0x2 | 0x4 | 0x8 | 0x80;
// PFL_HIDDEN, PFL_NETWORKDIRECT_PROVIDER.
constexpr uint32_t kProviderFlags = 0x4 | 0x10;
constexpr int kVersion = 2;
constexpr int kNoSocketType = -1;

}  // namespace

bool IsNetworkDirect2(const NdCatalogueEntry& entry) {
  return entry.version == kVersion &&
         (entry.address_family == kWindowsAfInet || entry.address_family == kWindowsAfInet6) &&
         entry.socket_type == kNoSocketType && entry.protocol == 0 && entry.protocol_max_offset == 0 &&
         entry.service_flags == kServiceFlags && entry.provider_flags == kProviderFlags;
}

}  // namespace rnicd::provider
