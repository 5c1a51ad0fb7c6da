#include "tests/vm/faults/foreign_peer.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <utility>

#include "tests/vm/faults/bytes.h"

namespace rnicd::test {
namespace {

// Longer than any test: only a fault ends the traffic.
constexpr int kEndlessSeconds = 3600;

std::string Place(const RemoteBytes& bytes) {
  return std::to_string(bytes.address) + " " + std::to_string(bytes.token);
}

void AddFailure(Where where, const std::string& what) {
  ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line())) << what;
}

}  // namespace

uint64_t PeerAnswer::number(const std::string& key) const {
  const auto found = values.find(key);
  return found == values.end() ? 0 : std::strtoull(found->second.c_str(), nullptr, 0);
}

ForeignPeer::ForeignPeer(const PeerOptions& options) {
  const std::string timeout = std::to_string(std::chrono::duration_cast<std::chrono::seconds>(kTimeout).count());
  auto started = ChildProcess::Start(
      {.command = {RNICD_FOREIGN_PEER_PATH, "--device", options.device, "--gid", options.gid, "--patience", timeout}});
  if (!started.ok()) {
    ADD_FAILURE() << started.status();
    std::abort();
  }
  process_ = *std::move(started);
  address_ = process_->output().NextLine(kTimeout).value_or("");
  EXPECT_FALSE(address_.empty()) << "rnicd_foreign_peer does not start: " << process_->errors().Text();
}

bool ForeignPeer::Connect(const std::string& daemons_address, Where where) {
  const PeerAnswer answer = Run(daemons_address);
  if (!answer.ok) {
    AddFailure(where, "the foreign peer cannot connect to " + daemons_address + ": " + answer.error);
  }
  return answer.ok;
}

PeerAnswer ForeignPeer::Run(const std::string& command) {
  Send(command);
  return Answer();
}

PeerAnswer ForeignPeer::Answer() {
  // The peer itself times out after kTimeout.
  const std::optional<std::string> line = process_->output().NextLine(2 * kTimeout);
  PeerAnswer answer;
  if (!line.has_value()) {
    ADD_FAILURE() << "rnicd_foreign_peer does not respond: " << process_->errors().Text();
    answer.error = "NO_ANSWER";
    return answer;
  }
  std::istringstream words(*line);
  std::string word;
  words >> word;
  answer.ok = word == "ok";
  while (words >> word) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      answer.error += (answer.error.empty() ? "" : " ") + word;
    } else {
      answer.values[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  return answer;
}

PeerAnswer ForeignPeer::Write(const RemoteBytes& target, uint32_t seed, size_t length) {
  return Run("write " + Place(target) + " " + PatternName(seed, length));
}

PeerAnswer ForeignPeer::Read(const RemoteBytes& source, size_t length) {
  return Run("read " + Place(source) + " " + std::to_string(length));
}

void ForeignPeer::MustWrite(const RemoteBytes& target, uint32_t seed, size_t length, Where where) {
  const PeerAnswer answer = Write(target, seed, length);
  if (!answer.ok) {
    AddFailure(where, "the foreign peer's write failed: " + answer.error);
  }
}

void ForeignPeer::MustRead(const RemoteBytes& source, const std::string& expected, Where where) {
  const PeerAnswer answer = Read(source, expected.size());
  if (!answer.ok) {
    AddFailure(where, "the foreign peer's read failed: " + answer.error);
  } else if (answer.values.at("checksum") != Checksum(expected)) {
    AddFailure(where, "the foreign peer has read other bytes");
  }
}

void ForeignPeer::BeginTraffic(const RemoteBytes& target, size_t length) {
  Send("traffic " + Place(target) + " " + std::to_string(length) + " " + std::to_string(kEndlessSeconds));
}

RemoteBytes ForeignPeer::memory() {
  const PeerAnswer answer = Run("mr");
  return {.address = answer.number("address"), .token = static_cast<uint32_t>(answer.number("rkey"))};
}

void ForeignPeer::Fill(uint64_t offset, uint32_t seed, size_t length, Where where) {
  const PeerAnswer answer = Run("fill " + std::to_string(offset) + " " + PatternName(seed, length));
  if (!answer.ok) {
    AddFailure(where, "the foreign peer's memory cannot be filled: " + answer.error);
  }
}

bool ForeignPeer::Holds(uint64_t offset, const std::string& expected) {
  const PeerAnswer answer = Run("peek " + std::to_string(offset) + " " + std::to_string(expected.size()));
  EXPECT_TRUE(answer.ok) << answer.error;
  return answer.ok && answer.values.at("checksum") == Checksum(expected);
}

void ForeignPeer::KillHard() {
  process_->Signal(SIGKILL);
  process_->WaitForEnd();
}

}  // namespace rnicd::test
