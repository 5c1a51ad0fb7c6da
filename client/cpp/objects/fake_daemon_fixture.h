#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "client/cpp/channel/fake_fd_server_fixture.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/grpcpp.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::inline client {

// Answers over real sockets whatever a test tells it to, for answers that the real daemon never gives; everything else
// is tested with that one, in tests/integration/library/librnicd_*_test.cc. It keeps no state but the number of calls,
// and answers calls without a planned answer with an empty message. Calls are named as in the proto: "OpenSession".
// Lifetime: every call that waits is cancelled at its end.
class FakeDaemon {
 public:
  FakeDaemon();
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;
  ~FakeDaemon();

  const std::string& socket_dir() const { return directory_.path(); }

  // Each of these holds for all later calls of the method.
  void Answer(const std::string& method, const google::protobuf::MessageLite& response);
  void AnswerBytes(const std::string& method, const std::string& bytes);
  void NeverAnswer(const std::string& method);
  // `refused` is called before each refusal is sent.
  void Refuse(const std::string& method, ErrorReason reason, std::function<void()> refused);
  // The event stream that is opened next ends at once.
  void RefuseEvents(const grpc::Status& status);
  // Replaces the handler of connections to the fd socket, which by default answers with an empty packet.
  void ServeFd(std::function<void(int connection)> serve);

  // How often the method was called.
  int Calls(const std::string& method);

  // On the event stream, for which they wait.
  void SendEvent(const v1::WatchEventsResponse& event);
  void EndEvents(const grpc::Status& status);

 private:
  class Call;
  class EventStream;
  class Service;
  struct Reply {
    std::string bytes;
    bool never = false;
    grpc::Status status;
    // May be empty.
    std::function<void()> refused;
  };

  Reply ReplyTo(const std::string& method);
  std::shared_ptr<EventStream> WaitForEvents();

  TemporaryDirectory directory_;
  Mutex mutex_;
  std::map<std::string, Reply> replies_ RNICD_GUARDED_BY(mutex_);
  std::map<std::string, int> calls_ RNICD_GUARDED_BY(mutex_);
  std::optional<grpc::Status> events_refusal_ RNICD_GUARDED_BY(mutex_);
  ConditionVariable events_opened_;
  std::shared_ptr<EventStream> events_ RNICD_GUARDED_BY(mutex_);
  std::function<void(int)> serve_fd_ RNICD_GUARDED_BY(mutex_);
  std::optional<FakeFdServer> fd_server_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace rnicd::inline client
