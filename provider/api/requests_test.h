#pragma once

// Work requests, as the tests of every provider post them.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/ndk/adapter_info.h"
#include "provider/api/queue_pair.h"
#include "provider/api/recording_listener_test.h"

namespace rnicd::provider {

// Where the memory of each side of a connection lies for the card.
inline constexpr uint64_t kSideBase = 0x100000;
inline constexpr QueuePairLimits kRoomyLimits{
    .receive_depth = 64, .initiator_depth = 64, .receive_entries = 16, .initiator_entries = 16, .inline_bytes = 256};

inline WorkRequest Request(uint64_t context, Entries entries, decltype(WorkRequest::work) work) {
  WorkRequest request;
  request.request_context = context;
  request.payload = std::move(entries);
  request.work = std::move(work);
  return request;
}
inline WorkRequest Send(uint64_t context, Entries entries = {}, const SendWork& work = {}) {
  return Request(context, std::move(entries), work);
}
inline WorkRequest Receive(uint64_t context, Entries entries = {}) {
  return Request(context, std::move(entries), ReceiveWork{});
}
inline WorkRequest Write(uint64_t context, Entries entries = {}, RemoteToken token = {}, uint64_t offset = 0) {
  return Request(context, std::move(entries), WriteWork{.remote_address = {kSideBase + offset}, .remote_token = token});
}
inline WorkRequest Read(uint64_t context, Entries entries = {}, RemoteToken token = {}, uint64_t offset = 0) {
  return Request(context, std::move(entries), ReadWork{.remote_address = {kSideBase + offset}, .remote_token = token});
}
inline WorkRequest ReadAndInvalidate(uint64_t context, Entries entries, RemoteToken token = {7}) {
  return Request(context, std::move(entries),
                 ReadWork{.remote_address = {kSideBase}, .remote_token = token, .local_invalidate = true});
}
// Backing of a fast registration: the list of its runs, and what keeps them.
struct RunList {
  std::vector<std::span<std::byte>> runs;
  std::shared_ptr<const void> backing;
};
inline WorkRequest FastRegister(uint64_t context, const std::shared_ptr<DeviceFastRegion>& region,
                                const std::shared_ptr<const RunList>& list, uint64_t length,
                                const AccessRights& rights = kAllRights) {
  return Request(context, {},
                 FastRegisterWork{.region = region,
                                  .base = {kSideBase},
                                  .length = length,
                                  .rights = rights,
                                  .runs = list->runs,
                                  .backing = list});
}
inline WorkRequest FastRegister(uint64_t context, const std::shared_ptr<DeviceFastRegion>& region,
                                std::vector<std::span<std::byte>> runs, const AccessRights& rights = kAllRights,
                                std::shared_ptr<const void> backing = nullptr) {
  uint64_t length = 0;
  for (const std::span<std::byte> run : runs) {
    length += run.size();
  }
  const auto list = std::make_shared<RunList>(RunList{.runs = std::move(runs), .backing = std::move(backing)});
  return FastRegister(context, region, list, length, rights);
}
inline WorkRequest Invalidate(uint64_t context, const std::shared_ptr<DeviceFastRegion>& region) {
  return Request(context, {}, InvalidateWork{.region = region, .window = nullptr});
}
inline WorkRequest Invalidate(uint64_t context, const std::shared_ptr<DeviceMemoryWindow>& window) {
  return Request(context, {}, InvalidateWork{.region = nullptr, .window = window});
}
inline WorkRequest Bind(uint64_t context, const std::shared_ptr<DeviceMemoryWindow>& window,
                        const std::shared_ptr<DeviceMemoryRegion>& region, uint64_t offset = 0,
                        uint64_t length = kNdkPageBytes, std::shared_ptr<const void> backing = nullptr) {
  return Request(context, {},
                 BindWork{.window = window,
                          .region = region,
                          .base = {kSideBase + offset},
                          .length = length,
                          .rights = {.remote_read = true, .remote_write = true},
                          .backing = std::move(backing)});
}
inline WorkRequest Silent(WorkRequest request) {
  request.silent_success = true;
  return request;
}
inline WorkRequest Fenced(WorkRequest request) {
  request.read_fence = true;
  return request;
}

}  // namespace rnicd::provider
