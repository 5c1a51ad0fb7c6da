#include "daemon/pipes/operation.h"
// Behind windows.h, whose types it uses.
#include <winternl.h>

#include <array>
#include <span>
#include <utility>

#include "base/windows_status.h"
#include "daemon/pipes/loop.h"

namespace rnicd::pipes {
namespace {

// Ends handled before others have their turn.
constexpr ULONG kEndsAtOnce = 64;

}  // namespace

absl::StatusOr<std::shared_ptr<Loop>> Loop::Create() {
  HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 1);
  if (port == nullptr) {
    return LastErrorStatus("CreateIoCompletionPort");
  }
  return std::shared_ptr<Loop>(new Loop(UniqueFd(HandleToLong(port))));
}

Loop::~Loop() { Stop({}); }

void Loop::Start(Task on_tick) {
  thread_ = std::thread([this, on_tick = std::move(on_tick)] { Run(on_tick); });
}

void Loop::Post(Task task) {
  {
    MutexLock lock(mutex_);
    if (stopping_) {
      return;
    }
    tasks_.push_back(std::move(task));
  }
  Wake();
}

void Loop::Call(const Task& task) {
  Mutex mutex;
  ConditionVariable changed;
  bool done = false;
  Post([&] {
    task();
    MutexLock lock(mutex);
    done = true;
    changed.NotifyAll();
  });
  MutexLock lock(mutex);
  while (!done) {
    changed.Wait(mutex);
  }
}

void Loop::Stop(Task last) {
  if (!thread_.joinable()) {
    return;
  }
  {
    MutexLock lock(mutex_);
    if (last) {
      tasks_.push_back(std::move(last));
    }
    stopping_ = true;
  }
  Wake();
  thread_.join();
}

// Without the memory for it the thread finds the task at its next tick.
void Loop::Wake() { PostQueuedCompletionStatus(LongToHandle(port_.get()), 0, 0, nullptr); }

bool Loop::Attach(int handle) {
  return CreateIoCompletionPort(LongToHandle(handle), LongToHandle(port_.get()), 0, 0) != nullptr;
}

void Loop::Run(const Task& on_tick) {
  auto next_tick = std::chrono::steady_clock::now();
  while (!IsOver()) {
    WaitOnce();
    RunTasks();
    const auto now = std::chrono::steady_clock::now();
    if (now >= next_tick) {
      next_tick = now + kTick;
      on_tick();
    }
  }
}

void Loop::WaitOnce() {
  std::array<OVERLAPPED_ENTRY, kEndsAtOnce> ends;
  ULONG count = 0;
  if (GetQueuedCompletionStatusEx(LongToHandle(port_.get()), ends.data(), kEndsAtOnce, &count,
                                  static_cast<DWORD>(kTick.count()), FALSE) == 0) {
    return;
  }
  for (const OVERLAPPED_ENTRY& end : std::span(ends.data(), count)) {
    if (end.lpOverlapped != nullptr) {
      Operation& operation = *static_cast<Operation*>(end.lpOverlapped);
      End(operation, end.dwNumberOfBytesTransferred, RtlNtStatusToDosError(static_cast<NTSTATUS>(operation.Internal)));
    }
  }
}

// What follows may begin the operation again, or destroy it.
void Loop::End(Operation& operation, uint32_t bytes, uint32_t error) {
  --running_;
  const auto on_done = std::move(operation.on_done);
  on_done(bytes, error);
}

void Loop::Failed(Operation& operation, uint32_t error) {
  failed_.emplace_back(&operation, error);
  Wake();
}

void Loop::RunTasks() {
  for (const auto& [operation, error] : std::exchange(failed_, {})) {
    End(*operation, 0, error);
  }
  std::deque<Task> tasks;
  {
    MutexLock lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const Task& task : tasks) {
    task();
  }
}

bool Loop::IsOver() {
  MutexLock lock(mutex_);
  return stopping_ && tasks_.empty() && running_ == 0;
}

}  // namespace rnicd::pipes
