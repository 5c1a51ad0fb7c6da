// rnicd.exe under the service manager.
#include <windows.h>

#include <string>

#include "daemon/core/core_fixture_test.h"
#include "daemon/pipes/front_door_fixture_test.h"

namespace rnicd::test {
namespace {

// A service of rnicd.exe; stopped and deleted on destruction.
class Service {
 public:
  explicit Service(const std::string& flags) : manager_(OpenSCManagerA(nullptr, nullptr, SC_MANAGER_ALL_ACCESS)) {
    const std::string name = "rnicd-test-" + std::to_string(GetCurrentProcessId());
    service_ = CreateServiceA(manager_, name.c_str(), name.c_str(), SERVICE_ALL_ACCESS, SERVICE_WIN32_OWN_PROCESS,
                              SERVICE_DEMAND_START, SERVICE_ERROR_NORMAL, (RNICD_PROGRAM " " + flags).c_str(), nullptr,
                              nullptr, nullptr, nullptr, nullptr);
    EXPECT_NE(service_, nullptr) << GetLastError();
  }
  ~Service() {
    Control(SERVICE_CONTROL_STOP);
    DeleteService(service_);
    CloseServiceHandle(service_);
    CloseServiceHandle(manager_);
  }

  bool Start() { return StartServiceA(service_, 0, nullptr) != 0; }
  bool Control(DWORD control) {
    SERVICE_STATUS status;
    return ControlService(service_, control, &status) != 0;
  }
  SERVICE_STATUS Status() {
    SERVICE_STATUS status = {};
    QueryServiceStatus(service_, &status);
    return status;
  }
  bool Reaches(DWORD state) {
    return core::Eventually([&] { return Status().dwCurrentState == state; });
  }

 private:
  SC_HANDLE manager_;
  SC_HANDLE service_;
};

std::string PipeName() { return "rnicd-service-" + std::to_string(GetCurrentProcessId()); }

TEST(ServiceOnWindows, ServesUntilItIsStopped) {
  Service service("--pipe=" + PipeName() + " --metrics_address=");
  ASSERT_TRUE(service.Start()) << GetLastError();
  ASSERT_TRUE(service.Reaches(SERVICE_RUNNING));
  EXPECT_NE(pipes::PipeClient(R"(\\.\pipe\)" + PipeName()).Hello().port(), 0u);
  EXPECT_TRUE(service.Control(SERVICE_CONTROL_PARAMCHANGE)) << "reads its policy again: there is none";
  EXPECT_NE(pipes::PipeClient(R"(\\.\pipe\)" + PipeName()).Hello().port(), 0u);
  EXPECT_TRUE(service.Control(SERVICE_CONTROL_STOP));
  EXPECT_TRUE(service.Reaches(SERVICE_STOPPED));
  EXPECT_EQ(service.Status().dwWin32ExitCode, DWORD{NO_ERROR});
}

TEST(ServiceOnWindows, OneThatCannotStartSaysSo) {
  Service service("--pipe=" + PipeName() +
                  R"( --metrics_address= --provider=networkdirect --networkdirect_library=C:\no.dll)");
  (void)service.Start();
  ASSERT_TRUE(service.Reaches(SERVICE_STOPPED));
  EXPECT_EQ(service.Status().dwWin32ExitCode, DWORD{ERROR_SERVICE_SPECIFIC_ERROR});
  EXPECT_EQ(service.Status().dwServiceSpecificExitCode, 1u);
}

}  // namespace
}  // namespace rnicd::test
