#include <windows.h>

#include <utility>

#include "daemon/pipes/exit_watch.h"

namespace rnicd::pipes {

std::unique_ptr<ExitWatch> ExitWatch::Begin(int process, std::function<void()> on_exit) {
  std::unique_ptr<ExitWatch> watch(new ExitWatch(std::move(on_exit)));
  const auto exited = [](void* self, BOOLEAN /*timed_out*/) { static_cast<ExitWatch*>(self)->on_exit_(); };
  if (RegisterWaitForSingleObject(&watch->wait_, LongToHandle(process), exited, watch.get(), INFINITE,
                                  WT_EXECUTEONLYONCE) == 0) {
    watch->wait_ = nullptr;
    return nullptr;
  }
  return watch;
}

ExitWatch::~ExitWatch() {
  if (wait_ != nullptr) {
    UnregisterWaitEx(wait_, INVALID_HANDLE_VALUE);
  }
}

}  // namespace rnicd::pipes
