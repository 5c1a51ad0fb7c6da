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
#include "daemon/door/connection_server.h"
#include "tests/fuzz/call_script.h"
#include "tests/fuzz/fuzz_daemon.h"
#include "tests/fuzz/wire_pool.h"

namespace rnicd::fuzz {

// Calls that have begun and not ended.
// Threads: safe.
class OpenCalls {
 public:
  // Returns the call's number.
  uint64_t Begin(std::shared_ptr<grpc::ClientContext> context);
  void End(uint64_t call);
  // False if the call, or one of all calls, has not ended within the timeout.
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
// Lifetime: the daemon and the pool outlive it.
// Threads:  none.
class WireClient {
 public:
  WireClient(FuzzDaemon& daemon, char name, WirePool& pool);
  // Like a client that dies: cuts off calls in flight.
  ~WireClient();
  WireClient(const WireClient&) = delete;
  WireClient& operator=(const WireClient&) = delete;

  // Begins the call, and waits kMoment for its end; a blocked call stays in flight.
  void Call(const Step& step);
  // Begins to close the session, if the connection has one; calls that wait for the session then end.
  void CloseSession();
  // Fails unless all calls end; endless streams are cancelled first.
  void AwaitAll();

 private:
  uint64_t Begin(const google::protobuf::MethodDescriptor* method, const std::string& bytes);

  WirePool& pool_;
  OpenCalls calls_;
  std::vector<uint64_t> endless_;
  std::unique_ptr<door::ServedConnection> served_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

}  // namespace rnicd::fuzz
