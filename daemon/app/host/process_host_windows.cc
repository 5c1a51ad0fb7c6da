#include <windows.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <string_view>

#include "base/mutex.h"
#include "base/status.h"
#include "daemon/app/host/privileges_windows.h"
#include "daemon/app/host/process_host.h"

namespace rnicd::app {
namespace {

constexpr char kServiceName[] = "rnicd";

// Orders come from threads of the system.
class OrderHost : public ProcessHost {
 public:
  absl::StatusOr<log::Field> Confine(Config& config) override {
    stop_milliseconds_ = static_cast<DWORD>(config.drain_timeout.count());
    RNICD_ASSIGN_OR_RETURN(const size_t removed, RemovePrivileges());
    return log::Field("privileges_removed", removed);
  }

  // The libraries of cards are loaded by now.
  absl::Status ConfineServing(const Config& /*config*/) override { return ForbidForeignCode(); }

  // A process may have as many handles as the system has memory for.
  std::optional<uint64_t> RaiseDescriptorLimit(uint64_t /*wanted*/) override { return std::nullopt; }
  std::optional<uint64_t> RaiseFileSizeLimit() override { return std::nullopt; }

  Asked Wait() override {
    MutexLock lock(mutex_);
    while (asked_.empty()) {
      changed_.Wait(mutex_);
    }
    const Asked first = asked_.front();
    asked_.pop_front();
    return first;
  }

  void Ask(const Asked& asked) RNICD_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    asked_.push_back(asked);
    changed_.NotifyOne();
  }

 protected:
  // What the sessions and the last lines of a log may take.
  DWORD stop_milliseconds() const { return stop_milliseconds_ + kRestMilliseconds; }

 private:
  static constexpr DWORD kRestMilliseconds = 5000;

  DWORD stop_milliseconds_ = 0;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Asked> asked_ RNICD_GUARDED_BY(mutex_);
};

// --- in a console ---

class ConsoleHost final : public OrderHost {
 public:
  // The system calls the handler without a context, on a thread of its own.
  ConsoleHost() {
    instance_ = this;
    SetConsoleCtrlHandler(OnEvent, TRUE);
  }
  ~ConsoleHost() override {
    SetConsoleCtrlHandler(OnEvent, FALSE);
    instance_ = nullptr;
  }

  void OnServing() override {}

 private:
  static BOOL WINAPI OnEvent(DWORD event) {
    instance_->Ask({.order = Order::kStop, .by = log::Field("console_event", uint64_t{event})});
    if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) {
      // The system ends the process when this returns, or some seconds later.
      Sleep(INFINITE);
    }
    return TRUE;
  }

  static inline ConsoleHost* instance_ = nullptr;
};

// --- as a service ---

class ServiceHost final : public OrderHost {
 public:
  // Errors: the service manager does not know this process as a service.
  absl::Status Register() {
    status_ = RegisterServiceCtrlHandlerExA(kServiceName, OnControl, this);
    if (status_ == nullptr) {
      return absl::FailedPreconditionError("RegisterServiceCtrlHandlerEx failed");
    }
    Report(SERVICE_START_PENDING, kStartMilliseconds);
    return absl::OkStatus();
  }

  void OnServing() override { Report(SERVICE_RUNNING, 0); }

  void OnEnd(int exit_status) {
    exit_status_ = static_cast<DWORD>(exit_status);
    Report(SERVICE_STOPPED, 0);
  }

 private:
  static constexpr DWORD kStartMilliseconds = 30000;

  static DWORD WINAPI OnControl(DWORD control, DWORD /*event*/, void* /*data*/, void* self) {
    return static_cast<ServiceHost*>(self)->Handle(control);
  }

  DWORD Handle(DWORD control) {
    switch (control) {
      case SERVICE_CONTROL_STOP:
      case SERVICE_CONTROL_PRESHUTDOWN:
        Report(SERVICE_STOP_PENDING, stop_milliseconds());
        Ask({.order = Order::kStop, .by = log::Field("service_control", uint64_t{control})});
        return NO_ERROR;
      case SERVICE_CONTROL_PARAMCHANGE:
        Ask({.order = Order::kReloadPolicy, .by = log::Field("service_control", uint64_t{control})});
        return NO_ERROR;
      case SERVICE_CONTROL_INTERROGATE:
        return NO_ERROR;
      default:
        return ERROR_CALL_NOT_IMPLEMENTED;
    }
  }

  void Report(DWORD state, DWORD wait_milliseconds) const {
    SERVICE_STATUS status = {};
    status.dwServiceType = SERVICE_WIN32_OWN_PROCESS;
    status.dwCurrentState = state;
    if (state == SERVICE_RUNNING) {
      status.dwControlsAccepted = SERVICE_ACCEPT_STOP | SERVICE_ACCEPT_PRESHUTDOWN | SERVICE_ACCEPT_PARAMCHANGE;
    }
    if (exit_status_ != 0) {
      status.dwWin32ExitCode = ERROR_SERVICE_SPECIFIC_ERROR;
      status.dwServiceSpecificExitCode = exit_status_;
    }
    status.dwWaitHint = wait_milliseconds;
    SetServiceStatus(status_, &status);
  }

  SERVICE_STATUS_HANDLE status_ = nullptr;
  DWORD exit_status_ = 0;
};

// What the service manager's thread calls, without a context.
struct Running {
  const std::function<int(ProcessHost&)>* run = nullptr;
  int exit_status = EXIT_FAILURE;
};
Running& ThisRun() {
  static Running running;
  return running;
}

void WINAPI ServiceMain(DWORD /*argc*/, char** /*argv*/) {
  // The manager may still call the handler when this has returned.
  static ServiceHost host;
  if (host.Register().ok()) {
    ThisRun().exit_status = (*ThisRun().run)(host);
    host.OnEnd(ThisRun().exit_status);
  }
}

// The service manager starts its processes in session 0, or at least apart from the desktop of a user. To ask it about
// one that is not its own takes ten seconds under wine while the service that was started last runs.
bool MayBeService() {
  DWORD session = 0;
  if (ProcessIdToSessionId(GetCurrentProcessId(), &session) == 0 || session == 0) {
    return true;
  }
  std::array<char, 64> station = {};
  return GetUserObjectInformationA(GetProcessWindowStation(), UOI_NAME, station.data(), station.size(), nullptr) == 0 ||
         std::string_view(station.data()) != "WinSta0";
}

}  // namespace

int RunInHost(const std::function<int(ProcessHost&)>& run) {
  ThisRun().run = &run;
  char name[] = "rnicd";
  const SERVICE_TABLE_ENTRYA services[] = {{.lpServiceName = name, .lpServiceProc = ServiceMain}, {}};
  if (MayBeService() && StartServiceCtrlDispatcherA(services) != 0) {
    return ThisRun().exit_status;
  }
  // Not started by the service manager.
  ConsoleHost host;
  return run(host);
}

}  // namespace rnicd::app
