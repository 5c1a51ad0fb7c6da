#include "daemon/policy/connections_wire.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "base/status.h"

namespace rnicd::policy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

v1::ConnectionPolicy Connections(const std::string& text) {
  v1::ConnectionPolicy connections;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &connections)) << text;
  return connections;
}

NetworkAddress Address(const char* ip, uint16_t port) { return {.ip = *IpAddress::FromText(ip), .port = port}; }

std::vector<std::string> Paths(const std::string& text) {
  std::vector<std::string> paths;
  for (const ConnectionsProblem& problem : ProblemsOf(Connections(text))) {
    paths.push_back(problem.Path());
  }
  return paths;
}

TEST(ConnectionsWire, ARangeWithoutPortsIsAllThatItsListMayHave) {
  const core::ConnectionRules rules =
      FromWire(Connections("listen { prefix: '10.98.0.0/16' } connect { prefix: 'fd00::/8' }"));
  EXPECT_TRUE(rules.MayListen(Address("10.98.7.1", 1024)));
  EXPECT_TRUE(rules.MayListen(Address("10.98.7.1", 65535)));
  EXPECT_FALSE(rules.MayListen(Address("10.98.7.1", 1023)));
  EXPECT_FALSE(rules.MayListen(Address("10.99.7.1", 1024)));
  EXPECT_TRUE(rules.MayReach(Address("fd00::1", 1)));
  EXPECT_TRUE(rules.MayReach(Address("fd00::1", 65535)));
  EXPECT_FALSE(rules.MayReach(Address("fe80::1", 1)));
}

TEST(ConnectionsWire, PortsBoundAllButQueuePairs) {
  const core::ConnectionRules rules =
      FromWire(Connections("listen { prefix: '10.98.0.1' first_port: 7000 last_port: 7001 }"
                           "connect { prefix: '10.98.0.0/16' first_port: 80 last_port: 80 }"
                           "connect { prefix: '10.98.0.0/24' first_port: 7000 last_port: 7000 }"));
  EXPECT_TRUE(rules.MayListen(Address("10.98.0.1", 7001)));
  EXPECT_FALSE(rules.MayListen(Address("10.98.0.1", 7002)));
  EXPECT_FALSE(rules.MayListen(Address("10.98.0.2", 7001)));
  EXPECT_TRUE(rules.MayReach(Address("10.98.0.9", 7000)));
  EXPECT_TRUE(rules.MayReach(Address("10.98.1.9", 80)));
  EXPECT_FALSE(rules.MayReach(Address("10.98.1.9", 7000)));
  EXPECT_TRUE(rules.MayReach(*IpAddress::FromText("10.98.1.9")));
  EXPECT_FALSE(rules.MayReach(*IpAddress::FromText("10.99.1.9")));
}

TEST(ConnectionsWire, EveryAddressIsInTheShortestPrefixAndOnlyIpv4InItsOwn) {
  const core::ConnectionRules rules =
      FromWire(Connections("accept { prefix: '0.0.0.0/0' } connect { prefix: '::/0' }"));
  EXPECT_TRUE(rules.Accepts(*IpAddress::FromText("198.18.0.1")));
  EXPECT_FALSE(rules.Accepts(*IpAddress::FromText("fd00::1")));
  EXPECT_TRUE(rules.MayReach(*IpAddress::FromText("198.18.0.1")));
  EXPECT_TRUE(rules.MayReach(*IpAddress::FromText("fd00::1")));
}

TEST(ConnectionsWire, NoRulesPermitNothing) {
  const core::ConnectionRules rules = FromWire(v1::ConnectionPolicy());
  EXPECT_FALSE(rules.MayListen(Address("10.98.0.1", 49152)));
  EXPECT_FALSE(rules.MayReach(*IpAddress::FromText("10.98.0.1")));
  EXPECT_FALSE(rules.Accepts(*IpAddress::FromText("10.98.0.1")));
}

TEST(ConnectionsWire, RulesAreShownWithAllTheirPorts) {
  const v1::ConnectionPolicy wire = Connections(
      "listen { prefix: '10.98.0.0/16' } connect { prefix: '10.98.0.1' first_port: 5 last_port: 6 }"
      "accept { prefix: 'fd00::/8' }");
  EXPECT_EQ(ToWire(FromWire(wire)).ShortDebugString(),
            "listen { prefix: \"10.98.0.0/16\" first_port: 1024 last_port: 65535 } "
            "connect { prefix: \"10.98.0.1/32\" first_port: 5 last_port: 6 } accept { prefix: \"fd00::/8\" }");
  EXPECT_THAT(ProblemsOf(ToWire(FromWire(wire))), IsEmpty());
}

TEST(ConnectionsWire, WhatIsNoPrefixIsRefused) {
  for (const char* const prefix : {"", "10.98.0.0/33", "10.98.0.1/16", "fd00::/129", "any", "10.98.0.1:7000"}) {
    EXPECT_THAT(Paths("connect { prefix: '::/0' } connect { prefix: '" + std::string(prefix) + "' }"),
                ElementsAre("connect[1].prefix"))
        << prefix;
  }
}

TEST(ConnectionsWire, PortsThatAreNoRangeAreRefused) {
  const auto paths = [](const std::string& ports) { return Paths("connect { prefix: '::/0' " + ports + " }"); };
  EXPECT_THAT(paths("first_port: 1 last_port: 65535"), IsEmpty());
  EXPECT_THAT(paths("first_port: 2 last_port: 1"), ElementsAre("connect[0].first_port"));
  EXPECT_THAT(paths("first_port: 1 last_port: 65536"), ElementsAre("connect[0].last_port"));
  EXPECT_THAT(paths("first_port: 4294967295 last_port: 4294967295"), ElementsAre("connect[0].last_port"));
  EXPECT_THAT(paths("first_port: 7"), ElementsAre("connect[0].last_port"));
  EXPECT_THAT(paths("last_port: 7"), ElementsAre("connect[0].first_port"));
}

TEST(ConnectionsWire, ListenersGetNoPortOfAReservedService) {
  EXPECT_THAT(Paths("listen { prefix: '::/0' first_port: 1023 last_port: 2000 }"), ElementsAre("listen[0].first_port"));
  EXPECT_THAT(Paths("listen { prefix: '::/0' first_port: 1024 last_port: 2000 }"), IsEmpty());
}

TEST(ConnectionsWire, PortsOfPeersAreRefused) {
  EXPECT_THAT(Paths("accept { prefix: '::/0' first_port: 1 last_port: 2 }"), ElementsAre("accept[0].first_port"));
  EXPECT_THAT(Paths("accept { prefix: '::/0' last_port: 2 }"), ElementsAre("accept[0].last_port"));
}

TEST(ConnectionsWire, AListIsNoLongerThanEveryDecisionCanLookThrough) {
  v1::ConnectionPolicy connections;
  for (auto* const list : {connections.mutable_listen(), connections.mutable_connect(), connections.mutable_accept()}) {
    for (int index = 0; index < kRangesMax; ++index) {
      list->Add()->set_prefix("10.98.0.0/16");
    }
  }
  EXPECT_TRUE(CheckConnections(connections, "connections").ok());
  connections.add_accept()->set_prefix("10.99.0.0/16");
  const absl::Status refused = CheckConnections(connections, "connections");
  EXPECT_TRUE(FailedWith(refused, ErrorReason::FIELD_OUT_OF_RANGE)) << refused;
  EXPECT_EQ(ErrorInfoOf(refused).field, "connections.accept");
}

}  // namespace
}  // namespace rnicd::policy
