#include "provider/networkdirect/card/nd_catalogue.h"

#include <gtest/gtest.h>

#ifdef _WIN32
#include <winsock2.h>
#include <ws2spi.h>
#endif

namespace rnicd::provider {
namespace {

constexpr NdCatalogueEntry kNetworkDirect{.service_flags = 0x8E,
                                          .provider_flags = 0x14,
                                          .version = 2,
                                          .address_family = kWindowsAfInet,
                                          .socket_type = -1,
                                          .protocol = 0,
                                          .protocol_max_offset = 0};

TEST(NdCatalogue, AProviderOfEitherFamilyIsFound) {
  EXPECT_TRUE(IsNetworkDirect2(kNetworkDirect));
  NdCatalogueEntry entry = kNetworkDirect;
  entry.address_family = kWindowsAfInet6;
  EXPECT_TRUE(IsNetworkDirect2(entry));
}

TEST(NdCatalogue, EveryFieldCounts) {
  EXPECT_FALSE(IsNetworkDirect2({})) << "a TCP provider, for example";
  const auto differs = [](auto change) {
    NdCatalogueEntry entry = kNetworkDirect;
    change(entry);
    return !IsNetworkDirect2(entry);
  };
  EXPECT_TRUE(differs([](NdCatalogueEntry& entry) { entry.version = 1; })) << "the first version is another interface";
  EXPECT_TRUE(differs([](NdCatalogueEntry& entry) { entry.address_family = 17; }));
  EXPECT_TRUE(differs([](NdCatalogueEntry& entry) { entry.socket_type = 1; }));
  EXPECT_TRUE(differs([](NdCatalogueEntry& entry) { entry.protocol = 6; }));
  EXPECT_TRUE(differs([](NdCatalogueEntry& entry) { entry.protocol_max_offset = 1; }));
  EXPECT_TRUE(differs([](NdCatalogueEntry& entry) { entry.service_flags |= 0x20000; }));
  EXPECT_TRUE(differs([](NdCatalogueEntry& entry) { entry.provider_flags = 0x10; }));
}

#ifdef _WIN32
TEST(NdCatalogue, TheNumbersAreThoseOfWindows) {
  EXPECT_EQ(kWindowsAfInet, AF_INET);
  EXPECT_EQ(kWindowsAfInet6, AF_INET6);
  EXPECT_EQ(kNetworkDirect.service_flags, static_cast<uint32_t>(XP1_GUARANTEED_DELIVERY | XP1_GUARANTEED_ORDER |
                                                                XP1_MESSAGE_ORIENTED | XP1_CONNECT_DATA));
  EXPECT_EQ(kNetworkDirect.provider_flags, static_cast<uint32_t>(PFL_HIDDEN | PFL_NETWORKDIRECT_PROVIDER));
}
#endif

TEST(NdCatalogue, AMachineWithoutCardsHasNone) { EXPECT_TRUE(ListNdCatalogue().empty()); }

}  // namespace
}  // namespace rnicd::provider
