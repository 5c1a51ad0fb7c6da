// rnicd.exe under the service manager.
#include <windows.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "rnicd/v1/session_service.pb.h"
#include "tests/windows_daemon/daemon_program.h"

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
    return Eventually([&] { return Status().dwCurrentState == state; });
  }

 private:
  SC_HANDLE manager_;
  SC_HANDLE service_;
};

std::string PipeName() { return "rnicd-service-" + std::to_string(GetCurrentProcessId()); }

std::string TenantNow() {
  Client client(R"(\\.\pipe\)" + PipeName());
  return client.Call<v1::OpenSessionResponse>("SessionService/OpenSession", v1::OpenSessionRequest()).tenant();
}

TEST(ServiceOnWindows, ServesUntilItIsStopped) {
  const std::string policy =
      (std::filesystem::temp_directory_path() / ("rnicd-service-policy-" + std::to_string(GetCurrentProcessId())))
          .string();
  const auto write_policy = [&](const std::string& name) {
    std::ofstream(policy, std::ios::binary) << "tenant { name: \"" + name + "\" }\ndefault_tenant: \"" + name + "\"\n";
  };
  write_policy("before");
  Service service("--pipe=" + PipeName() + " --metrics_address= --policy_file=" + policy);
  ASSERT_TRUE(service.Start()) << GetLastError();
  ASSERT_TRUE(service.Reaches(SERVICE_RUNNING));
  EXPECT_EQ(TenantNow(), "before");
  write_policy("after");
  EXPECT_TRUE(service.Control(SERVICE_CONTROL_PARAMCHANGE));
  EXPECT_TRUE(Eventually([] { return TenantNow() == "after"; }));
  EXPECT_TRUE(service.Control(SERVICE_CONTROL_STOP));
  EXPECT_TRUE(service.Reaches(SERVICE_STOPPED));
  EXPECT_EQ(service.Status().dwWin32ExitCode, DWORD{NO_ERROR});
  std::error_code ignored;
  std::filesystem::remove(policy, ignored);
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
