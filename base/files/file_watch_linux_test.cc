#include "base/files/file_watch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files/unique_fd.h"

namespace rnicd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

UniqueFd NewFile() { return UniqueFd(memfd_create("watched", MFD_CLOEXEC)); }

class FileWatchTest : public testing::Test {
 protected:
  FileWatch::Id Add(const UniqueFd& file) {
    const auto id = watch_->Add(file.get());
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(-1);
  }

  const std::unique_ptr<FileWatch> watch_ = *NewFileWatch();
};

TEST_F(FileWatchTest, TellsTheEndOfAFileOnce) {
  UniqueFd file = NewFile();
  UniqueFd second(dup(file.get()));
  const UniqueFd other = NewFile();
  const FileWatch::Id id = Add(file);
  EXPECT_NE(Add(other), id);
  file.Reset(-1);
  EXPECT_THAT(watch_->TakeEnded(), IsEmpty());
  second.Reset(-1);
  EXPECT_THAT(watch_->TakeEnded(), ElementsAre(id));
  EXPECT_THAT(watch_->TakeEnded(), IsEmpty());
}

TEST_F(FileWatchTest, KnowsAFileByEachOfItsDescriptors) {
  const UniqueFd file = NewFile();
  const UniqueFd second(dup(file.get()));
  EXPECT_EQ(Add(file), Add(second));
}

TEST_F(FileWatchTest, AFileThatIsNotOpenIsNoFile) { EXPECT_FALSE(watch_->Add(-1).ok()); }

// The kernel drops events above the limit of its queue.
TEST_F(FileWatchTest, EndsThatTheKernelForgotAreFound) {
  size_t queued = 0;
  std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> queued;
  ASSERT_GT(queued, 0u);
  UniqueFd kept = NewFile();
  const FileWatch::Id kept_id = Add(kept);
  for (size_t count = 0; count < queued; ++count) {
    Add(NewFile());
  }
  UniqueFd last = NewFile();
  const FileWatch::Id last_id = Add(last);
  last.Reset(-1);
  const std::vector<FileWatch::Id> ended = watch_->TakeEnded();
  EXPECT_EQ(ended.size(), queued + 1);
  EXPECT_THAT(ended, testing::Contains(last_id));
  EXPECT_THAT(ended, testing::Not(testing::Contains(kept_id)));
  kept.Reset(-1);
  EXPECT_THAT(watch_->TakeEnded(), ElementsAre(kept_id));
}

}  // namespace
}  // namespace rnicd
