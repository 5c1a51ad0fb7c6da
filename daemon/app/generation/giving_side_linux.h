#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "daemon/app/generation/succession.h"
#include "daemon/app/generation/taking_side_linux.h"
#include "daemon/core/generation/retirement.h"
#include "daemon/handover/giver.h"
#include "daemon/transport/front_door.h"
#include "daemon/transport/socket_directory.h"

namespace rnicd::app {

// What this generation gives to a newer one.
// Lifetime: what it is given outlives it. Stop before the front door ends.
// Threads:  OnProcessEnded, Receive, retired from any; the rest from one.
class GivingSide final : private handover::GivingDaemon {
 public:
  struct Options {
    uint32_t generation = 1;
    std::chrono::milliseconds deadline{0};
    // That of handover.sock.
    const transport::SocketDirectory& directory;
  };

  // `older` is null where this generation took over from nobody, or outlives it.
  GivingSide(const Options& options, const SuccessionParts& parts, const Clock& clock, transport::FrontDoor& door,
             TakingSide* older)
      : options_(options), parts_(parts), clock_(clock), door_(door), older_(older) {}
  ~GivingSide() override { self_->Reset(); }

  absl::Status Start(UniqueFd listener) { return giver_.Start(std::move(listener)); }
  void Stop() { giver_.Stop(); }
  bool retired() const { return retired_.load(); }
  // After Stop: a newer generation has the sockets, or may take them.
  bool has_given() const { return giver_.has_given(); }
  // The last session of the process has ended here, or in a generation that is older still.
  void OnProcessEnded(const core::ProcessKey& process);
  // A connection that the newer generation has accepted, or an older one has handed back.
  void Receive(const v1::HandoverFile& listener, UniqueSocket socket) override;

 private:
  absl::StatusOr<Given> Give() override;
  void TakeBack() override;
  void Retire() override;
  void Granted(const v1::HandoverUse& use) override;
  void NarrowGrant(GrantId grant, const std::string& pod_uid) override;
  void OnCounters(const std::string& text) override { newer_counters_ = text; }
  std::vector<handover::Outgoing> Report() override;

  // What the registry calls, which may be late.
  class Self {
   public:
    explicit Self(GivingSide& side) : side_(&side) {}
    void OnProcessEnded(const core::ProcessKey& process);
    void Reset();

   private:
    Mutex mutex_;
    GivingSide* side_ RNICD_GUARDED_BY(mutex_);
  };

  core::Inheritance Begin();
  void EndRetirement();
  // Adds what the older generation may hold of the same owners, or takes it away.
  void Join(std::vector<core::HeldUse>& uses, bool adds) const;
  static void AddFiles(transport::HandedDoor door, Given& given);
  // The process has sessions here, or in a generation that is older still.
  bool Holds(const core::ProcessKey& process) const;
  bool IsOver() const;
  // What the newer generation's page shows of this one.
  void AddCounters(std::vector<handover::Outgoing>& packets) const;

  const std::shared_ptr<Self> self_ = std::make_shared<Self>(*this);
  const Options options_;
  const SuccessionParts parts_;
  const Clock& clock_;
  transport::FrontDoor& door_;
  TakingSide* const older_;
  core::Retirement retirement_{parts_.node, parts_.registry};
  // Used only by the giver's thread.
  Instant ends_;
  uint64_t reports_ = 0;
  // As the newer generation last reported them.
  std::string newer_counters_;
  std::atomic<bool> retired_{false};
  // Last: its thread uses the rest.
  handover::Giver giver_{*this, clock_, parts_.logger};
};

}  // namespace rnicd::app
