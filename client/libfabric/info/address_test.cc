#include "client/libfabric/info/address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "client/libfabric/info/info_fixture.h"

namespace rnicd::fi {
namespace {

// As in "127.0.0.1:80" and "[::1]:80"; "-" for none.
std::string AddressText(const void* address, size_t bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  if (FormatOf(address, bytes) == FI_SOCKADDR_IN6) {
    const auto* six = static_cast<const sockaddr_in6*>(address);
    inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text));
    return "[" + std::string(text) + "]:" + std::to_string(ntohs(six->sin6_port));
  }
  if (FormatOf(address, bytes) == FI_SOCKADDR_IN) {
    const auto* four = static_cast<const sockaddr_in*>(address);
    inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text));
    return std::string(text) + ":" + std::to_string(ntohs(four->sin_port));
  }
  return "-";
}

void* NewAddress(const char* text, uint16_t port, size_t& bytes) {
  auto* const address = static_cast<sockaddr_in*>(std::calloc(1, sizeof(sockaddr_in)));
  address->sin_family = AF_INET;
  address->sin_port = htons(port);
  inet_pton(AF_INET, text, &address->sin_addr);
  bytes = sizeof(*address);
  return address;
}

class AddressTest : public testing::Test {
 protected:
  // "source destination", or the error.
  std::string Set(const char* node, const char* service, uint64_t flags = 0) {
    const Info info(fi_allocinfo(), fi_freeinfo);
    const int error = SetAddresses({.node = node, .service = service, .flags = flags, .hints = *hints_}, *info);
    if (error != 0) {
      return fi_strerror(-error);
    }
    EXPECT_EQ(info->addr_format, FormatOf(info->src_addr, info->src_addrlen));
    return AddressText(info->src_addr, info->src_addrlen) + " " + AddressText(info->dest_addr, info->dest_addrlen);
  }

  void AskSource(const char* text, uint16_t port) { hints_->src_addr = NewAddress(text, port, hints_->src_addrlen); }
  void AskDestination(const char* text, uint16_t port) {
    hints_->dest_addr = NewAddress(text, port, hints_->dest_addrlen);
  }

  Info hints_{fi_allocinfo(), fi_freeinfo};
};

constexpr char kInterface[] = "FI_RNICD_INTERFACE";

TEST_F(AddressTest, NothingAskedIsTheAddressOfTheInterfaceThatTheUserNames) {
  setenv(kInterface, "lo", 1);
  EXPECT_EQ(Set(nullptr, nullptr), "127.0.0.1:0 -");
  setenv(kInterface, "no-such-one", 1);
  EXPECT_EQ(Set(nullptr, nullptr), fi_strerror(FI_ENODATA));
  unsetenv(kInterface);
}

TEST_F(AddressTest, NothingAskedInASharedFolderIsTheLoopbackAddress) {
  setenv("FI_RNICD_SOCKET_DIR", "/folder", 1);
  EXPECT_EQ(Set(nullptr, nullptr), "127.0.0.1:0 -");
  hints_->addr_format = FI_SOCKADDR_IN6;
  EXPECT_EQ(Set(nullptr, nullptr), "[::1]:0 -");
  unsetenv("FI_RNICD_SOCKET_DIR");
}

TEST_F(AddressTest, SourceIsNodeAndService) {
  EXPECT_EQ(Set("localhost", nullptr, FI_SOURCE), "127.0.0.1:0 -");
  EXPECT_EQ(Set("127.0.0.2", "9228", FI_SOURCE), "127.0.0.2:9228 -");
}

TEST_F(AddressTest, SourceOfAServiceIsEveryAddress) { EXPECT_EQ(Set(nullptr, "9228", FI_SOURCE), "0.0.0.0:9228 -"); }

TEST_F(AddressTest, DestinationGetsASourceThatReachesIt) {
  EXPECT_EQ(Set("localhost", "9228"), "127.0.0.1:0 127.0.0.1:9228");
  EXPECT_EQ(Set(nullptr, "9228"), "127.0.0.1:0 127.0.0.1:9228");
  EXPECT_EQ(Set("localhost", nullptr), "127.0.0.1:0 127.0.0.1:0");
}

TEST_F(AddressTest, NumericAddressesOfEitherFamily) {
  EXPECT_EQ(Set("127.0.0.1", "1", FI_SOURCE | FI_NUMERICHOST), "127.0.0.1:1 -");
  EXPECT_EQ(Set("::1", "1", FI_SOURCE | FI_NUMERICHOST), "[::1]:1 -");
}

TEST_F(AddressTest, NameIsNotANumericAddress) {
  EXPECT_EQ(Set("localhost", "1", FI_NUMERICHOST), fi_strerror(FI_ENODATA));
}

TEST_F(AddressTest, AnotherFormatIsNotResolved) {
  hints_->addr_format = FI_SOCKADDR_IN;
  EXPECT_EQ(Set("::1", "1"), fi_strerror(FI_ENODATA));
}

TEST_F(AddressTest, HintsAreKept) {
  AskSource("127.0.0.3", 3);
  AskDestination("127.0.0.4", 4);
  EXPECT_EQ(Set(nullptr, nullptr), "127.0.0.3:3 127.0.0.4:4");
}

TEST_F(AddressTest, NodeReplacesTheDestinationOfTheHints) {
  AskSource("127.0.0.3", 3);
  AskDestination("127.0.0.4", 4);
  EXPECT_EQ(Set("127.0.0.5", "5"), "127.0.0.3:3 127.0.0.5:5");
}

