#include "tests/interop/grpcpp_storm.h"

#include <google/protobuf/descriptor.h>

#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rnicd/v1/admin_service.pb.h"
#include "rnicd/v1/queue_service.pb.h"
#include "rnicd/v1/ring_service.pb.h"
#include "tests/interop/grpcpp_connection.h"

namespace rnicd::interop {
namespace {

constexpr int kStormThreads = 4;
constexpr int kStormCalls = 1000;  // of each thread

// All but the one that ends the session.
std::vector<std::string> StormMethods() {
  std::vector<std::string> methods;
  for (const auto* message : {v1::ListAdaptersRequest::descriptor(), v1::GetStatusRequest::descriptor(),
                              v1::AllocateMemoryRequest::descriptor(), v1::CreateCqRequest::descriptor(),
                              v1::OpenRingRequest::descriptor(), v1::OpenSessionRequest::descriptor()}) {
    const google::protobuf::ServiceDescriptor* const service = message->file()->service(0);
    for (int index = 0; index < service->method_count(); ++index) {
      if (service->method(index)->name() != "CloseSession") {
        methods.push_back(absl::StrCat(service->name(), "/", service->method(index)->name()));
      }
    }
  }
  return methods;
}

class Storm {
 public:
  explicit Storm(const std::string& socket) : session_(ConnectWithSession(socket)) {}

  using Dice = std::mt19937;

  void Run(const std::function<void(Dice& dice)>& calls_of_thread) {
    const uint64_t memory_id = session_->AllocateMemory();
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < kStormThreads; ++thread) {
      threads.emplace_back([&calls_of_thread, thread] {
        Dice dice(thread);
        calls_of_thread(dice);
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    session_->GetSession();
    session_->ReleaseMemory(memory_id);
  }
  // Most requests are empty; some fill the socket.
  std::unique_ptr<RawCall> Start(Dice& dice, std::chrono::microseconds timeout) {
    const std::string request(dice() % 64 == 0 ? 1 << 20 : 0, 'x');
    return session_->StartRaw(methods_[dice() % methods_.size()], request, timeout);
  }

 private:
  const std::unique_ptr<Connection> session_;
  const std::vector<std::string> methods_ = StormMethods();
};

}  // namespace

void CancelStorm(const std::string& socket) {
  Storm storm(socket);
  storm.Run([&storm](Storm::Dice& dice) {
    std::vector<std::unique_ptr<RawCall>> running;
    for (int call = 0; call < kStormCalls; ++call) {
      running.push_back(storm.Start(dice, kTimeout));
      while (running.size() > dice() % 8) {
        std::swap(running.back(), running[dice() % running.size()]);
        running.pop_back();  // Cancels it.
      }
    }
  });
}

void DeadlineStorm(const std::string& socket) {
  Storm storm(socket);
  storm.Run([&storm](Storm::Dice& dice) {
    for (int call = 0; call < kStormCalls; ++call) {
      storm.Start(dice, std::chrono::microseconds(100 + dice() % 1900))->status();
    }
  });
}

}  // namespace rnicd::interop
