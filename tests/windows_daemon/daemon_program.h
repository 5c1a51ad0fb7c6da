#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "daemon/pipes/front_door_fixture.h"
#include "daemon/rpc/server_fixture_test.h"

namespace rnicd::test {

// A program as a process, and what it writes.
// Lifetime: the destructor kills it.
class Program {
 public:
  explicit Program(std::string command);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // All that it has written so far, errors included.
  std::string output() const RNICD_EXCLUDES(mutex_);
  bool HasEnded() const;
  // The exit status, which it reaches by itself. Its output is complete then.
  uint32_t Wait();
  void Kill();

 private:
  void ReadOutput() RNICD_EXCLUDES(mutex_);

  UniqueFd process_;
  UniqueFd pipe_;
  std::thread reader_;
  mutable Mutex mutex_;
  std::string output_ RNICD_GUARDED_BY(mutex_);
};

// rnicd.exe, with pipes of its own and a page on a free port.
class DaemonProgram {
 public:
  // Returns when it serves, or has ended.
  explicit DaemonProgram(const std::vector<std::string>& flags = {});

  bool serves() const { return log().find(" ready ") != std::string::npos; }
  std::string log() const { return program_->output(); }
  const std::string& pipe() const { return pipe_; }
  std::string admin_pipe() const { return pipe_ + "-admin"; }
  // The response to GET, with its headers; empty when there is none.
  std::string Page(const std::string& path) const;

  uint32_t Wait() { return program_->Wait(); }
  void Kill() { program_->Kill(); }

 private:
  std::string pipe_;
  std::unique_ptr<Program> program_;
};

// A client of one of its doors: a pipe, and a connection on which it makes calls.
class Client {
 public:
  explicit Client(const std::string& pipe);

  // The response of a call of this method, as "SessionService/OpenSession".
  template <typename Response>
  Response Call(const std::string& method, const google::protobuf::MessageLite& request) {
    Response response;
    const rpc::Response raw = Raw(method, request, secret_);
    EXPECT_EQ(raw.Field("grpc-status"), "0") << method << ": " << raw.Field("grpc-message");
    const std::vector<std::string> messages = raw.Messages();
    if (!messages.empty()) {
      EXPECT_TRUE(response.ParseFromString(messages.front()));
    }
    return response;
  }
  rpc::Response Raw(const std::string& method, const google::protobuf::MessageLite& request, const std::string& secret);

  const std::string& secret() const { return secret_; }
  pipes::PipeClient& pipe() { return pipe_; }

 private:
  pipes::PipeClient pipe_;
  std::string secret_;
  std::unique_ptr<rpc::TestClient> connection_;
};

}  // namespace rnicd::test
