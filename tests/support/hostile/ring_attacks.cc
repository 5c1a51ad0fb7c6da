#include "tests/support/hostile/ring_attacks.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <utility>

#include "ring/queue_end.h"
#include "ring/shared_word.h"
#include "tests/support/calls/fd_exchange.h"
#include "tests/support/hostile/ring_attacker.h"

namespace rnicd::test {
namespace {

using ring::LoadAcquire;
using ring::StoreInOrder;

constexpr int kActions = 200;

// --- doorbells ---

void RingDoorbells(RingAttacker& attacker) {
  for (int action = 0; action < kActions; ++action) {
    attacker.ring().RingDoorbell();
  }
}

// The counter of the eventfd full, read, and without O_NONBLOCK for both sides; its descriptor duplicated and closed.
void PlayWithTheCounter(RingAttacker& attacker) {
  const int doorbell = attacker.ring().doorbell();
  for (int action = 0; action < kActions; ++action) {
    const uint64_t most = UINT64_MAX - 1;
    uint64_t counter = 0;
    (void)!write(doorbell, &most, sizeof(most));
    fcntl(doorbell, F_SETFL, 0);
    (void)!read(doorbell, &counter, sizeof(counter));
    (void)!write(doorbell, &most, sizeof(most));
    close(dup(doorbell));
    fcntl(doorbell, F_SETFL, O_NONBLOCK);
  }
}

// --- indices ---

void WriteImpossibleIndices(RingAttacker& attacker) {
  ring::RingHeader& header = attacker.ring().header();
  const uint32_t jumps[] = {1000, UINT32_MAX, 1U << 31, attacker.Any()};
  const uint32_t jump = jumps[attacker.Below(std::size(jumps))];
  attacker.SubmitNops(static_cast<uint32_t>(attacker.Below(4)));
  StoreInOrder(attacker.Below(2) == 0 ? header.submission_tail : header.completion_head, jump);
  StoreInOrder(header.submission_tail, LoadAcquire(header.submission_tail) + 1);
  attacker.ring().RingDoorbell();
  attacker.Reopen();
}

void TakeEntriesBack(RingAttacker& attacker) {
  ring::RingHeader& header = attacker.ring().header();
  const uint32_t head = LoadAcquire(header.submission_head);
  for (int action = 0; action < kActions; ++action) {
    StoreInOrder(header.submission_tail, head + 1);
    attacker.ring().RingDoorbell();
    StoreInOrder(header.submission_tail, head);
  }
  if (attacker.HasEnded()) {
    attacker.Reopen();
  }
}

// --- entries ---

void SubmitAnyBytes(RingAttacker& attacker) {
  for (int action = 0; action < kActions; ++action) {
    ring::Submission entry = attacker.SomeEntry();
    // Some bytes of it are any others.
    auto* const bytes = reinterpret_cast<unsigned char*>(&entry);
    for (uint64_t changes = attacker.Below(4); changes > 0; --changes) {
      bytes[attacker.Below(sizeof(entry))] = static_cast<unsigned char>(attacker.Any());
    }
    attacker.FillPayload();
    attacker.ReadOutcomes();
    attacker.Submit(entry);
  }
  if (attacker.HasEnded()) {
    attacker.Reopen();
  }
}

// Chains that are refused in every way, and nobody reads what becomes of them.
void PostWithoutOutcome(RingAttacker& attacker) {
  for (int action = 0; action < kActions; ++action) {
    ring::Submission entry = attacker.SomeEntry();
    entry.opcode = ring::Opcode::kPost;
    entry.flags = ring::kFlagNoOutcome;
    entry.count = attacker.Below(2) == 0 ? ring::kChainMax : attacker.Edge();
    attacker.FillPayload();
    attacker.Submit(entry);
  }
  if (attacker.HasEnded()) {
    attacker.Reopen();
  }
}

void NamePayloadOutside(RingAttacker& attacker) {
  for (int action = 0; action < kActions; ++action) {
    ring::Submission entry = attacker.SomeEntry();
    entry.payload_offset = attacker.Edge();
    entry.payload_bytes = attacker.Edge();
    entry.result_offset = attacker.Edge();
    entry.result_bytes = attacker.Edge();
    attacker.ReadOutcomes();
    attacker.Submit(entry);
  }
  if (attacker.HasEnded()) {
    attacker.Reopen();
  }
}

// Entries and payload, all the time.
void RewriteWhatIsRead(RawRing& ring, uint32_t random) {
  const size_t offset =
      ring.description().submission_offset + size_t{random % ring.description().entries} * ring::kEntryBytes;
  std::memcpy(ring.bytes().data() + offset + size_t{random % ring::kEntryBytes} / 4 * 4, &random, sizeof(random));
  std::memcpy(ring.payload().data() + size_t{random % 512} / 4 * 4, &random, sizeof(random));
}

void RewriteWhileJudged(RingAttacker& attacker) {
  attacker.DisturbWith(RewriteWhatIsRead);
  for (int action = 0; action < kActions; ++action) {
    attacker.ReadOutcomes();
    attacker.Submit(attacker.SomeEntry());
  }
  if (attacker.HasEnded()) {
    attacker.Reopen();
  }
}

void ReadNoOutcomes(RingAttacker& attacker) {
  ring::RingHeader& header = attacker.ring().header();
  StoreInOrder(header.submission_tail, LoadAcquire(header.submission_head) + attacker.ring().description().entries);
  RingDoorbells(attacker);
}

// --- words and descriptors ---

// How it wants to be woken, where it runs, and words that are the daemon's.
void Scribble(RawRing& ring, uint32_t random) {
  ring::RingHeader& header = ring.header();
  StoreInOrder(header.completion_wakeup, random % 4);
  StoreInOrder(header.client_cpu, random % 3);
  StoreInOrder(header.submission_wakeup, random % 2);
  StoreInOrder(header.submission_head, random);
  StoreInOrder(header.completion_wakes, random);
  StoreInOrder(header.daemon_cpu, random);
}

void ToggleWakeups(RingAttacker& attacker) {
  attacker.DisturbWith(Scribble);
  attacker.SubmitNops(kActions);
  if (attacker.HasEnded()) {
    attacker.Reopen();
  }
}

void NeverReadThePipe(RingAttacker& attacker) {
  StoreInOrder(attacker.ring().header().completion_wakeup, static_cast<uint32_t>(ring::Wakeup::kPipe));
  (void)send(attacker.ring().pipe(), "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  attacker.SubmitNops(kActions);
  if (attacker.Below(8) == 0) {
    shutdown(attacker.ring().pipe(), SHUT_RDWR);
  }
}

// Once the daemon has completed more entries than the ring has room for, it cannot believe a client that has read none.
// Before that a slow daemon may find the zeros possible.
void PunchHoles(RingAttacker& attacker) {
  ring::RingHeader& header = attacker.ring().header();
  while (LoadAcquire(header.completion_tail) <= attacker.ring().description().entries && !attacker.HasEnded()) {
    attacker.SubmitNops(kActions);
  }
  fallocate(attacker.ring().memory(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
            static_cast<off_t>(attacker.ring().bytes().size()));
  // It cannot know whether the ring has ended.
  attacker.Submit({});
  attacker.Reopen();
}

// A child that has the mapping and the eventfd, too, and lives as long as the attacker.
void ShareWithAChild(RingAttacker& attacker) {
  static pid_t child = 0;
  if (child == 0) {
    const pid_t parent = getpid();
    // Not fork(), whose handlers are gRPC's.
    child = _Fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (uint32_t number = 0; getppid() == parent; ++number) {
        RewriteWhatIsRead(attacker.ring(), number * 2654435761U);
        StoreInOrder(attacker.ring().header().submission_tail,
                     LoadAcquire(attacker.ring().header().submission_head) + number % 3);
        attacker.ring().RingDoorbell();
      }
      _exit(0);
    }
  }
  attacker.SubmitNops(kActions);
  if (attacker.HasEnded()) {
    attacker.Reopen();
  }
}

// The ring's own file, as memory of the attacker's.
void ImportTheRing(RingAttacker& attacker) {
  v1::ImportMemoryRequest request;
  request.set_size(attacker.ring().bytes().size());
  const auto announced = attacker.client().Call(&MemoryStub::ImportMemory, request);
  (void)SendFd(attacker.fd_socket(), announced.response.fd_ticket(), attacker.ring().memory());
  v1::SealMemoryRequest seal;
  seal.set_memory_id(announced.response.memory_id());
  attacker.client().Call(&MemoryStub::SealMemory, seal);
  fcntl(attacker.ring().memory(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
  attacker.SubmitNops(kActions);
  v1::ReleaseMemoryRequest release;
  release.set_memory_id(announced.response.memory_id());
  attacker.client().Call(&MemoryStub::ReleaseMemory, release);
  attacker.Reopen();
}

// --- many rings ---

void OpenAndClose(RingAttacker& attacker) {
  for (int action = 0; action < 4; ++action) {
    attacker.Submit({});
    attacker.Reopen();
  }
}

// Up to the quota, and all of them busy.
void KeepManyAwake(RingAttacker& attacker) {
  static std::vector<std::unique_ptr<RawRing>> rings;
  static uint32_t tail = 0;
  if (rings.empty()) {
    while (auto ring = RawRing::Open(attacker.client(), attacker.fd_socket(), ring::kEntriesMin)) {
      rings.push_back(std::move(ring));
    }
  }
  // One entry at a time: at most two, if the thread is slow.
  for (int action = 0; action < 4; ++action, ++tail) {
    for (const auto& ring : rings) {
      StoreInOrder(ring->header().completion_head, LoadAcquire(ring->header().completion_tail));
      StoreInOrder(ring->header().submission_tail, LoadAcquire(ring->header().submission_head) + 1);
      ring->RingDoorbell();
    }
  }
}

// --- mapped completion queues ---

void ScribbleOverAQueue(RingAttacker& attacker) {
  v1::CreateCqRequest create;
  create.set_adapter_id(attacker.adapter_id());
  create.set_cq_depth(8);
  create.set_mapped(true);
  const auto created = attacker.client().Call(&QueueStub::CreateCq, create);
  const UniqueFd memory = FetchDescriptor(attacker.fd_socket(), created.response.mapped().memory_ticket());
  const SharedMapping mapping(memory.get(), created.response.mapped().file_bytes());
  v1::CreateQpRequest pair;
  pair.set_pd_id(attacker.pd_id());
  pair.set_receive_cq_id(created.response.cq_id());
  pair.set_initiator_cq_id(created.response.cq_id());
  pair.set_receive_queue_depth(8);
  pair.set_initiator_queue_depth(8);
  v1::PostRequest post;
  post.set_qp_id(attacker.client().Call(&QueueStub::CreateQp, pair).response.qp_id());
  for (int index = 0; index < 8; ++index) {
    post.add_requests()->mutable_receive();
  }
  attacker.client().Call(&QueueStub::Post, post);
  if (!mapping.bytes().empty()) {
    auto& header = *reinterpret_cast<ring::QueueHeader*>(mapping.bytes().data());
    for (uint32_t* const word : {&header.head, &header.wakeup, &header.notification_wakeup, &header.tail}) {
      StoreInOrder(*word, attacker.Any() >> attacker.Below(32));
    }
    if (attacker.Below(2) == 0) {
      fallocate(memory.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                static_cast<off_t>(mapping.bytes().size()));
    }
  }
  v1::FlushRequest flush;
  flush.set_qp_id(post.qp_id());
  attacker.client().Call(&QueueStub::Flush, flush);
  v1::CloseQpRequest close_pair;
  close_pair.set_qp_id(post.qp_id());
  attacker.client().Call(&QueueStub::CloseQp, close_pair);
  v1::CloseCqRequest close;
  close.set_cq_id(created.response.cq_id());
  attacker.client().Call(&QueueStub::CloseCq, close);
}

struct Attack {
  std::string name;
  void (*round)(RingAttacker&);
};

const Attack kAttacks[] = {
    {"doorbells", RingDoorbells},
    {"counter", PlayWithTheCounter},
    {"impossible-indices", WriteImpossibleIndices},
    {"entries-taken-back", TakeEntriesBack},
    {"any-bytes", SubmitAnyBytes},
    {"without-outcome", PostWithoutOutcome},
    {"payload-outside", NamePayloadOutside},
    {"rewritten-while-judged", RewriteWhileJudged},
    {"no-outcome-read", ReadNoOutcomes},
    {"wakeups-toggled", ToggleWakeups},
    {"pipe-not-read", NeverReadThePipe},
    {"holes", PunchHoles},
    {"shared-with-a-child", ShareWithAChild},
    {"imported", ImportTheRing},
    {"opened-and-closed", OpenAndClose},
    {"many-awake", KeepManyAwake},
    {"queue-scribbled-over", ScribbleOverAQueue},
};

}  // namespace

std::vector<std::string> RingAttackNames() {
  std::vector<std::string> names;
  for (const Attack& attack : kAttacks) {
    names.push_back(attack.name);
  }
  return names;
}

uint64_t RunRingAttack(const std::string& name, const std::string& socket_dir, uint64_t seed,
                       const std::function<bool(uint64_t rounds)>& go_on) {
  const auto* const attack =
      std::find_if(std::begin(kAttacks), std::end(kAttacks), [&](const Attack& each) { return each.name == name; });
  RingAttacker attacker(socket_dir, seed);
  if (attack == std::end(kAttacks) || !attacker.ready()) {
    return 0;
  }
  uint64_t rounds = 0;
  do {
    attack->round(attacker);
    ++rounds;
  } while (go_on(rounds));
  return rounds;
}

}  // namespace rnicd::test
