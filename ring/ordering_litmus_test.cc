// Litmus tests: the two sides act at the same moment, many times, and some results must never occur. They call the code
// of the ends, not a copy, and no side sleeps, so that a lost wake-up is a result and not a hang.
//
// Without the full order between a store and the next load (StoreInOrder as a release) those of wake-ups fail, also on
// x86. An entry before its bytes needs a processor that reorders two stores or two loads, which x86 does not, and
// neither does an emulated arm64 on it (which fails those of wake-ups, by a mistake of qemu). docs/RINGS.md has what
// was tried.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "ring/client_end.h"
#include "ring/daemon_end.h"
#include "ring/processor.h"
#include "ring/queue_end.h"
#include "ring/ring_fixture_test.h"
#include "ring/shared_word.h"

namespace rnicd::ring {
namespace {

// Both threads need a processor at the same time, which a busy machine seldom gives them: then there are fewer rounds.
constexpr uint32_t kRounds = 20'000;
constexpr std::chrono::seconds kLongest{2};
constexpr uint32_t kMessages = 10'000;
constexpr uint32_t kPayload = 64;

// Lets one side begin up to some hundred cycles after the other, and the next round the other way round.
void Linger(uint32_t cycles) {
  for (uint32_t turn = 0; turn < cycles; ++turn) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}

// Reads a word of every line, so that this processor has it: a load is then at once, and a store of the other side has
// to wait until this processor has given the line away. That is when the load behind it overtakes it, if it may.
void Touch(std::span<std::byte> memory) {
  for (size_t offset = 0; offset < memory.size(); offset += kLineBytes) {
    LoadRelaxed(reinterpret_cast<uint32_t&>(memory[offset]));
  }
}

// A number that one thread raises and another waits for.
class Step {
 public:
  void Reach(uint32_t number) { number_.store(number, std::memory_order_release); }
  void Await(uint32_t number) const {
    for (uint32_t turns = 0; number_.load(std::memory_order_acquire) != number;) {
      Relax();
      // The other thread may have no processor of its own.
      if (++turns % 256 == 0) {
        std::this_thread::yield();
      }
    }
  }

 private:
  alignas(kLineBytes) std::atomic<uint32_t> number_ = 0;
};

// Runs `daemon` in a thread and `client` in another in the same moment, and `check` once both have ended; the number
// of rounds in which it answered false. `shared` begins with the words that both use.
template <typename Daemon, typename Client, typename Check>
uint32_t Violations(std::span<std::byte> shared, Daemon daemon, Client client, Check check) {
  const std::span<std::byte> words = shared.first(std::min(shared.size(), sizeof(RingHeader)));
  Step begun;
  Step ready;
  Step together;
  Step ended;
  std::atomic<bool> over = false;
  std::thread thread([&] {
    for (uint32_t round = 1; begun.Await(round), !over; ++round) {
      Touch(words);
      ready.Reach(round);
      together.Await(round);
      Linger(round % 7 * 4);
      daemon();
      ended.Reach(round);
    }
  });
  uint32_t violations = 0;
  uint32_t round = 1;
  for (const auto end = std::chrono::steady_clock::now() + kLongest;
       round <= kRounds && std::chrono::steady_clock::now() < end; ++round) {
    begun.Reach(round);
    ready.Await(round);
    Touch(words);
    together.Reach(round);
    Linger(round % 31 * 4);
    client();
    ended.Await(round);
    violations += check() ? 0 : 1;
  }
  over = true;
  begun.Reach(round);
  thread.join();
  return violations;
}

TEST(Litmus, TwoStoresInOrderAreSeenByOneOfTheTwoLoads) {
  struct Words {
    alignas(kLineBytes) uint32_t index = 0;
    alignas(kLineBytes) uint32_t flag = 0;
  } words;
  const std::span<std::byte> shared(reinterpret_cast<std::byte*>(&words), sizeof(words));
  uint32_t index = 0;
  uint32_t flag = 0;
  EXPECT_EQ(Violations(
                shared,
                [&] {
                  StoreInOrder(words.flag, 1);
                  index = LoadInOrder(words.index);
                },
                [&] {
                  StoreInOrder(words.index, 1);
                  flag = LoadInOrder(words.flag);
                },
                [&] {
                  const bool seen = std::exchange(index, 0) != 0 || std::exchange(flag, 0) != 0;
                  index = flag = words.index = words.flag = 0;
                  return seen;
                }),
            0u);
}

// A ring whose two ends belong to two threads.
struct Ring {
  explicit Ring(uint32_t entries) : geometry(MustMakeRing(entries)), memory(RingMemory(geometry, kBeforeTheWrap)) {}
  // Has the daemon take and complete everything, and the client read it.
  void Drain() {
    daemon.StayAwake();
    for (Submission entry; daemon.Peek(&entry) == DaemonEnd::Next::kEntry;) {
      daemon.Pop();
      daemon.Complete({.user_data = entry.user_data});
    }
    while (client->Poll().has_value()) {
    }
  }

