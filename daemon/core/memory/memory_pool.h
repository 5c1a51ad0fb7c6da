#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/mutex.h"
#include "base/system/os.h"
#include "daemon/core/memory/fresh_memory.h"
#include "daemon/core/tenant/ledger.h"

namespace rnicd::core {

// Files of one size that the pool keeps.
struct PoolClass {
  PageChoice pages;
  // The pool raises it to whole pages of the kernel's.
  uint64_t file_bytes = 0;
  uint32_t files = 0;
};

// The page size and NUMA node that a session requests. Default: the largest page size that divides the length; any
// node.
struct PageWish {
  std::optional<uint64_t> page_bytes;
  std::optional<uint32_t> numa_node;
};

// Memory that is prepared before it is requested: files of the daemon, with their pages made and mapped. A file is
// given to one client only: when the client releases it, its pages go back to the kernel, never to another client. The
// files count in the node's limit of memory_bytes, and are freed when sessions request that memory.
// Lifetime: outlives the sessions and the PoolRefiller.
// Threads:  safe; refilling is for one thread.
// Source:   ADR 0033.
class MemoryPool {
 public:
  // State of a class.
  struct ClassState {
    PoolClass wanted;
    uint32_t ready = 0;
  };
  // Allocations that asked for pages of this size, or got them.
  struct Service {
    uint64_t page_bytes = 0;
    uint64_t hits = 0;
    uint64_t misses = 0;
  };
  struct State {
    std::vector<ClassState> classes;
    // For each page size of the classes, and for 4 KiB.
    std::vector<Service> served;
    // Files that were made, and the processor time that they took.
    uint64_t refilled_files = 0;
    std::chrono::nanoseconds refill_time{0};
    // Why the last attempt to make a file failed, if nothing was made since: no room in the node's limit, or no pages.
    absl::Status blocked;
  };

  // Bytes that RefillPiece has made; 0: nothing to do, or no way to do it now.
  struct Piece {
    uint64_t bytes = 0;
    bool blocked = false;
  };

  MemoryPool(Os& os, std::shared_ptr<Ledger> node, const std::vector<PoolClass>& classes);

  // The result of Give.
  struct Given {
    // The ready file, now owned by the session, which fits it to its size.
    std::optional<FreshMemory> ready;
    // Files that the pool gave up. Freeing them takes long.
    std::vector<FreshMemory> freed;
  };
  // Charges a session for `bytes`, with `charge`, and gives it the ready file that is nearest in size, from half of it
  // to twice, if there is a wish and a file. The pool gives up its part of the node's limit for the session: the part
  // of that file, then, while there is still no room, the file that is being made and other files. No other session can
  // take that room in between. An allocation without a choice of pages that finds no file counts as a miss of 4 KiB.
  // Errors: of `charge`, with the pool as it was.
  absl::StatusOr<Given> Give(uint64_t bytes, const std::optional<PageWish>& wish,
                             absl::FunctionRef<absl::Status()> charge);
  // Gives up all files, also the one that is being made, and makes no others until Resume. Freeing them takes long.
  std::vector<FreshMemory> Suspend();
  void Resume();

  // Makes a piece of a file that is missing.
  Piece RefillPiece();
  // Waits until a file is missing; if `blocked`, also for a second before the next attempt. Wake ends both waits.
  void WaitForWork(bool blocked);
  // Waits until clients have had time to map the files of large pages that they were given, or until Wake. While the
  // kernel clears a large page it holds one of a few locks, and a fault on a large page of any file takes one of the
  // same: beside a thread that makes such pages, mapping a GiB takes 5 ms instead of 0.2 ms, and seconds on a busy
  // node.
  void LetClientsMap();
  // Waits for so long, or until Wake.
  void Pause(std::chrono::nanoseconds time);
  // Ends all waits, permanently.
  void Wake();
  void AddRefillTime(std::chrono::nanoseconds time);

  State state() const;

 private:
  // A file, and its part of the node's limit.
  struct File {
    FreshMemory memory;
    Charge charge;
    size_t index = 0;
  };
  struct Class {
    PoolClass wanted;
    std::vector<File> ready;
    bool suspended = false;
  };
  // What the pool gives up for a session: files, and the room of the one that is being made.
  struct Evicted {
    std::vector<File> files;
    Charge making;
  };

  // A class of which a file is missing: the first from first_ on.
  std::optional<size_t> MissingClass() const RNICD_REQUIRES(mutex_);
  // Does nothing if no class has such pages.
  void CountMiss(uint64_t page_bytes) RNICD_REQUIRES(mutex_);
  // The class with the best ready file, and the counter for the hit; null: none.
  std::pair<Class*, Service*> Find(uint64_t size, const PageWish& wish) RNICD_REQUIRES(mutex_);
  Class* Nearest(uint64_t size, const PageChoice& pages) RNICD_REQUIRES(mutex_);
  // Gives up more until the node's limit has room for this many bytes; gives up nothing if all together is not enough.
  void EvictFor(uint64_t bytes, Evicted& parted) RNICD_REQUIRES(mutex_);
  // Calls `charge` in place of the charges of `parted`. If it fails, the pool has them again.
  absl::Status Swap(Evicted& parted, absl::FunctionRef<absl::Status()> charge) RNICD_REQUIRES(mutex_);
  absl::Status BeginFile();
  bool KeepsMaking() const;
  void FinishFile();
  Piece Blocked(const absl::Status& why);

  Os& os_;
  const std::shared_ptr<Ledger> node_;
  // What is being made, and of which class. Only the refilling thread uses it.
  std::optional<FreshMemory> making_;
  size_t making_index_ = 0;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::vector<Class> classes_ RNICD_GUARDED_BY(mutex_);
  // Index after a class whose file could not be made, so that it does not block the other classes.
  size_t first_ RNICD_GUARDED_BY(mutex_) = 0;
  // Empty: nothing is being made, or a session needs the room more.
  Charge making_charge_ RNICD_GUARDED_BY(mutex_);
  std::vector<Service> served_ RNICD_GUARDED_BY(mutex_);
  uint64_t refilled_files_ RNICD_GUARDED_BY(mutex_) = 0;
  std::chrono::nanoseconds refill_time_ RNICD_GUARDED_BY(mutex_){0};
  absl::Status blocked_ RNICD_GUARDED_BY(mutex_);
  // The time by which clients have mapped the large pages that they were given.
  std::chrono::steady_clock::time_point mapped_at_ RNICD_GUARDED_BY(mutex_);
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::core
