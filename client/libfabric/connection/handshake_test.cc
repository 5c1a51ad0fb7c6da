#include "client/libfabric/connection/handshake.h"

#include <gtest/gtest.h>

#include <string>

#include "client/libfabric/connection/connection_fixture.h"
#include "client/libfabric/limits.h"
#include "client/libfabric/socket_address.h"

namespace rnicd::fi {
namespace {

Message ARequest() {
  Message message;
  message.sender = Loopback(40001);
  message.queue_pair.assign(kQueuePairAddressMax, std::byte{7});
  message.data.assign(kConnectDataMax, std::byte{9});
  return message;
}

TEST(Handshake, AMessageComesBackAsItWas) {
  Message message = ARequest();
  for (const Message::Kind kind : {Message::Kind::kRequest, Message::Kind::kAccept, Message::Kind::kReject}) {
    message.kind = kind;
    const std::optional<Message> parsed = Parse(Encode(message));
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->kind, kind);
    EXPECT_EQ(AddressText(parsed->sender), "127.0.0.1:40001");
    EXPECT_EQ(parsed->queue_pair, message.queue_pair);
    EXPECT_EQ(parsed->data, message.data);
  }
}

TEST(Handshake, AnAddressOfVersionSixComesBackAsItWas) {
  Message message = ARequest();
  message.sender = {};
  message.sender.ss_family = AF_INET6;
  SetPort(&message.sender, 77);
  EXPECT_EQ(AddressText(Parse(Encode(message))->sender), ":::77");
}

TEST(Handshake, WhatIsNoMessageIsRefused) {
  struct Case {
    const char* what;
    size_t at;
    uint8_t byte;
  };
  const Case cases[] = {{"another magic", 0, 0},
                        {"a later version", 4, 2},
                        {"kind 0", 6, 0},
                        {"kind 5", 6, 5},
                        {"a queue pair of 65 bytes", 8, 65},
                        {"a queue pair of 320 bytes", 9, 1},
                        {"data of 257 bytes", 10, 1},
                        {"data of 65,280 bytes", 11, 255},
                        {"version 5 of IP", 12, 5}};
  for (const Case& wrong : cases) {
    MessageBytes bytes = Encode(ARequest());
    bytes[wrong.at] = std::byte{wrong.byte};
    EXPECT_FALSE(Parse(bytes).has_value()) << wrong.what;
  }
}

}  // namespace
}  // namespace rnicd::fi
