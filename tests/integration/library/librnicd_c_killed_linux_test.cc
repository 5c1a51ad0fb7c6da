// The daemon is killed by SIGKILL before or during each function of the C interface that speaks with it.
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/files/unique_fd.h"
#include "ring/shared_word.h"
#include "tests/integration/library/killed_calls.h"
#include "tests/integration/library/librnicd_c_fixture.h"
#include "tests/integration/library/mapped_rings.h"
#include "tests/support/process/daemon_process.h"

namespace rnicd::test {
namespace {

// Functions that neither ask the daemon nor wait for it.
const std::set<std::string>& FunctionsWithoutDaemon() {
  static const std::set<std::string> kAll = {
      "rnicd_last_error", "rnicd_reason_name", "rnicd_ntstatus_name", "rnicd_version", "rnicd_session_id",
      "rnicd_tenant", "rnicd_fd", "rnicd_query_memory", "rnicd_query_mr", "rnicd_query_fast_mr", "rnicd_query_mapping",
      "rnicd_query_qp", "rnicd_query_outstanding", "rnicd_stop_cq",
      // Work chains belong to no session.
      "rnicd_create_chain", "rnicd_reset_chain", "rnicd_close_chain", "rnicd_chain_length", "rnicd_chain_posted",
      "rnicd_chain_token", "rnicd_chain_send", "rnicd_chain_send_inline", "rnicd_chain_send_and_invalidate",
      "rnicd_chain_send_inline_and_invalidate", "rnicd_chain_receive", "rnicd_chain_read", "rnicd_chain_write",
      "rnicd_chain_write_inline", "rnicd_chain_fast_register", "rnicd_chain_invalidate_fast_mr", "rnicd_chain_bind",
      "rnicd_chain_invalidate_mw"};
  return kAll;
}

// The functions that rnicd.h declares: lines that begin with the type of a result.
std::set<std::string> FunctionsOfTheHeader() {
  std::ifstream header(RNICD_SOURCE_DIR "/client/c/rnicd.h");
  const std::regex declaration(R"(^[a-z][a-z0-9_ ]*[ *]+(rnicd_[a-z_]+)\(.*)");
  std::set<std::string> functions;
  for (std::string line; std::getline(header, line);) {
    if (std::smatch found; std::regex_match(line, found, declaration)) {
      functions.insert(found[1]);
    }
  }
  return functions;
}

TEST(RnicdKilledCalls, AreAllFunctionsThatSpeakWithTheDaemon) {
  std::set<std::string> known = FunctionsWithoutDaemon();
  for (const KilledCall& row : KilledCalls("")) {
    EXPECT_TRUE(known.insert(row.function).second) << row.function << " twice";
  }
  EXPECT_EQ(known, FunctionsOfTheHeader());
}

// --- The daemon's end -----------------------------------------------------------------------------------------------

// Bytes on this socket that the process with this id has not read.
bool HasUnread(int socket, pid_t reader) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  int bytes = 0;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == reader &&
         ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes != 0;
}

// How many sockets and rings of this process have something that the daemon has not taken.
size_t NotTaken(pid_t daemon) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    count += HasUnread(std::stoi(entry.path().filename()), daemon) ? 1 : 0;
  }
  // Nothing is unmapped while the daemon lives.
  for (ring::RingHeader* const header : MappedRings()) {
    count += ring::LoadAcquire(header->submission_tail) != ring::LoadAcquire(header->submission_head) ? 1 : 0;
  }
  return count;
}

enum class KilledWhen { kBefore, kMeanwhile };

struct KilledCase {
  const char* name;
  uint32_t data_path;
  uint32_t flags;
  KilledWhen when;
};

// One row of the table, in one session.
class KilledRow {
 public:
  KilledRow(const DaemonProcess& daemon, KilledCall row, const KilledCase& how)
      : row_(std::move(row)), how_(how), orphan_(daemon.socket_dir(), row_.function, how.data_path, how.flags) {
    row_.before(orphan_);
  }

