#include "daemon/pipes/pipe_message.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "base/status.h"
#include "rnicd/v1/pipe_channel.pb.h"

namespace rnicd::pipes {
namespace {

v1::PipeReply Parsed(const std::string& bytes) {
  v1::PipeReply reply;
  EXPECT_TRUE(!bytes.empty() && reply.ParseFromString(bytes));
  return reply;
}

std::string Give(size_t ticket_bytes, uint32_t handle) {
  v1::PipeRequest request;
  request.mutable_give_section()->set_fd_ticket(std::string(ticket_bytes, 't'));
  request.mutable_give_section()->set_handle(handle);
  return request.SerializeAsString();
}

TEST(PipeMessage, EachKindOfRequestIsUnderstood) {
  v1::PipeRequest hello;
  hello.mutable_hello();
  EXPECT_TRUE(std::holds_alternative<Hello>(*ParseRequest(hello.SerializeAsString())));
  EXPECT_EQ(std::get<GiveSection>(*ParseRequest(Give(16, 52))).handle, 52u);
  v1::PipeRequest take;
  take.mutable_take_section()->set_fd_ticket(std::string(16, 't'));
  EXPECT_EQ(std::get<TakeSection>(*ParseRequest(take.SerializeAsString())).ticket[15], 't');
}

TEST(PipeMessage, WhatIsNoRequestIsMalformed) {
  v1::PipeRequest take;
  take.mutable_take_section();
  for (const std::string& bytes :
       {std::string(), std::string("\xff\xff"), std::string("half of a message"), std::string(513, '\0'), Give(15, 52),
        Give(17, 52), Give(16, 0), Give(16, 0x80000000), take.SerializeAsString(), Give(600, 52)}) {
    EXPECT_TRUE(FailedWith(ParseRequest(bytes).status(), ErrorReason::FD_PACKET_MALFORMED)) << bytes;
  }
}

TEST(PipeMessage, RepliesSayWhatHappened) {
  EXPECT_EQ(Parsed(HelloReply(4711, "secret")).port(), 4711u);
  EXPECT_EQ(Parsed(HelloReply(4711, "secret")).secret(), "secret");
  EXPECT_EQ(Parsed(SectionReply(52)).handle(), 52u);
  EXPECT_FALSE(Parsed(SectionReply(0)).has_error());
  EXPECT_EQ(Parsed(SectionReply(MakeError(ErrorReason::FD_BLOCKED))).error().reason(), v1::ERROR_REASON_FD_BLOCKED);
}

}  // namespace
}  // namespace rnicd::pipes
