// Lines that protobuf and gRPC would write to stderr themselves are lines of the daemon's log, and not many.
#include <google/protobuf/wrappers.pb.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "grpcpp/client_context.h"
#include "tests/support/calls/raw_client.h"
#include "tests/support/process/daemon_process.h"

namespace rnicd::test {
namespace {

// An OpenSessionRequest whose label is not UTF-8: BytesValue has the same field number.
CallOutcome OpenWithInvalidText(RawClient& client) {
  google::protobuf::BytesValue request;
  request.set_value("\xff\xfe");
  google::protobuf::BytesValue response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kTimeout);
  return client.Call("/rnicd.v1.SessionService/OpenSession", request, &response, context);
}

TEST(LibraryLog, AFloodOfInvalidTextLeavesFewLinesAndOnlyJson) {
  auto daemon = DaemonProcess::Start({.flags = {"--log_format=json"}});
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  constexpr int kCalls = 200;
  RawClient client((*daemon)->rpc_socket());
  for (int call = 0; call < kCalls; ++call) {
    EXPECT_FALSE(OpenWithInvalidText(client).ok());
  }
  ASSERT_TRUE((*daemon)->Stop().ok());
  std::istringstream log((*daemon)->log());
  int of_protobuf = 0;
  for (std::string line; std::getline(log, line);) {
    const auto parsed = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(parsed.is_object()) << line;
    of_protobuf += parsed.value("library", "") == "protobuf" ? 1 : 0;
  }
  // None while the daemon checks a message before protobuf parses it. The burst of 10, and one more for every 10
  // seconds that the calls may have taken on a slow machine, is what the logger would let pass.
  EXPECT_LE(of_protobuf, 20);
}

}  // namespace
}  // namespace rnicd::test