  // Calls the function, on a thread of its own.
  void Begin() {
    end_ = std::async(std::launch::async, [this] {
      SCOPED_TRACE(row_.function);
      const int result = row_.call(orphan_);
      returned_ = true;
      const bool unreachable = (how_.flags & RNICD_THREAD) != 0 && std::string(row_.function) == "rnicd_progress";
      EXPECT_EQ(result, unreachable ? -EINVAL : outcome()) << rnicd_last_error()->message;
      orphan_.ExpectEnd();
    });
  }
  // Whether the function sends something that a daemon that is held does not take.
  bool sends() const {
    return row_.sends == Sends::kAlways ? outcome() == -ECONNRESET || outcome() == -ECONNREFUSED
                                        : row_.sends == Sends::kByCalls && how_.data_path == RNICD_DATA_PATH_CALLS;
  }
  bool returned() const { return returned_; }
  const char* function() const { return row_.function; }
  // A function that hangs ends the program: its thread cannot be ended otherwise.
  void AwaitEnd() {
    if (end_.wait_for(kTimeout) != std::future_status::ready) {
      std::cerr << row_.function << " hangs after the daemon's end\n";
      std::abort();
    }
    end_.get();
  }

 private:
  int outcome() const { return how_.data_path == RNICD_DATA_PATH_CALLS ? row_.by_calls : row_.by_rings; }

  const KilledCall row_;
  const KilledCase how_;
  Orphan orphan_;
  std::atomic<bool> returned_ = false;
  std::future<void> end_;
};

class RnicdKilledDaemon : public testing::TestWithParam<KilledCase> {
 protected:
  // Calls all functions at the same time, and kills the daemon when it has received nothing of them.
  static void KillMeanwhile(DaemonProcess& daemon, std::vector<std::unique_ptr<KilledRow>>& rows) {
    const pid_t pid = daemon.process().pid();
    EXPECT_TRUE(Eventually([&] { return NotTaken(pid) == 0; }));
    EXPECT_TRUE(daemon.process().StopAndWait());
    size_t sent = NotTaken(pid);
    EXPECT_EQ(sent, 0u);
    for (const std::unique_ptr<KilledRow>& row : rows) {
      row->Begin();
      if (row->sends()) {
        ++sent;
        EXPECT_TRUE(Eventually([&] { return NotTaken(pid) == sent || row->returned(); }));
        EXPECT_FALSE(row->returned()) << row->function() << " returned without an answer";
      }
    }
    daemon.KillHard();
  }
};

TEST_P(RnicdKilledDaemon, EveryFunctionReturnsAndEveryHandleCloses) {
  const KilledCase& how = GetParam();
  auto daemon = DaemonProcess::Start({.flags = {"--connections_per_second=0"}});
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  std::vector<std::unique_ptr<KilledRow>> rows;
  for (KilledCall& call : KilledCalls((*daemon)->socket_dir())) {
    rows.push_back(std::make_unique<KilledRow>(**daemon, std::move(call), how));
  }
  if (how.when == KilledWhen::kMeanwhile) {
    KillMeanwhile(**daemon, rows);
  } else {
    (*daemon)->KillHard();
    for (const std::unique_ptr<KilledRow>& row : rows) {
      row->Begin();
    }
  }
  for (const std::unique_ptr<KilledRow>& row : rows) {
    row->AwaitEnd();
  }
  auto next = DaemonProcess::Start({.directory = (*daemon)->directory()});
  ASSERT_TRUE(next.ok()) << next.status();
  LoopInC loop(**next);
  EXPECT_EQ(rnicd_chain_write(loop.chain.get(), nullptr, 0, 0, 0, 0, 5), 0);
  loop.Post();
  EXPECT_EQ(loop.Next().context, 5u);
}

constexpr KilledCase kKilledCases[] = {
    {"BeforeCalls", RNICD_DATA_PATH_CALLS, 0, KilledWhen::kBefore},
    {"DuringCalls", RNICD_DATA_PATH_CALLS, 0, KilledWhen::kMeanwhile},
    {"BeforeCallsBesideAThread", RNICD_DATA_PATH_CALLS, RNICD_THREAD, KilledWhen::kBefore},
    {"DuringCallsBesideAThread", RNICD_DATA_PATH_CALLS, RNICD_THREAD, KilledWhen::kMeanwhile},
    {"BeforeRings", RNICD_DATA_PATH_RINGS, 0, KilledWhen::kBefore},
    {"DuringRings", RNICD_DATA_PATH_RINGS, 0, KilledWhen::kMeanwhile},
    {"BeforeRingsBesideAThread", RNICD_DATA_PATH_RINGS, RNICD_THREAD, KilledWhen::kBefore},
    {"DuringRingsBesideAThread", RNICD_DATA_PATH_RINGS, RNICD_THREAD, KilledWhen::kMeanwhile},
};
INSTANTIATE_TEST_SUITE_P(Each, RnicdKilledDaemon, testing::ValuesIn(kKilledCases),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace rnicd::test
