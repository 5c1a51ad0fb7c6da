// Source: WSCEnumProtocols, WSCGetProviderPath of the Windows API.

#include <algorithm>
#include <utility>

#include "provider/networkdirect/card/nd_catalogue.h"

#include <ws2spi.h>

namespace rnicd::provider {
namespace {

std::vector<WSAPROTOCOL_INFOW> EnumerateProtocols() {
  std::vector<WSAPROTOCOL_INFOW> entries;
  DWORD bytes = 0;
  int error = 0;
  int count = WSCEnumProtocols(nullptr, nullptr, &bytes, &error);
  // The catalogue may grow between two calls.
  while (count == SOCKET_ERROR && error == WSAENOBUFS) {
    entries.resize(bytes / sizeof(WSAPROTOCOL_INFOW) + 1);
    bytes = static_cast<DWORD>(entries.size() * sizeof(WSAPROTOCOL_INFOW));
    count = WSCEnumProtocols(nullptr, entries.data(), &bytes, &error);
  }
  entries.resize(static_cast<size_t>(std::max(count, 0)));
  return entries;
}

NdCatalogueEntry EntryOf(const WSAPROTOCOL_INFOW& info) {
  return {.service_flags = info.dwServiceFlags1,
          .provider_flags = info.dwProviderFlags,
          .version = info.iVersion,
          .address_family = info.iAddressFamily,
          .socket_type = info.iSocketType,
          .protocol = info.iProtocol,
          .protocol_max_offset = info.iProtocolMaxOffset};
}

// Empty if it has none.
std::string PathOf(GUID class_id) {
  wchar_t raw[MAX_PATH] = {};
  int length = MAX_PATH;
  int error = 0;
  wchar_t path[MAX_PATH] = {};
  if (WSCGetProviderPath(&class_id, raw, &length, &error) != 0 ||
      ExpandEnvironmentStringsW(raw, path, MAX_PATH) - 1 >= MAX_PATH) {
    return "";
  }
  char utf8[4 * MAX_PATH] = {};
  WideCharToMultiByte(CP_UTF8, 0, path, -1, utf8, sizeof(utf8), nullptr, nullptr);
  return utf8;
}

}  // namespace

// A provider has an entry for each address family.
std::vector<NdCatalogueProvider> ListNdCatalogue() {
  std::vector<NdCatalogueProvider> providers;
  for (const WSAPROTOCOL_INFOW& info : EnumerateProtocols()) {
    const bool is_known = std::ranges::any_of(
        providers, [&info](const auto& each) { return IsEqualGUID(each.class_id, info.ProviderId); });
    if (!IsNetworkDirect2(EntryOf(info)) || is_known) {
      continue;
    }
    if (std::string path = PathOf(info.ProviderId); !path.empty()) {
      providers.push_back({.class_id = info.ProviderId, .path = std::move(path)});
    }
  }
  return providers;
}

}  // namespace rnicd::provider
