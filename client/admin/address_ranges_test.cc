#include "client/admin/address_ranges.h"

#include <gtest/gtest.h>

namespace rnicd {
namespace {

std::string Parsed(std::string_view name, std::string_view list) {
  v1::ConnectionPolicy connections;
  const absl::Status status = AddRanges(name, list, connections);
  return status.ok() ? connections.ShortDebugString() : std::string(status.message());
}

TEST(AddRanges, TakesPrefixesWithAndWithoutPorts) {
  EXPECT_EQ(Parsed("listen", "10.98.0.0/16@7000-7010,fd00::1"),
            "listen { prefix: \"10.98.0.0/16\" first_port: 7000 last_port: 7010 } listen { prefix: \"fd00::1\" }");
  EXPECT_EQ(Parsed("connect", "fd00::/8@80"), "connect { prefix: \"fd00::/8\" first_port: 80 last_port: 80 }");
  EXPECT_EQ(Parsed("accept", "::/0"), "accept { prefix: \"::/0\" }");
  EXPECT_EQ(Parsed("connect", ""), "");
}

TEST(AddRanges, RefusesWhatIsNoPrefix) {
  for (const char* const item : {"any", "10.98.0.1/16", "10.98.0.1:7000", "@7000", "10.98.0.0/16 "}) {
    EXPECT_EQ(Parsed("connect", "::1," + std::string(item)),
              "'" + std::string(item) + "' is not an address, or a prefix such as 10.98.0.0/16");
  }
  EXPECT_EQ(Parsed("connect", ",::1"), "'' is not an address, or a prefix such as 10.98.0.0/16");
}

TEST(AddRanges, RefusesPortsThatTheListMayNotHave) {
  for (const char* const ports : {"", "0", "-", "7000-", "-7000", "7010-7000", "65536", "1-65536", "http"}) {
    const std::string item = std::string("::1@") + ports;
    EXPECT_EQ(Parsed("connect", item), "'" + item + "' is not a prefix with ports such as @7000-7010, from 1 to 65535");
  }
  EXPECT_EQ(Parsed("listen", "::1@1023-2000"),
            "'::1@1023-2000' is not a prefix with ports such as @7000-7010, from 1024 to 65535");
  EXPECT_EQ(Parsed("accept", "::1@7000"), "'::1@7000' is not a prefix alone: the peers' ports do not count");
}

}  // namespace
}  // namespace rnicd
