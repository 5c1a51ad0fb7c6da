#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "provider/networkdirect/card/nd2_types.h"

namespace rnicd::provider {

// The fields of an entry of the Winsock catalogue that say what it is. Source: WSAPROTOCOL_INFOW.
struct NdCatalogueEntry {
  uint32_t service_flags = 0;
  uint32_t provider_flags = 0;
  int version = 0;
  int address_family = 0;
  int socket_type = 0;
  int protocol = 0;
  int protocol_max_offset = 0;
};
// Values of Windows, on every system.
inline constexpr int kWindowsAfInet = 2;
inline constexpr int kWindowsAfInet6 = 23;

// True for a provider of Network Direct version 2.
bool IsNetworkDirect2(const NdCatalogueEntry& entry);

struct NdCatalogueProvider {
  GUID class_id = {};
  // UTF-8, with environment variables expanded.
  std::string path;
};
// Providers of Network Direct version 2 in the catalogue, each once. None on systems without a catalogue.
std::vector<NdCatalogueProvider> ListNdCatalogue();

}  // namespace rnicd::provider
