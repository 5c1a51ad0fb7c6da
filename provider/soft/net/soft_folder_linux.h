#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "provider/soft/net/soft_link_linux.h"
#include "provider/soft/net/soft_network.h"

namespace rnicd::provider {

// A network of the daemons that have a socket in the same folder, each named by the first address of its cards. A
// daemon links itself to all others there when it opens the folder, so that it needs no connect(2) later; a link that
// is lost comes back when one of the two starts again. Only daemons of the same user are met.
// Threads: Open before there are others; see SoftNetwork.
class SoftFolder final : public SoftNetwork {
 public:
  // Between two pings; a peer that has sent nothing in so many of them is lost.
  struct Patience {
    std::chrono::milliseconds tick{1000};
    uint64_t silent_ticks = 10;
  };
  // `folder` exists; `hosts` are the addresses of this daemon's cards. Errors: kFailedPrecondition where others may
  // write to the folder, or another daemon has the first address; kUnavailable, naming the path.
  static absl::StatusOr<std::shared_ptr<SoftFolder>> Open(const std::string& folder, std::vector<IpAddress> hosts,
                                                          Patience patience);
  static absl::StatusOr<std::shared_ptr<SoftFolder>> Open(const std::string& folder, std::vector<IpAddress> hosts) {
    return Open(folder, std::move(hosts), Patience{});
  }
  ~SoftFolder() override { SoftFolder::Stop(); }
  SoftFolder(const SoftFolder&) = delete;
  SoftFolder& operator=(const SoftFolder&) = delete;

  void Start(Receiver& receiver) override;
  void Stop() override;
  uint64_t Find(const IpAddress& host) const override;
  bool Send(uint64_t link, const SoftFrame& frame) override;
  void Taken(uint64_t link) override;

 private:
  using Links = std::map<uint64_t, std::shared_ptr<SoftLink>>;

  // What epoll calls those two by; links have numbers from 1.
  static constexpr uint64_t kStopKey = 0;
  static constexpr uint64_t kListenerKey = UINT64_MAX;
  static constexpr size_t kLinksMax = 256;

  SoftFolder(std::vector<IpAddress> hosts, Patience patience) : hosts_(std::move(hosts)), patience_(patience) {}

  static bool IsOwnUser(int socket);
  // Opening.
  absl::Status Join(const std::string& folder);
  absl::Status LinkTo(const std::string& path, const IpAddress& host);
  absl::Status Listen();
  // Null when the system refuses.
  std::shared_ptr<SoftLink> AddLink(UniqueFd socket);

  // The network's thread.
  void Run();
  void Accept();
  // Once.
  void WatchListener();
  void OnReady(uint64_t number, uint32_t events);
  // False when the link is to be lost.
  bool ReadFrames(SoftLink& link);
  bool TakeHello(SoftLink& link, const SoftHello& hello);
  void OnTick();
  void Lose(uint64_t number);
  std::shared_ptr<SoftLink> LinkOf(uint64_t number) const;
  Links AllLinks() const;

  const std::vector<IpAddress> hosts_;
  const Patience patience_;
  UniqueFd epoll_;
  UniqueFd stop_;
  // That of this daemon, and its name.
  UniqueFd listener_;
  std::string path_;
  Receiver* receiver_ = nullptr;
  std::thread thread_;
  // Ticks since the start.
  uint64_t ticks_ = 0;
  Instant next_tick_;

  mutable Mutex mutex_;
  uint64_t last_number_ RNICD_GUARDED_BY(mutex_) = 0;
  Links links_ RNICD_GUARDED_BY(mutex_);
  std::map<IpAddress, uint64_t> routes_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
