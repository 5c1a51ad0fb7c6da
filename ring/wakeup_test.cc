// Both ends in two threads that sleep whenever they can: if a wake-up is lost, one of them sleeps forever and the test
// hangs. Nothing here depends on time; the rounds are counted.
#include "ring/wakeup.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>

#include "base/files/unique_fd.h"
#include "ring/client_end.h"
#include "ring/daemon_end.h"
#include "ring/queue_end.h"
#include "ring/ring_fixture_test.h"

namespace rnicd::ring {
namespace {

// On a busy machine each round costs two turns of the scheduler, some milliseconds.
constexpr uint32_t kRequests = 6'000;
constexpr uint32_t kEnds = 1'000;
constexpr uint32_t kEntries = 8;

// The pipe of a ring or queue.
class Pipe {
 public:
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    read_.Reset(ends[0]);
    write_.Reset(ends[1]);
  }
  void Announce() const { EXPECT_EQ(write(write_.get(), "", 1), 1); }
  // Sleeps until there is a byte, and takes what there is.
  void Await() const {
    std::array<char, 64> bytes;
    EXPECT_GT(read(read_.get(), bytes.data(), bytes.size()), 0);
  }

 private:
  UniqueFd read_;
  UniqueFd write_;
};

// The eventfd of a ring; here the daemon's side reads it, because no client is hostile.
class Doorbell {
 public:
  Doorbell() : fd_(eventfd(0, EFD_CLOEXEC)) { EXPECT_TRUE(fd_.valid()); }
  void Ring() const { EXPECT_EQ(eventfd_write(fd_.get(), 1), 0); }
  void Await() const {
    eventfd_t count = 0;
    EXPECT_EQ(eventfd_read(fd_.get(), &count), 0);
  }

 private:
  UniqueFd fd_;
};

// One ring; the daemon's thread completes what it takes, and sleeps when there is nothing.
class RingPair {
 public:
  explicit RingPair(Wakeup wakeup) : wakeup_(wakeup) {}

  void Run() {
    std::thread daemon([this] { Serve(); });
    uint32_t next = 0;
    uint32_t read = 0;
    while (read < kRequests) {
      // Bursts of all lengths that fit.
      for (uint32_t burst = next % (kEntries + 1); next < kRequests && burst > 0 && Submit(next); --burst) {
        ++next;
      }
      if (next == read && Submit(next)) {
        ++next;
      }
      read += Await();
    }
    daemon.join();
    EXPECT_EQ(client_->unfinished(), 0u);
  }

 private:
  void Serve() {
    for (uint32_t served = 0; served < kRequests;) {
      daemon_.StayAwake();
      Submission entry;
      while (daemon_.Peek(&entry) == DaemonEnd::Next::kEntry) {
        daemon_.Pop();
        if (daemon_.Complete({.user_data = entry.user_data})) {
          pipe_.Announce();
        }
        ++served;
      }
      if (served < kRequests && !daemon_.PrepareToSleep()) {
        doorbell_.Await();
      }
    }
  }

  bool Submit(uint32_t number) {
    if (!client_->Reserve(0).has_value()) {
      return false;
    }
    bool doorbell = false;
    EXPECT_EQ(client_->Submit({}, &doorbell), kBeforeTheWrap + number);
    if (doorbell) {
      doorbell_.Ring();
    }
    return true;
  }

  // Reads every outcome that there is, at least one.
  uint32_t Await() {
    uint32_t read = 0;
    while (true) {
      while (client_->Poll().has_value()) {
        ++read;
      }
      if (read != 0) {
        return read;
      }
      if (wakeup_ == Wakeup::kFutex) {
        client_->Wait(kForever);
      } else {
        if (!client_->PrepareToWait()) {
          pipe_.Await();
        }
        client_->StopWaiting();
      }
    }
  }

