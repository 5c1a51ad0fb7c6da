#include <string>

#include "daemon/rpc/server_fixture_test.h"

namespace rnicd::rpc {
namespace {

const std::string kSecret(64, 'a');
const TestClient::Fields kProof = {{"authorization", "Bearer " + kSecret}};

// One connection whose requests prove a secret.
class SecretTest : public ServerTest {
 protected:
  UniqueSocket ConnectProven(std::function<void()> on_end = {}) {
    auto [ours, theirs] = MakeSocketPair();
    connection_ = server_->Serve({.socket = std::make_shared<const UniqueSocket>(std::move(ours)),
                                  .owner = "owner",
                                  .secret = SecretDigest::Of(kSecret),
                                  .on_end = std::move(on_end)},
                                 CallsTo(handler_));
    return std::move(theirs);
  }
};

TEST_F(SecretTest, ARequestWithTheSecretIsServed) {
  TestClient client(ConnectProven());
  EXPECT_THAT(client.Result("/echo", "hello", kProof).Messages(), testing::ElementsAre("hello"));
}

TEST_F(SecretTest, EachRequestWithoutItIsRefusedAndTheNextWithItIsServed) {
  TestClient client(ConnectProven());
  const std::string refused = CodeOf(Refusal::kSecretMissing);
  EXPECT_EQ(client.Result("/echo", "hello").Field("grpc-status"), refused);
  for (const std::string& wrong :
       {std::string(), kSecret, "Bearer " + std::string(64, 'b'), "Bearer " + kSecret + "a", "Basic " + kSecret}) {
    EXPECT_EQ(client.Result("/echo", "hello", {{"authorization", wrong}}).Field("grpc-status"), refused) << wrong;
  }
  EXPECT_EQ(handler_->begun(), 0u);
  EXPECT_THAT(client.Result("/echo", "hello", kProof).Messages(), testing::ElementsAre("hello"));
}

// Nothing of its message is waited for, or charged.
TEST_F(SecretTest, ARefusedRequestIsAnsweredBeforeItsMessageArrives) {
  TestClient client(ConnectProven());
  const int32_t stream_id = client.Open("/echo");
  ASSERT_TRUE(client.UntilClosed(stream_id));
  EXPECT_EQ(client.Of(stream_id).Field("grpc-status"), CodeOf(Refusal::kSecretMissing));
  EXPECT_LE(connection_->peak_bytes(), 2048u);
}

TEST_F(SecretTest, AConnectionWithoutASecretTakesRequestsWithAndWithout) {
  TestClient proven(ConnectProven());
  TestClient client(Connect());
  EXPECT_EQ(proven.Result("/echo").Field("grpc-status"), CodeOf(Refusal::kSecretMissing));
  EXPECT_THAT(client.Result("/echo", "hello").Messages(), testing::ElementsAre("hello"));
  EXPECT_THAT(client.Result("/echo", "hello", kProof).Messages(), testing::ElementsAre("hello"));
}

TEST_F(SecretTest, TheEndOfAConnectionIsTold) {
  const auto ended = std::make_shared<Signal>();
  {
    TestClient client(ConnectProven([ended] { ended->Set(); }));
    EXPECT_THAT(client.Result("/echo", "hello", kProof).Messages(), testing::ElementsAre("hello"));
  }
  EXPECT_TRUE(ended->Wait());
}

}  // namespace
}  // namespace rnicd::rpc
