#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "tests/support/connection_client.h"

namespace rnicd::test {

// One end of a connection in a client process:
//
//   listen               prints where
//   ask <ip> <port>      Connect, which pends
//   requested            waits for a request at the listener
//   accept               Accept, which pends
//   disconnect           Disconnect, which pends
//   ended                waits for the end of the request that pends
//   complete             completes the connection
//   lost                 waits until the peer has disconnected
class PartyCommands {
 public:
  explicit PartyCommands(std::string socket_dir) : socket_dir_(std::move(socket_dir)) {}

  std::string Run(std::istringstream& words);

 private:
  std::string Listen();
  std::string Ask(std::istringstream& words);
  std::string Requested();
  std::string Ended();
  // Made by the first command.
  TestParty& party();
  TestQueue& queue();

  const std::string socket_dir_;
  std::unique_ptr<TestParty> party_;
  std::unique_ptr<TestQueue> queue_;
  uint64_t connector_ = 0;
};

}  // namespace rnicd::test
