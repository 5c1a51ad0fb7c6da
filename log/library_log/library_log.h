#pragma once

#include "base/clock.h"
#include "log/library_log/routes.h"
#include "log/line_budget.h"
#include "log/logger.h"

namespace rnicd::library_log {

// While one exists, the log lines of protobuf, and of gRPC where the program routes them, go to its logger, at a
// bounded rate for each library.
// Lifetime: at most one at a time, made before a second thread uses the libraries: protobuf does not synchronise its
//           handler. Lines that come after it was destroyed are dropped.
// Threads:  the libraries log from any thread.
class LibraryLog {
 public:
  // `logger` and `clock` outlive this.
  LibraryLog(const log::Logger& logger, const Clock& clock);
  ~LibraryLog();
  LibraryLog(const LibraryLog&) = delete;
  LibraryLog& operator=(const LibraryLog&) = delete;

  void Write(const LibraryLine& line);

 private:
  const log::Logger& logger_;
  log::LineBudget protobuf_budget_;
  log::LineBudget grpc_budget_;
};

}  // namespace rnicd::library_log
