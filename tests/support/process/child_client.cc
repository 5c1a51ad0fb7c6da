#include "tests/support/process/child_client.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "tests/support/process/temp_dir.h"

namespace rnicd::test {
namespace {

ChildAnswer Parse(const std::string& line) {
  ChildAnswer answer;
  std::istringstream words(line);
  std::string word;
  words >> word;
  answer.ok = word == "ok";
  if (!answer.ok) {
    words >> answer.reason;
  }
  while (words >> word) {
    const size_t equals = word.find('=');
    answer.values[word.substr(0, equals)] = equals == std::string::npos ? "" : word.substr(equals + 1);
  }
  return answer;
}

}  // namespace

uint64_t ChildAnswer::number(const std::string& key) const {
  const auto found = values.find(key);
  return found == values.end() ? 0 : std::strtoull(found->second.c_str(), nullptr, 10);
}

std::unique_ptr<ChildClient> ChildClient::Start(const DaemonProcess& daemon, std::optional<uid_t> uid) {
  return StartProgram({.command = {ExecutableForEveryone(RNICD_TEST_CLIENT_PATH), daemon.socket_dir()}, .uid = uid});
}

std::unique_ptr<ChildClient> ChildClient::StartProgram(const ChildOptions& options) {
  auto process = ChildProcess::Start(options);
  if (!process.ok()) {
    ADD_FAILURE() << process.status();
    return nullptr;
  }
  return std::unique_ptr<ChildClient>(new ChildClient(*std::move(process)));
}

ChildAnswer ChildClient::Run(const std::string& command, std::chrono::milliseconds limit) {
  process_->WriteLine(command);
  return Answer(limit);
}

ChildAnswer ChildClient::MustRun(const std::string& command) {
  ChildAnswer answer = Run(command);
  EXPECT_TRUE(answer.ok) << "command: " << command << ": " << answer.reason << " " << process_->errors().Text();
  return answer;
}

ChildAnswer ChildClient::Answer(std::chrono::milliseconds limit) {
  const std::optional<std::string> line = process_->output().NextLine(limit);
  if (!line.has_value()) {
    ADD_FAILURE() << "the process does not respond; its log: " << process_->errors().Text();
    return ChildAnswer();
  }
  return Parse(*line);
}

void ChildClient::KillHard() {
  process_->Signal(SIGKILL);
  process_->WaitForEnd();
}

}  // namespace rnicd::test