TEST_F(AddressTest, SourceFlagReplacesTheSourceOfTheHints) {
  AskSource("127.0.0.3", 3);
  AskDestination("127.0.0.4", 4);
  EXPECT_EQ(Set("127.0.0.5", "5", FI_SOURCE), "127.0.0.5:5 127.0.0.4:4");
}

// The system connects no socket to the broadcast address unless it is asked for that.
TEST_F(AddressTest, DestinationWithoutARouteGetsTheLoopbackAddress) {
  EXPECT_EQ(Set("255.255.255.255", "5"), "127.0.0.1:0 255.255.255.255:5");
}

TEST_F(AddressTest, AddressesLongerThanTheirFamilyAreCut) {
  sockaddr_storage storage{};
  storage.ss_family = AF_INET6;
  EXPECT_EQ(FormatOf(&storage, sizeof(storage)), FI_SOCKADDR_IN6);
  EXPECT_EQ(FormatOf(&storage, sizeof(sockaddr_in)), FI_SOCKADDR);
  EXPECT_EQ(FormatOf(nullptr, 0), FI_FORMAT_UNSPEC);
}

struct InterfaceRow {
  const char* name;
  unsigned flags;
  // Null: an interface that has none.
  const char* address = nullptr;
};

constexpr InterfaceRow kLoopback = {"lo", IFF_UP | IFF_LOOPBACK, "127.0.0.1"};
constexpr InterfaceRow kLoopbackSix = {"lo", IFF_UP | IFF_LOOPBACK, "::1"};
constexpr InterfaceRow kFirst = {"eth0", IFF_UP, "192.0.2.1"};
constexpr InterfaceRow kFirstSix = {"eth0", IFF_UP, "2001:db8::1"};
constexpr InterfaceRow kFirstLinkLocal = {"eth0", IFF_UP, "fe80::1"};
constexpr InterfaceRow kSecond = {"eth1", IFF_UP, "198.51.100.1"};
constexpr InterfaceRow kDown = {"down", 0, "203.0.113.1"};
constexpr InterfaceRow kWithoutAddress = {"tun0", IFF_UP};

struct Choice {
  const char* about;
  std::vector<InterfaceRow> interfaces;
  std::string chosen;
  const char* name = nullptr;
  int family = AF_UNSPEC;
};

const std::vector<Choice> kChoices = {
    {"nothing", {}, "-"},
    {"only loopback", {kLoopback, kLoopbackSix}, "-"},
    {"the first but loopback", {kWithoutAddress, kLoopback, kFirst, kSecond}, "192.0.2.1:0"},
    {"not those that are down", {kDown, kSecond}, "198.51.100.1:0"},
    {"IPv4 before IPv6", {kFirstSix, kSecond}, "198.51.100.1:0"},
    {"IPv6 where there is no IPv4", {kLoopback, kLoopbackSix, kFirstSix}, "[2001:db8::1]:0"},
    {"not link-local", {kFirstLinkLocal, kFirstSix}, "[2001:db8::1]:0"},
    {"only link-local", {kFirstLinkLocal}, "-"},
    {"the family asked for", {kFirst, kFirstSix}, "[2001:db8::1]:0", nullptr, AF_INET6},
    {"not the family asked for", {kFirstSix}, "-", nullptr, AF_INET},
    {"named", {kFirst, kSecond}, "198.51.100.1:0", "eth1"},
    {"loopback, named", {kLoopback, kFirst}, "127.0.0.1:0", "lo"},
    {"named, of a family", {kFirst, kFirstSix, kLoopbackSix}, "[::1]:0", "lo", AF_INET6},
    {"named, but down", {kFirst, kDown}, "-", "down"},
    {"named, but link-local", {kFirstLinkLocal, kSecond}, "-", "eth0"},
    {"named, but without address", {kWithoutAddress, kFirst}, "-", "tun0"},
    {"no such name", {kLoopback, kFirst}, "-", "eth"},
};

sockaddr_storage Parsed(const char* text) {
  sockaddr_storage address = {};
  if (inet_pton(AF_INET, text, &reinterpret_cast<sockaddr_in&>(address).sin_addr) == 1) {
    address.ss_family = AF_INET;
  } else if (inet_pton(AF_INET6, text, &reinterpret_cast<sockaddr_in6&>(address).sin6_addr) == 1) {
    address.ss_family = AF_INET6;
  }
  return address;
}

std::string Chosen(const Choice& choice) {
  const size_t count = choice.interfaces.size();
  std::vector<ifaddrs> list(count);
  std::vector<sockaddr_storage> addresses(count);
  for (size_t index = 0; index < count; ++index) {
    const InterfaceRow& row = choice.interfaces[index];
    list[index].ifa_next = index + 1 < count ? &list[index + 1] : nullptr;
    list[index].ifa_name = const_cast<char*>(row.name);
    list[index].ifa_flags = row.flags;
    if (row.address != nullptr) {
      addresses[index] = Parsed(row.address);
      list[index].ifa_addr = reinterpret_cast<sockaddr*>(&addresses[index]);
    }
  }
  return AddressText(ChooseAddress(list.data(), choice.family, choice.name), sizeof(sockaddr_storage));
}

TEST(ChooseAddressTest, IsThatOfTheFirstInterfaceThatFits) {
  for (const Choice& choice : kChoices) {
    EXPECT_EQ(Chosen(choice), choice.chosen) << choice.about;
  }
}

}  // namespace
}  // namespace rnicd::fi
