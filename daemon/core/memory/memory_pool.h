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

// What memory a session wants; nothing given: the largest pages whose size divides that of the memory, of any node.
struct PageWish {
  std::optional<uint64_t> page_bytes;
  std::optional<uint32_t> numa_node;
};

// Memory that is ready before anybody asks for it: files of the daemon's, with their pages made and mapped. A file is
// given away once, for good: what a client had goes back to the kernel, never to another client.
// The files count in the node's limit of memory_bytes, and give way to what sessions ask for.
// Lifetime: outlives the sessions and the PoolRefiller.
// Threads:  safe; refilling is for one thread.
// Source:   ADR 0033.
class MemoryPool {
 public:
  // What there is of a class.
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

  // What a session is given.
  struct Given {
    // Ready, and the session's from now on; it fits the file to its size.
    std::optional<FreshMemory> ready;
    // Files that gave way. To free them takes long.
    std::vector<FreshMemory> freed;
  };
  // Charges a session for `bytes`, with `charge`, and gives it the ready file that is nearest in size, from half of it
  // to twice, if there is a wish and a file. What the pool holds of the node's limit gives way: the part of that file,
  // then, as far as there is still no room, what is being made and other files. Nobody else gets that room in between.
  // Memory without a choice of pages for which there is nothing counts as a miss of 4 KiB.
  // Errors: of `charge`, with the pool as it was.
  absl::StatusOr<Given> Give(uint64_t bytes, const std::optional<PageWish>& wish,
                             absl::FunctionRef<absl::Status()> charge);

  // Makes a piece of a file that is missing.
  Piece RefillPiece();
  // Waits until a file is missing, or Wake; if `blocked`, until then or a second has passed.
  void WaitForWork(bool blocked);
  // Waits until clients have had time to map the files of large pages that they were given, or until Wake. While the
  // kernel clears a large page it holds one of a few locks, and a fault on a large page of any file takes one of the
  // same: beside a thread that makes such pages, mapping a GiB takes 5 ms instead of 0.2 ms, and seconds on a busy
  // node.
  void LetClientsMap();
  // Waits for so long, or until Wake.
  void Pause(std::chrono::nanoseconds time);
  // Ends all waiting, for good.
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
  };
  // What gives way to a session: files, and the room of the one that is being made.
  struct Parted {
    std::vector<File> files;
    Charge making;
  };

  // A class of which a file is missing: the first from first_ on.
  std::optional<size_t> MissingClass() const RNICD_REQUIRES(mutex_);
  // Nothing if no class has such pages.
  void CountMiss(uint64_t page_bytes) RNICD_REQUIRES(mutex_);
  // The class with the ready file that serves best, and whom to count the hit for; null: none.
  std::pair<Class*, Service*> Find(uint64_t size, const PageWish& wish) RNICD_REQUIRES(mutex_);
  Class* Nearest(uint64_t size, const PageChoice& pages) RNICD_REQUIRES(mutex_);
  // Parts with more until the node's limit has room for so many bytes; with nothing if even all is not enough.
  void PartWith(uint64_t bytes, Parted& parted) RNICD_REQUIRES(mutex_);
  // Calls `charge` in place of the charges of `parted`. If it fails, the pool has them again.
  absl::Status Swap(Parted& parted, absl::FunctionRef<absl::Status()> charge) RNICD_REQUIRES(mutex_);
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
  // Behind a class whose file could not be made, so that it does not keep the others from theirs.
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
