#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/system/os.h"
#include "daemon/core/tenant/ledger.h"
#include "daemon/core/tenant/page_tree.h"

// Pinned pages, each charged once to an owner however often it is registered. Owners are sessions and tenants: a page
// that two sessions of a tenant registered is charged to both of them, and to the tenant once. The node's count is the
// sum of its tenants'.
namespace rnicd::core {

// Identifies a memory file among all open ones, so that a file imported twice is recognized.
struct FileKey {
  uint64_t device = 0;
  uint64_t inode = 0;
  friend auto operator<=>(const FileKey&, const FileKey&) = default;
};

struct PageRun;

// How often an owner has registered each page of one file.
// Threads: safe. Its lock covers one file of one owner.
class PageCounts {
 public:
  // `with_parents`: the ledger's parents are charged too.
  PageCounts(std::shared_ptr<Ledger> ledger, bool with_parents)
      : ledger_(std::move(ledger)), with_parents_(with_parents) {}

  // Counts the pages of these runs, all of this file, once more and charges those that were not counted. Errors:
  // QUOTA_PINNED_BYTES, with nothing changed.
  absl::Status Add(std::span<const PageRun> runs);
  // Undoes an Add of exactly these runs.
  void Remove(std::span<const PageRun> runs);

 private:
  // How many bytes are no longer counted.
  uint64_t Lower(std::span<const PageRun> runs) RNICD_REQUIRES(mutex_);

  const std::shared_ptr<Ledger> ledger_;
  const bool with_parents_;
  Mutex mutex_;
  PageTree pages_ RNICD_GUARDED_BY(mutex_);
};

// The memory files of one owner.
// Threads: safe.
class PinnedFiles {
 public:
  PinnedFiles(std::shared_ptr<Ledger> ledger, bool with_parents)
      : ledger_(std::move(ledger)), with_parents_(with_parents) {}

  // Returns the same counts for the same file, as long as any caller holds them.
  std::shared_ptr<PageCounts> Open(const FileKey& file);

 private:
  static constexpr size_t kSweepFrom = 64;

  const std::shared_ptr<Ledger> ledger_;
  const bool with_parents_;
  Mutex mutex_;
  std::map<FileKey, std::weak_ptr<PageCounts>> files_ RNICD_GUARDED_BY(mutex_);
  // Number of files at which entries of closed files are dropped.
  size_t sweep_at_ RNICD_GUARDED_BY(mutex_) = kSweepFrom;
};

// One memory file as a session charges its pages: to itself, and to its tenant and the node.
// Threads: safe.
class FilePins {
 public:
  FilePins(std::shared_ptr<PageCounts> session, std::shared_ptr<PageCounts> tenant)
      : session_(std::move(session)), tenant_(std::move(tenant)) {}

  // Errors: QUOTA_PINNED_BYTES, with nothing changed.
  absl::Status Add(std::span<const PageRun> runs) const;
  void Remove(std::span<const PageRun> runs) const;

 private:
  const std::shared_ptr<PageCounts> session_;
  const std::shared_ptr<PageCounts> tenant_;
};

// Gives a session's memory objects the pins of their files.
struct PinBook {
  std::shared_ptr<PinnedFiles> session;
  std::shared_ptr<PinnedFiles> tenant;

  std::shared_ptr<const FilePins> Open(const FileKey& file) const;
};

// Adjacent pages of 4 KiB of one memory file.
struct PageRun {
  std::shared_ptr<const FilePins> file;
  uint64_t first = 0;
  uint64_t count = 0;
};

// Pages charged as pinned and as registered, refunded when this is destroyed. Empty when default made or moved from.
class PinCharge {
 public:
  // `pages`: how many the runs touch, each as often as it is named. Errors: QUOTA_REGISTERED_BYTES, QUOTA_HEAP_BYTES,
  // QUOTA_PINNED_BYTES.
  static absl::StatusOr<PinCharge> Take(const std::shared_ptr<Ledger>& session, std::vector<PageRun> runs,
                                        uint64_t pages);
  // With the charges of registered bytes and of kHeapOfRun for each run, which were taken before.
  static absl::StatusOr<PinCharge> Take(Charge registered, Charge lists, std::vector<PageRun> runs);

  PinCharge() = default;
  PinCharge(PinCharge&& other) noexcept = default;
  PinCharge& operator=(PinCharge&& other) noexcept;
  ~PinCharge() { Refund(); }

  void Refund();

 private:
  Charge registered_;
  // Heap bytes of the lists of runs, here and where the range is used.
  Charge lists_;
  // Runs that were counted.
  std::vector<PageRun> runs_;
};

}  // namespace rnicd::core