  const RingGeometry geometry;
  const SharedBytes memory;
  DaemonEnd daemon{memory.all(), geometry};
  absl::StatusOr<ClientEnd> client = ClientEnd::Open(memory.all());
};

TEST(Litmus, AnEntryIsSeenOrItsDoorbellIsRung) {
  Ring ring(2);
  ring.Drain();
  bool seen = false;
  bool rung = false;
  EXPECT_EQ(Violations(
                ring.memory.all(), [&] { seen = ring.daemon.PrepareToSleep(); },
                [&] {
                  if (ring.client->Reserve(0).has_value()) {
                    ring.client->Submit({}, &rung);
                  }
                },
                [&] {
                  ring.Drain();
                  return seen || rung;
                }),
            0u);
}

// The client's answer to "may I sleep?", and the daemon's to "must I wake it?".
struct Sleeper {
  // Announces that it sleeps; true if it must not.
  bool Announce(auto& end, Wakeup wakeup) {
    if (wakeup == Wakeup::kPipe) {
      return end.PrepareToWait();
    }
    wakes = end.PrepareToSleep();
    return !wakes.has_value();
  }
  // True if FutexWait returns at once, or later by a wake-up.
  bool IsWoken(uint32_t& word) const { return wakes.has_value() && LoadAcquire(word) != *wakes; }

