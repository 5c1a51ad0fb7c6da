#include "daemon/app/observing/serving_parts.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/socket/event_loop.h"

namespace rnicd::app {
namespace {

using Task = std::function<void()>;

void AddLoops(const rpc::Server& server, const char* name, std::vector<health::ServingPart>& parts) {
  for (size_t index = 0; index < server.loops().size(); ++index) {
    parts.push_back(health::PartThatRuns(absl::StrCat(name, " ", index + 1),
                                         [loop = server.loops()[index]](Task task) { loop->Post(std::move(task)); }));
  }
}

}  // namespace

std::vector<health::ServingPart> ServingParts(const ServingThreads& threads) {
  std::vector<health::ServingPart> parts = threads.door.Parts();
  AddLoops(threads.workloads, "rpc loop", parts);
  AddLoops(threads.operators, "operators' rpc loop", parts);
  parts.push_back(
      health::PartThatRuns("fd worker", [&workers = threads.fd_workers](Task task) { workers.Post(std::move(task)); }));
  parts.push_back(health::PartThatRuns(
      "alarms", [&alarms = threads.alarms](Task task) { alarms.Set(std::chrono::nanoseconds(0), std::move(task)); }));
  const size_t rings = threads.rings == nullptr ? 0 : threads.rings->size();
  for (size_t index = 0; index < rings; ++index) {
    parts.push_back(
        health::PartThatRuns(absl::StrCat("ring thread ", index + 1),
                             [host = threads.rings, index](Task task) { host->Post(index, std::move(task)); }));
  }
  return parts;
}

}  // namespace rnicd::app
