#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/manual_clock_fake.h"
#include "base/mutex.h"
#include "daemon/handover/giver.h"
#include "daemon/handover/predecessor.h"

namespace rnicd::handover {

// What a daemon was told, in order.
class Recorder {
 public:
  void Record(std::string what) {
    MutexLock lock(mutex_);
    heard_.push_back(std::move(what));
    changed_.NotifyAll();
  }
  // Waits until this was recorded.
  void WaitFor(const std::string& what) {
    MutexLock lock(mutex_);
    while (std::ranges::find(heard_, what) == heard_.end()) {
      changed_.Wait(mutex_);
    }
  }
  // Waits for so many records.
  void WaitForCount(size_t count) {
    MutexLock lock(mutex_);
    while (heard_.size() < count) {
      changed_.Wait(mutex_);
    }
  }
  std::vector<std::string> heard() {
    MutexLock lock(mutex_);
    return heard_;
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<std::string> heard_ RNICD_GUARDED_BY(mutex_);
};

// A daemon that only records what it is told.
class RecordingGiver final : public GivingDaemon, public Recorder {
 public:
  absl::StatusOr<Given> Give() override {
    Record("give");
    if (!refusal.ok()) {
      return refusal;
    }
    Given given;
    given.contents.set_generation(7);
    for (int count = 0; count < files; ++count) {
      given.contents.add_files()->set_kind(v1::HANDOVER_FILE_KIND_WORKLOADS);
      given.files.emplace_back(dup(STDERR_FILENO));
    }
    return given;
  }
  void TakeBack() override { Record("take back"); }
  void Retire() override { Record("retire"); }
  void Receive(const v1::HandoverFile& /*listener*/, UniqueSocket socket) override {
    char byte = 0;
    Record(read(socket.get(), &byte, 1) == 1 ? std::string("received ") + byte : "received nothing");
  }
  void Granted(const v1::HandoverUse& use) override { Record("granted " + use.held(0).tenant()); }
  void NarrowGrant(GrantId grant, const std::string& pod_uid) override {
    Record("grant " + std::to_string(grant.value) + pod_uid);
  }
  void OnCounters(const std::string& text) override { Record("counters " + text); }
  std::vector<Outgoing> Report() override {
    std::vector<Outgoing> packets;
    if (has_counters) {
      Record(last_counters_.expired() ? "report" : "the last counters wait");
      packets.emplace_back().message.mutable_counters();
      packets.back().sockets.push_back(std::make_shared<const UniqueSocket>(dup(STDERR_FILENO)));
      last_counters_ = packets.back().sockets.front();
    }
    return packets;
  }

  absl::Status refusal;
  int files = 3;
  std::atomic<bool> has_counters{false};

 private:
  std::weak_ptr<const UniqueSocket> last_counters_;
};

class HandoverTest : public testing::Test {
 protected:
  HandoverTest() {
    std::string name = std::filesystem::temp_directory_path() / "rnicd-handover-XXXXXX";
    folder_ = mkdtemp(name.data());
    EXPECT_TRUE(giver_.Start(Listen()).ok());
  }
  ~HandoverTest() override {
    giver_.Stop();
    std::filesystem::remove_all(folder_);
  }

  UniqueFd Listen() const {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    (folder_ + "/" + kSocketName).copy(address.sun_path, sizeof(address.sun_path) - 1);
    UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener.get(), 8), 0);
    return listener;
  }
  std::unique_ptr<Predecessor> Connect() const {
    auto connected = Predecessor::Connect(folder_);
    EXPECT_TRUE(connected.ok()) << connected.status();
    return connected.ok() ? *std::move(connected) : nullptr;
  }

  std::string folder_;
  ManualClock clock_;
  const log::Logger logger_{log::Options{.level = log::Level::kError}};
  RecordingGiver older_;
  Giver giver_{older_, clock_, logger_};
};

}  // namespace rnicd::handover
