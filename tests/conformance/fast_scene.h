#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/queue_client.h"

namespace rnicd::test {

inline constexpr uint32_t kOpRemoteRead = v1::OP_FLAG_ALLOW_REMOTE_READ;
inline constexpr uint32_t kOpLocalWrite = v1::OP_FLAG_ALLOW_LOCAL_WRITE;
inline constexpr uint32_t kOpRemoteWrite = v1::OP_FLAG_ALLOW_REMOTE_WRITE;
inline constexpr uint32_t kOpEveryRight = kOpRemoteRead | kOpRemoteWrite;

inline constexpr uint32_t kStatusAccessViolation = static_cast<uint32_t>(NtStatus::kAccessViolation);
inline constexpr uint32_t kStatusCancelled = static_cast<uint32_t>(NtStatus::kCancelled);
inline constexpr uint32_t kStatusInvalidDeviceRequest = static_cast<uint32_t>(NtStatus::kInvalidDeviceRequest);

// A fast region and a peer that accesses it. The far side owns memory and the region; the near side is the peer.
// Every byte of the memory differs from its neighbours, so that a wrong page or offset is detected.
// Lifetime: the daemon must outlive this. The destructor ends both sessions.
class FastScene {
 public:
  FastScene(DaemonProcess& daemon, uint32_t pages, bool remote_access = true);

  TestQueue& near() { return pair_.near; }
  TestQueue& far() { return pair_.far; }
  TestSession& near_session() { return pair_.near_session; }
  TestSession& far_session() { return pair_.far_session; }
  TestMemory& memory() { return memory_; }
  // The region, initialized for all pages of the memory and not registered.
  uint64_t mr() const { return mr_; }
  uint32_t local_token() const { return local_token_; }

  // Bytes [fbo, fbo + length) of these pages of the memory laid end to end.
  std::string Laid(const std::vector<size_t>& indices, uint64_t fbo, uint64_t length) const;
  // A FastRegister of the region with these pages of the memory.
  v1::WorkRequest Request(const std::vector<size_t>& indices, uint64_t length, uint64_t base, uint32_t flags,
                          uint32_t fbo = 0, uint64_t context = 1);
  // Runs the FastRegister on the far queue pair; must succeed. Returns the remote token.
  uint32_t Register(const std::vector<size_t>& indices, uint64_t length, uint64_t base, uint32_t flags,
                    uint32_t fbo = 0, Where where = Where::current());
  // Registers all pages at kBase.
  uint32_t RegisterWhole(uint32_t flags, Where where = Where::current());

  // The peer's accesses over the connection of near and far; must succeed.
  std::string Read(uint64_t address, uint32_t remote_token, uint32_t length, Where where = Where::current());
  void Write(const std::string& text, uint64_t address, uint32_t remote_token, Where where = Where::current());
  // The status of the same access over a new connection, because a refused access ends its connection.
  uint32_t ReadStatus(uint64_t address, uint32_t remote_token, uint32_t length, Where where = Where::current());
  uint32_t WriteStatus(const std::string& text, uint64_t address, uint32_t remote_token,
                       Where where = Where::current());

 private:
  uint32_t StatusOverAnotherConnection(const v1::WorkRequest& request, Where where);

  ConnectedPair pair_;
  TestMemory memory_;
  TestMemory sink_;
  uint32_t sink_token_ = 0;
  uint64_t mr_ = 0;
  uint32_t local_token_ = 0;
};

// Blocks everything posted to the initiator queue of `queue` from now on until its peer is released.
void HoldBack(TestQueue& queue);
void Release(TestQueue& peer);

}  // namespace rnicd::test
