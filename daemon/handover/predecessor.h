#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "base/strong_id.h"
#include "base/system/unique_socket.h"
#include "daemon/handover/channel.h"
#include "daemon/handover/link_thread.h"
#include "rnicd/v1/handover.pb.h"

namespace rnicd::handover {

// What a generation hears of the older one. Called on the thread of its Predecessor.
class TakingDaemon {
 public:
  virtual ~TakingDaemon() = default;
  // This one's own, without those that it inherited.
  virtual std::string OwnCounters() = 0;
  virtual void OnProcessEnded(const v1::HandoverProcess& process) = 0;
  // Returns what the older generation may hold from now on.
  virtual v1::HandoverUse Grow(const v1::HandoverUse& wanted) = 0;
  virtual void Shrink(const v1::HandoverUse& shrunk) = 0;
  // A connection that was routed, and whose process has no session there any more.
  virtual void OnHandedBack(const v1::HandoverFile& listener, UniqueSocket socket) = 0;
  virtual void OnCounters(const std::string& text, const v1::HandoverCounters& generations) = 0;
  // It has ended, and with it those that are older still.
  virtual void OnPredecessorEnded() = 0;
};

// The generation that this one takes over from, by steps: Connect; Take; Commit; Serve.
// Lifetime: Stop before destroying.
// Threads:  Route, NarrowGrant from any once it serves; the rest from one.
class Predecessor final : private LinkHandler {
 public:
  Predecessor(Channel channel, UniqueFd process) : process_(std::move(process)), channel_(std::move(channel)) {}

  // Null when there is none. Before the sandbox. Errors: as Channel::Connect.
  static absl::StatusOr<std::unique_ptr<Predecessor>> Connect(const std::string& directory);

  struct Taken {
    v1::HandoverContents contents;
    // In the order of contents.files.
    std::vector<UniqueFd> files;
  };
  // From here until Commit nobody is accepted. Errors: it refuses, or does not answer: it goes on as before.
  absl::StatusOr<Taken> Take(const std::string& version);
  // When it returns ok this generation is the one that serves, also when the older one has ended meanwhile. Errors:
  // that one goes on as before.
  absl::Status Commit();
  // `daemon` outlives it. Errors: kUnavailable, no descriptor is left.
  absl::Status Serve(TakingDaemon& daemon);
  void Stop() { thread_.Stop(); }
  // It is gone, with those that are older still; OnPredecessorEnded comes with the next tick. From any thread.
  bool has_ended() const;
  // Their pidfds, without those that are known to have ended.
  std::vector<UniqueFd> Processes() const;

  // Passes a connection on, unread; the caller's copy may be closed. False when nobody is there to take it.
  bool Route(const v1::HandoverFile& listener, std::shared_ptr<const UniqueSocket> socket);
  // As core::Retirement::Narrow.
  void NarrowGrant(GrantId grant, const std::string& pod_uid);

 private:
  void OnPacket(Packet packet) override;
  // A connection that breaks tells nothing yet.
  void OnEnd() override { linked_.store(false); }
  void OnTick() override;
  void Tell(Outgoing packet);

  // Moves the pidfds of those that are older still out of the answer.
  void KeepProcesses(Taken& taken);

  // Its pidfd; invalid where the one that listened has ended, and an older one serves again.
  const UniqueFd process_;
  // Those that are older still. They may outlive it: what they hold counts until they are gone, too.
  std::vector<UniqueFd> older_;
  std::optional<Channel> channel_;
  TakingDaemon* daemon_ = nullptr;
  uint64_t ticks_ = 0;
  bool ended_ = false;
  std::atomic<bool> linked_{true};
  LinkThread thread_{*this};
};

}  // namespace rnicd::handover
