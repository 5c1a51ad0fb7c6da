#include "tests/support/test_client/party_commands.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kDisconnectRequest = 0xd1;

std::string TextOfOutcome(const CallOutcome& outcome) {
  return outcome.ok() ? "ok" : "error " + v1::ErrorReason_Name(outcome.detail.reason());
}

}  // namespace

std::string PartyCommands::Run(std::istringstream& words) {
  std::string command;
  words >> command;
  if (command == "listen") {
    return Listen();
  }
  if (command == "ask") {
    return Ask(words);
  }
  if (command == "requested") {
    return Requested();
  }
  if (command == "accept") {
    return TextOfOutcome(Accept(party(), AnswerTo(connector_, queue())));
  }
  if (command == "complete") {
    return TextOfOutcome(CompleteConnect(party(), connector_));
  }
  if (command == "disconnect") {
    return TextOfOutcome(Disconnect(party(), connector_, kDisconnectRequest));
  }
  if (command == "lost") {
    return party().NextDisconnect().connector_id() == connector_ ? "ok" : "error NO_EVENT";
  }
  return command == "ended" ? Ended() : "error UNKNOWN_COMMAND";
}

std::string PartyCommands::Listen() {
  const TestListener listener(party());
  return "ok ip=" + listener.local.address() + " port=" + std::to_string(listener.local.port());
}

std::string PartyCommands::Ask(std::istringstream& words) {
  v1::NetworkAddress peer;
  uint32_t port = 0;
  words >> *peer.mutable_address() >> port;
  peer.set_port(port);
  connector_ = CreateConnector(party());
  return TextOfOutcome(Connect(party(), RequestTo(connector_, queue(), peer)));
}

std::string PartyCommands::Requested() {
  connector_ = party().NextRequest().connector_id();
  return connector_ != 0 ? "ok" : "error NO_EVENT";
}

std::string PartyCommands::Ended() {
  const v1::RequestCompleted completion = party().NextCompletion();
  return completion.has_error() ? "error " + v1::ErrorReason_Name(completion.error().reason()) : "ok";
}

TestParty& PartyCommands::party() {
  if (party_ == nullptr) {
    party_ = std::make_unique<TestParty>(
        TestSession::Sockets{.rpc = socket_dir_ + "/rpc.sock", .fd = socket_dir_ + "/fd.sock"});
  }
  return *party_;
}

TestQueue& PartyCommands::queue() {
  if (queue_ == nullptr) {
    queue_ = std::make_unique<TestQueue>(party());
  }
  return *queue_;
}

}  // namespace rnicd::test