  std::optional<uint32_t> wakes;
};

TEST(Litmus, AnOutcomeIsSeenOrItsClientIsWoken) {
  for (const Wakeup wakeup : {Wakeup::kFutex, Wakeup::kPipe}) {
    Ring ring(2);
    auto& header = ring.memory.header<RingHeader>();
    Sleeper sleeper;
    bool doorbell = false;
    bool woken = false;
    bool seen = false;
    Submission entry;
    const auto prepare = [&] {
      EXPECT_TRUE(ring.client->Reserve(0).has_value());
      ring.client->Submit({}, &doorbell);
      EXPECT_EQ(ring.daemon.Peek(&entry), DaemonEnd::Next::kEntry);
      ring.daemon.Pop();
    };
    prepare();
    EXPECT_EQ(Violations(
                  ring.memory.all(), [&] { woken = ring.daemon.Complete({.user_data = entry.user_data}); },
                  [&] { seen = sleeper.Announce(*ring.client, wakeup); },
                  [&] {
                    const bool good = seen || woken || sleeper.IsWoken(header.completion_wakes);
                    ring.client->StopWaiting();
                    EXPECT_TRUE(ring.client->Poll().has_value());
                    prepare();
                    return good;
                  }),
              0u);
  }
}

TEST(Litmus, TheEndOfARingIsSeenOrItsClientIsWoken) {
  const RingGeometry geometry = MustMakeRing(kEntriesMin);
  const SharedBytes memory = RingMemory(geometry);
  auto& header = memory.header<RingHeader>();
  absl::StatusOr<ClientEnd> client = absl::UnknownError("not yet");
  std::optional<DaemonEnd> daemon;
  bool woken = false;
  bool seen = false;
  const auto prepare = [&] {
    header.end_reason = 0;
    daemon.emplace(memory.all(), geometry);
    client = ClientEnd::Open(memory.all());
  };
  prepare();
  EXPECT_EQ(Violations(
                memory.all(), [&] { woken = daemon->End(7); }, [&] { seen = client->PrepareToWait(); },
                [&] {
                  const bool good = seen || woken;
                  client->StopWaiting();
                  prepare();
                  return good;
                }),
            0u);
}

TEST(Litmus, ACompletionIsSeenOrItsClientIsWoken) {
  for (const Wakeup wakeup : {Wakeup::kFutex, Wakeup::kPipe}) {
    const QueueGeometry geometry = MakeQueueGeometry(2);
    const SharedBytes memory = QueueMemory(geometry, kBeforeTheWrap);
    QueueWriter writer(memory.all(), geometry);
    absl::StatusOr<QueueReader> reader = QueueReader::Open(memory.all());
    Sleeper sleeper;
    bool woken = false;
    bool seen = false;
    EXPECT_EQ(Violations(
                  memory.all(), [&] { woken = writer.Push({}); }, [&] { seen = sleeper.Announce(*reader, wakeup); },
                  [&] {
                    const bool good = seen || woken || sleeper.IsWoken(memory.header<QueueHeader>().wakes);
                    reader->StopWaiting();
                    Completion completion;
                    EXPECT_TRUE(reader->Poll(&completion));
                    return good;
                  }),
              0u);
  }
}

TEST(Litmus, TheFailureOfAQueueIsSeenOrItsClientIsWoken) {
  const QueueGeometry geometry = MakeQueueGeometry(2);
  const SharedBytes memory = QueueMemory(geometry);
  QueueWriter writer(memory.all(), geometry);
  absl::StatusOr<QueueReader> reader = QueueReader::Open(memory.all());
  bool woken = false;
  bool seen = false;
  EXPECT_EQ(Violations(
                memory.all(), [&] { woken = writer.Fail(7); }, [&] { seen = reader->PrepareToWait(); },
                [&] {
                  const bool good = seen || woken;
                  reader->StopWaiting();
                  memory.header<QueueHeader>().status = 0;
                  return good;
                }),
            0u);
}

// Different in every byte from one number to the next.
uint64_t Pattern(uint64_t number) { return (number + 1) * 0x0101010101010101u; }

void Fill(std::span<std::byte> bytes, uint64_t pattern) {
  for (size_t offset = 0; offset < bytes.size(); offset += sizeof(pattern)) {
    std::memcpy(&bytes[offset], &pattern, sizeof(pattern));
  }
}

bool Holds(std::span<const std::byte> bytes, uint64_t pattern) {
  for (size_t offset = 0; offset < bytes.size(); offset += sizeof(pattern)) {
    if (std::memcmp(&bytes[offset], &pattern, sizeof(pattern)) != 0) {
      return false;
    }
  }
  return true;
}

// The daemon's side of messages through a ring: entries and payloads that are not those of their number.
uint32_t ServeMessages(Ring& ring) {
  uint32_t wrong = 0;
  for (uint32_t number = 0; number < kMessages;) {
    Submission entry;
    if (ring.daemon.Peek(&entry) != DaemonEnd::Next::kEntry) {
      std::this_thread::yield();
      continue;
    }
    const uint64_t pattern = Pattern(number);
    std::array<uint64_t, kPayload / sizeof(uint64_t)> payload;
    ring.daemon.CopyPayload(entry.payload_offset, kPayload, payload);
    const bool right =
        entry.object == pattern && entry.length == pattern && Holds(std::as_bytes(std::span(payload)), pattern);
    wrong += right ? 0 : 1;
    ring.daemon.Pop();
    // In the place of the payload, so that a client that reads too early finds the old bytes.
    Fill(std::as_writable_bytes(std::span(payload)), ~pattern);
    ring.daemon.WriteResult(entry.payload_offset, std::as_bytes(std::span(payload)));
    ring.daemon.Complete({.user_data = entry.user_data, .base_or_limit = ~pattern, .requested = ~pattern});
    ++number;
  }
  return wrong;
}

// Both directions and the reuse of entries, completions and payload: with two entries every one is used again at once.
TEST(Litmus, NoEntryAndNoOutcomeIsSeenBeforeItsBytes) {
  for (const uint32_t entries : {2u, 64u}) {
    Ring ring(entries);
    uint32_t wrong_entries = 0;
    std::thread daemon([&] { wrong_entries = ServeMessages(ring); });
    uint32_t wrong_outcomes = 0;
    uint32_t sent = 0;
    std::vector<uint32_t> offsets(entries);
    for (uint32_t read = 0; read < kMessages;) {
      if (sent < kMessages) {
        if (const std::optional<uint32_t> offset = ring.client->Reserve(kPayload); offset.has_value()) {
          bool doorbell = false;
          Fill(ring.client->payload(*offset, kPayload), Pattern(sent));
          offsets[sent % entries] = *offset;
          ring.client->Submit(
              {.object = Pattern(sent), .length = Pattern(sent), .payload_offset = *offset, .payload_bytes = kPayload},
              &doorbell);
          ++sent;
        }
      }
      if (const std::optional<Outcome> outcome = ring.client->Poll(); outcome.has_value()) {
        const uint64_t expected = ~Pattern(read);
        const bool right = outcome->base_or_limit == expected && outcome->requested == expected &&
                           Holds(ring.client->payload(offsets[read % entries], kPayload), expected);
        wrong_outcomes += right ? 0 : 1;
        ++read;
      } else {
        std::this_thread::yield();
      }
    }
    daemon.join();
    EXPECT_EQ(wrong_entries, 0u) << entries << " entries";
    EXPECT_EQ(wrong_outcomes, 0u) << entries << " entries";
  }
}

TEST(Litmus, NoCompletionIsSeenBeforeItsBytes) {
  const QueueGeometry geometry = MakeQueueGeometry(2);
  const SharedBytes memory = QueueMemory(geometry, kBeforeTheWrap);
  QueueWriter writer(memory.all(), geometry);
  std::thread daemon([&] {
    for (uint64_t number = 0; number < kMessages;) {
      if (writer.unread() == writer.capacity()) {
        std::this_thread::yield();
      } else {
        const auto bytes = static_cast<uint32_t>(Pattern(number));
        writer.Push({.bytes = bytes, .qp_context = Pattern(number), .request_context = Pattern(number)});
        ++number;
      }
    }
  });
  absl::StatusOr<QueueReader> reader = QueueReader::Open(memory.all());
  uint32_t wrong = 0;
  for (uint64_t number = 0; number < kMessages;) {
    Completion completion;
    if (!reader->Poll(&completion)) {
      std::this_thread::yield();
      continue;
    }
    const uint64_t pattern = Pattern(number++);
    const bool right = completion.bytes == static_cast<uint32_t>(pattern) && completion.qp_context == pattern &&
                       completion.request_context == pattern;
    wrong += right ? 0 : 1;
  }
  daemon.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace rnicd::ring
