#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/files/unique_fd.h"
#include "base/strong_id.h"
#include "daemon/handover/channel.h"
#include "daemon/handover/link_thread.h"
#include "log/logger.h"
#include "rnicd/v1/handover.pb.h"

namespace rnicd::handover {

// What a daemon does when a newer generation takes over from it. Called on the giver's thread.
class GivingDaemon {
 public:
  struct Given {
    v1::HandoverContents contents;
    // In the order of contents.files.
    std::vector<UniqueFd> files;
  };

  virtual ~GivingDaemon() = default;
  // Accepts nobody from now on, and opens no session. Errors: nothing has changed.
  virtual absl::StatusOr<Given> Give() = 0;
  // As before Give: no newer generation is there.
  virtual void TakeBack() = 0;
  // The newer generation serves: only what it routes is served here.
  virtual void Retire() = 0;
  virtual void Receive(const v1::HandoverFile& listener, UniqueSocket socket) = 0;
  // What the newer generation lets this one hold.
  virtual void Granted(const v1::HandoverUse& use) = 0;
  virtual void NarrowGrant(GrantId grant, const std::string& pod_uid) = 0;
  // The newer generation's own, for TakeBack.
  virtual void OnCounters(const std::string& text) = 0;
  // Five times a second while it is retired, and before it tells that a process has ended: what the newer generation is
  // to be told.
  virtual std::vector<Outgoing> Report() = 0;
};

// The side of the older generation: answers at handover.sock.
// Lifetime: what it is given outlives it; Stop before destroying.
// Threads:  Tell from any, the rest from one.
class Giver final : private LinkHandler {
 public:
  Giver(GivingDaemon& daemon, const Clock& clock, const log::Logger& logger)
      : daemon_(daemon), clock_(clock), logger_(logger) {}

  // `listener` is a SOCK_SEQPACKET socket that listens. Errors: kUnavailable, no descriptor is left.
  absl::Status Start(UniqueFd listener) { return thread_.Start(std::move(listener), std::nullopt); }
  void Stop() { thread_.Stop(); }
  // After Stop: a newer generation has the sockets, or may take them.
  bool has_given() const { return state_ != State::kServing; }
  // Sends to the newer generation when it serves; if there is none, drops the packet.
  void Tell(Outgoing packet);

 private:
  enum class State : uint8_t {
    kServing,
    kGiving,
    kRetired,
    // Retired, without a connection, while another process listens.
    kLost,
  };

  void OnConnect(Channel channel) override;
  void OnPacket(Packet packet) override;
  void OnEnd() override;
  void OnTick() override;

  void OnPacketOfNewer(Packet packet);
  void Give(const std::string& version);
  void Send(GivingDaemon::Given given);
  void Commit();
  void TellNow(Outgoing packet);
  void Report();
  void TakeBack(const std::string& why);
  // No other process listens.
  bool IsAlone() const;

  GivingDaemon& daemon_;
  const Clock& clock_;
  const log::Logger& logger_;
  LinkThread thread_{*this};
  // Used only by the thread.
  State state_ = State::kServing;
  // What was to be told while the newer generation did not serve yet.
  std::vector<Outgoing> untold_;
  // When the newer generation must have said the next word, before it has committed.
  Instant deadline_;
};

}  // namespace rnicd::handover
