#pragma once

#include <chrono>

#include "provider/networkdirect/card/nd2_types.h"
#ifndef _WIN32
#include <deque>

#include "base/mutex.h"
#endif

namespace rnicd::provider {

// Where calls that pended are notified: an I/O completion port; on other systems a queue that behaves like one.
// Lifetime: outlives the files associated with it.
// Threads:  safe.
class CompletionPort final
#ifndef _WIN32
    : private OverlappedQueue
#endif
{
 public:
  CompletionPort();
  ~CompletionPort();
  CompletionPort(const CompletionPort&) = delete;
  CompletionPort& operator=(const CompletionPort&) = delete;

  // From now on calls on the file, of IND2Adapter::CreateOverlappedFile, are notified here. False if the system
  // refuses.
  bool Associate(HANDLE file);
  // Notifies of a call as if it had pended.
  void Notify(OVERLAPPED* call);
  // The next call that is notified; null at the timeout.
  OVERLAPPED* Wait(std::chrono::milliseconds timeout);
  // Closes such a file. No call on it is pending.
  static void CloseFile(HANDLE file);

 private:
#ifdef _WIN32
  const HANDLE port_;
#else
  void Post(OVERLAPPED* call) override;

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<OVERLAPPED*> calls_ RNICD_GUARDED_BY(mutex_);
#endif
};

}  // namespace rnicd::provider