  const Wakeup wakeup_;
  const RingGeometry geometry_ = MustMakeRing(kEntries);
  const SharedBytes memory_ = RingMemory(geometry_, kBeforeTheWrap);
  DaemonEnd daemon_{memory_.all(), geometry_};
  absl::StatusOr<ClientEnd> client_ = ClientEnd::Open(memory_.all());
  const Pipe pipe_;
  const Doorbell doorbell_;
};

TEST(RingWakeup, NoneIsLostWithAFutex) { RingPair(Wakeup::kFutex).Run(); }

TEST(RingWakeup, NoneIsLostWithAPipe) { RingPair(Wakeup::kPipe).Run(); }

// Runs both functions once for each round, at about the same time: neither thread sleeps before its round, because the
// one that is woken would come too late.
template <typename Daemon, typename Client>
void InRounds(uint32_t rounds, Daemon daemon, Client client) {
  std::atomic<uint32_t> begun = 0;
  std::atomic<uint32_t> ended = 0;
  std::thread thread([&] {
    for (uint32_t round = 0; round < rounds; ++round) {
      while (begun == round) {
        std::this_thread::yield();
      }
      daemon(round);
      ended = round + 1;
    }
  });
  for (uint32_t round = 0; round < rounds; ++round) {
    begun = round + 1;
    client(round);
    while (ended == round) {
      std::this_thread::yield();
    }
  }
  thread.join();
}

// So that the daemon comes before, while and after the client goes to sleep.
void Dawdle(uint32_t round) {
  for (std::atomic<uint32_t> left = round % 128 * 2; left != 0; --left) {
  }
}

TEST(RingWakeup, TheEndOfARingIsNotLost) {
  const RingGeometry geometry = MustMakeRing(kEntriesMin);
  std::vector<SharedBytes> memories;
  std::vector<std::unique_ptr<DaemonEnd>> rings;
  for (uint32_t round = 0; round < kEnds; ++round) {
    memories.push_back(RingMemory(geometry));
    rings.push_back(std::make_unique<DaemonEnd>(memories.back().all(), geometry));
  }
  InRounds(
      kEnds,
      [&](uint32_t round) {
        Dawdle(round);
        EXPECT_FALSE(rings[round]->End(7));
      },
      [&](uint32_t round) {
        absl::StatusOr<ClientEnd> client = ClientEnd::Open(memories[round].all());
        while (client->end_reason() == 0) {
          client->Wait(kForever);
        }
      });
}

TEST(QueueWakeup, NoCompletionIsLostWithAFutexOrPipe) {
  for (const Wakeup wakeup : {Wakeup::kFutex, Wakeup::kPipe}) {
    const QueueGeometry geometry = MakeQueueGeometry(kEntries);
    const SharedBytes memory = QueueMemory(geometry, kBeforeTheWrap);
    QueueWriter writer(memory.all(), geometry);
    const Pipe pipe;
    std::thread daemon([&] {
      for (uint64_t number = 0; number < kRequests;) {
        if (writer.unread() == writer.capacity()) {
          std::this_thread::yield();
        } else if (writer.Push({.request_context = number++})) {
          pipe.Announce();
        }
      }
    });
    absl::StatusOr<QueueReader> reader = QueueReader::Open(memory.all());
    for (uint64_t number = 0; number < kRequests;) {
      Completion completion;
      while (reader->Poll(&completion)) {
        ASSERT_EQ(completion.request_context, number++);
      }
      if (number == kRequests) {
        break;
      }
      if (wakeup == Wakeup::kFutex) {
        reader->Wait(kForever);
      } else {
        if (!reader->PrepareToWait()) {
          pipe.Await();
        }
        reader->StopWaiting();
      }
    }
    daemon.join();
  }
}

TEST(QueueWakeup, NoNotificationIsLost) {
  const QueueGeometry geometry = MakeQueueGeometry(kEntries);
  const SharedBytes memory = QueueMemory(geometry);
  QueueWriter writer(memory.all(), geometry);
  absl::StatusOr<QueueReader> reader = QueueReader::Open(memory.all());
  InRounds(
      2 * kEnds,
      [&](uint32_t round) {
        Dawdle(round);
        EXPECT_FALSE(writer.Notify());
      },
      [&](uint32_t round) {
        while (reader->notifications() == round) {
          reader->WaitForNotification(round, kForever);
        }
      });
}

TEST(QueueWakeup, NoFailureIsLost) {
  for (const bool for_notification : {false, true}) {
    const QueueGeometry geometry = MakeQueueGeometry(1);
    std::vector<SharedBytes> memories;
    std::vector<std::unique_ptr<QueueWriter>> queues;
    for (uint32_t round = 0; round < kEnds; ++round) {
      memories.push_back(QueueMemory(geometry));
      queues.push_back(std::make_unique<QueueWriter>(memories.back().all(), geometry));
    }
    InRounds(
        kEnds,
        [&](uint32_t round) {
          Dawdle(round);
          EXPECT_FALSE(queues[round]->Fail(7));
        },
        [&](uint32_t round) {
          absl::StatusOr<QueueReader> reader = QueueReader::Open(memories[round].all());
          while (reader->status() == 0) {
            for_notification ? reader->WaitForNotification(0, kForever) : reader->Wait(kForever);
          }
        });
  }
}

TEST(FutexWait, ReturnsWhenTheWordHasChangedBefore) {
  uint32_t word = 1;
  FutexWait(word, 0, kForever);
  FutexWait(word, 1, std::chrono::milliseconds(1));
}

}  // namespace
}  // namespace rnicd::ring
