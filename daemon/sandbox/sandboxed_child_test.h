#pragma once

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "base/files/unique_fd.h"
#include "daemon/sandbox/sandbox.h"

// A process that enters the sandbox: that cannot be undone, so every check gets its own child.
namespace rnicd::sandbox {

struct ChildEnd {
  // Exit code; -1 when a signal ended the child.
  int exit_code = -1;
  int signal = 0;
  // Text that the child wrote into its pipe.
  std::string output;
};

// Exit codes of children that failed before their work.
inline constexpr int kDidNotEnter = 99;
// Exit code of a child whose call was carried out.
inline constexpr int kWasCarriedOut = 3;
// A child that hangs is ended by SIGALRM.
inline constexpr unsigned kChildSeconds = 60;
inline constexpr long kPageBytes = 4096;

class Child {
 public:
  // `work` gets the pipe's end to write to, and returns the exit code.
  explicit Child(const std::function<int(int)>& work) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe(ends), 0);
    output_ = UniqueFd(ends[0]);
    const UniqueFd input(ends[1]);
    pid_ = fork();
    if (pid_ == 0) {
      alarm(kChildSeconds);
      _exit(work(input.get()));
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }

  pid_t pid() const { return pid_; }
  // Returns when the child has written something.
  bool WaitForOutput() const {
    pollfd word = {.fd = output_.get(), .events = POLLIN, .revents = 0};
    return poll(&word, 1, static_cast<int>(kChildSeconds) * 1000) == 1;
  }
  ChildEnd End() {
    ChildEnd end;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(output_.get(), buffer, sizeof(buffer))) > 0;) {
      end.output.append(buffer, static_cast<size_t>(got));
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return end;
  }

 private:
  pid_t pid_ = -1;
  UniqueFd output_;
};

inline void WriteText(int pipe, const std::string& text) {
  // A short pipe write is complete or fails; missing text fails the test.
  if (write(pipe, text.data(), text.size()) < 0) {
    _exit(kDidNotEnter);
  }
}

// Enters with these options; on failure, writes the error and exits.
inline void EnterOrExit(const SandboxOptions& options, int pipe) {
  const absl::Status entered = EnterSandbox(options).status();
  if (!entered.ok()) {
    WriteText(pipe, std::string(entered.message()));
    _exit(kDidNotEnter);
  }
}

// Enters, and narrows as a daemon does that serves.
inline void ServeOrExit(const SandboxOptions& options, int pipe) {
  EnterOrExit(options, pipe);
  const absl::Status narrowed = NarrowSandbox(options);
  if (!narrowed.ok()) {
    WriteText(pipe, std::string(narrowed.message()));
    _exit(kDidNotEnter);
  }
}

inline ChildEnd WhenServing(const SandboxOptions& options, const std::function<int(int)>& work) {
  return Child([&](int pipe) {
           ServeOrExit(options, pipe);
           return work(pipe);
         })
      .End();
}

inline ChildEnd InSandbox(const SandboxOptions& options, const std::function<int(int)>& work) {
  return Child([&](int pipe) {
           EnterOrExit(options, pipe);
           return work(pipe);
         })
      .End();
}

}  // namespace rnicd::sandbox
