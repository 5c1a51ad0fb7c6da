#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files/file_watch.h"
#include "base/system/os.h"
#include "base/units.h"

namespace rnicd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

UniqueFd NewFile() { return SystemOs().CreateMemoryFile(kNdkPageBytes, kNdkPageBytes).value(); }

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
  UniqueFd second = SystemOs().Duplicate(file.get()).value();
  const UniqueFd other = NewFile();
  const FileWatch::Id id = Add(file);
  EXPECT_NE(Add(other), id);
  file.Reset(-1);
  EXPECT_THAT(watch_->TakeEnded(), IsEmpty());
  second.Reset(-1);
  EXPECT_THAT(watch_->TakeEnded(), ElementsAre(id));
  EXPECT_THAT(watch_->TakeEnded(), IsEmpty());
}

TEST_F(FileWatchTest, KnowsAFileByEachOfItsHandles) {
  const UniqueFd file = NewFile();
  const UniqueFd second = SystemOs().Duplicate(file.get()).value();
  EXPECT_EQ(Add(file), Add(second));
}

TEST_F(FileWatchTest, AHandleThatIsNotOpenIsNoFile) {
  UniqueFd file = NewFile();
  const int closed = file.get();
  file.Reset(-1);
  EXPECT_FALSE(watch_->Add(closed).ok());
}

}  // namespace
}  // namespace rnicd
