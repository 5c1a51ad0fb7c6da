#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "base/files/unique_fd.h"
#include "log/logger.h"

namespace rnicd::log {
namespace {

constexpr std::chrono::seconds kFlushLimit{60};

// While this exists, stderr is another file.
class OtherStderr {
 public:
  explicit OtherStderr(int file) : previous_(dup(STDERR_FILENO)) { dup2(file, STDERR_FILENO); }
  ~OtherStderr() { dup2(previous_.get(), STDERR_FILENO); }
  OtherStderr(const OtherStderr&) = delete;
  OtherStderr& operator=(const OtherStderr&) = delete;

 private:
  const UniqueFd previous_;
};

// What is read until all writers have closed the pipe.
std::string ReadToTheEnd(int pipe) {
  std::string text;
  std::array<char, 65536> chunk;
  for (ssize_t count = 0; (count = read(pipe, chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), static_cast<size_t>(count));
  }
  return text;
}

class UnreadPipe : public testing::TestWithParam<int> {};

TEST_P(UnreadPipe, HoldsUpNobodyAndWhatIsLostIsSaid) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe2(ends, O_CLOEXEC | GetParam()), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  fcntl(reader.get(), F_SETFL, 0);
  constexpr uint64_t kLines = 20'000;
  std::string text;
  uint64_t lost = 0;
  {
    const OtherStderr unread(writer.get());
    writer.Reset(-1);
    const Logger logger({.level = Level::kDebug});
    for (uint64_t line = 0; line < kLines; ++line) {
      logger.Debug("a line", {{"number", line}, {"filler", std::string(100, 'x')}});
    }
    lost = logger.lost();
    std::jthread reading([&] { text = ReadToTheEnd(reader.get()); });
    EXPECT_TRUE(logger.FlushUntil(std::chrono::steady_clock::now() + kFlushLimit));
    EXPECT_EQ(logger.lost(), lost);
    dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
  }
  uint64_t written = 0;
  // Two reports if the writer's thread was slow to begin: the queue is then full twice.
  uint64_t said = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    written += line.find(" debug a line number=") != std::string::npos ? 1 : 0;
    if (line.find(" warning lines lost ") != std::string::npos) {
      said += std::stoull(line.substr(line.find("count=") + std::strlen("count=")));
    }
  }
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(written + lost, kLines);
  EXPECT_EQ(said, lost);
}

// Another process may have set O_NONBLOCK, which all that share the pipe have then.
INSTANTIATE_TEST_SUITE_P(Logger, UnreadPipe, testing::Values(0, O_NONBLOCK),
                         [](const auto& test) { return test.param == 0 ? "Blocking" : "NonBlocking"; });

TEST(Logger, ALineThatWasCutIsEndedAndCounted) {
  std::string path = std::filesystem::temp_directory_path() / "rnicd_log_XXXXXX";
  const UniqueFd file(mkstemp(path.data()));
  ASSERT_TRUE(file.valid());
  const auto previous_action = std::signal(SIGXFSZ, SIG_IGN);
  rlimit previous = {};
  getrlimit(RLIMIT_FSIZE, &previous);
  {
    const OtherStderr full(file.get());
    const Logger logger({});
    rlimit limit = previous;
    limit.rlim_cur = 40;
    setrlimit(RLIMIT_FSIZE, &limit);
    logger.Info("cut", {{"text", std::string(100, 'x')}});
    EXPECT_TRUE(logger.FlushUntil(std::chrono::steady_clock::now() + kFlushLimit));
    EXPECT_EQ(logger.lost(), 1u);
    setrlimit(RLIMIT_FSIZE, &previous);
    logger.Info("whole");
    EXPECT_TRUE(logger.FlushUntil(std::chrono::steady_clock::now() + kFlushLimit));
  }
  std::signal(SIGXFSZ, previous_action);
  std::ifstream written(path);
  std::string line;
  std::getline(written, line);
  EXPECT_EQ(line.size(), 40u) << line;
  std::getline(written, line);
  EXPECT_NE(line.find("Z warning lines lost count=1"), std::string::npos) << line;
  std::getline(written, line);
  EXPECT_NE(line.find("Z info whole"), std::string::npos) << line;
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace rnicd::log
