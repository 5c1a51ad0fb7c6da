#include "base/system/abandonable_thread.h"

#include <utility>

namespace rnicd {

AbandonableThread::AbandonableThread(std::function<void()> run) {
  std::packaged_task<void()> task(std::move(run));
  ended_ = task.get_future();
  thread_ = std::thread(std::move(task));
}

bool AbandonableThread::EndBy(Instant deadline) {
  const bool ended = ended_.wait_until(deadline) == std::future_status::ready;
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
  return ended;
}

}  // namespace rnicd
