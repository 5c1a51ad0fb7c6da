#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "daemon/transport/front_door.h"
#include "tests/fuzz/call_script.h"
#include "tests/fuzz/fuzz_daemon.h"
#include "tests/fuzz/wire_pool.h"

namespace rnicd::fuzz {

// Calls that have begun and not ended. Threads: safe.
class OpenCalls {
 public:
  // Answers the call's number.
  uint64_t Begin(std::shared_ptr<grpc::ClientContext> context);
  void End(uint64_t call);
  // False when the call has not ended within the timeout; likewise all calls.
  bool AwaitOne(uint64_t call, std::chrono::milliseconds timeout);
  bool AwaitAll(std::chrono::milliseconds timeout);
  // Cancels the call if it has not ended.
  void Cancel(uint64_t call);
  void CutOff();
  bool cut_off() const { return cut_off_.load(); }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  uint64_t next_ RNICD_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, std::shared_ptr<grpc::ClientContext>> contexts_ RNICD_GUARDED_BY(mutex_);
  std::atomic<bool> cut_off_{false};
};

// One client's connection, from its channel to the daemon's server for it.
// Lifetime: the daemon and the pool outlive it. Threads: none.
class WireClient {
 public:
  WireClient(FuzzDaemon& daemon, char name, WirePool& pool);
  // As a client that dies: what is under way is cut off.
  ~WireClient();
  WireClient(const WireClient&) = delete;
  WireClient& operator=(const WireClient&) = delete;

  // Begins the call, and gives it a moment to end; one that waits for something goes on.
  void Call(const Step& step);
  // Begins to close the session, if the connection carries one; whatever waits for the session ends then.
  void CloseSession();
  // Fails unless all calls end; those that go on as long as their client likes are cancelled first.
  void AwaitAll();

 private:
  uint64_t Begin(const google::protobuf::MethodDescriptor* method, const std::string& bytes);

  WirePool& pool_;
  OpenCalls calls_;
  std::vector<uint64_t> endless_;
  std::unique_ptr<transport::ServedConnection> served_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

}  // namespace rnicd::fuzz
