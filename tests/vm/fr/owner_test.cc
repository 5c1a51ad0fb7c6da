// Whose domain may be taken by whom, and how long it lives.
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/module.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "tests/vm/fr/fixture.h"

namespace {

// A process of Kill.LeavesNothing is complete within this time on an idle machine.
constexpr useconds_t kStartMicroseconds = 200'000;
// A domain that leaks takes 12 KiB.
constexpr int64_t kSlabNoiseKiB = 1024;

// Exit status of a child that runs `body`, or 128 and the signal that ended it.
int InChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string Output(const char* command) {
  std::string text;
  FILE* stream = popen(command, "r");
  for (int character = std::fgetc(stream); character != EOF; character = std::fgetc(stream)) {
    text.push_back(static_cast<char>(character));
  }
  pclose(stream);
  return text;
}

// Objects of processes and of the module on all cards, without those that the kernel has always.
std::string Objects() {
  return Output("for kind in pd mr qp cq; do rdma resource show $kind; done | grep -c 'pid\\|rnicd_fr'");
}

// Third field of the module's line in /proc/modules: how many files hold it.
int ModuleUsers() {
  std::ifstream modules("/proc/modules");
  for (std::string line; std::getline(modules, line);) {
    std::istringstream fields(line);
    std::string name;
    int bytes = 0;
    int users = 0;
    if (fields >> name >> bytes >> users && name == "rnicd_fr") return users;
  }
  return -1;
}

TEST_F(FastRegistration, DomainThatIsTakenIsNotFreed) {
  EXPECT_EQ(ibv_dealloc_pd(owner_.pd()), EBUSY);
  rnicd_fr_take again = TakeRequest(owner_);
  EXPECT_EQ(Call(control_.number(), RNICD_FR_TAKE, &again), EBUSY);
}

TEST_F(FastRegistration, ClosedDomainIsTakenAgain) {
  domain_.Close();
  rnicd_fr_take again = TakeRequest(owner_);
  ASSERT_EQ(Call(control_.number(), RNICD_FR_TAKE, &again), 0);
  close(again.domain_fd);
}

TEST_F(FastRegistration, TakeNeedsTheCallersOwnDomain) {
  const auto refusal = [&](const std::function<void(rnicd_fr_take&)>& spoil) {
    rnicd_fr_take take = TakeRequest(peer_card_);
    spoil(take);
    const int error = Call(control_.number(), RNICD_FR_TAKE, &take);
    if (error == 0) close(take.domain_fd);
    return error;
  };
  const Descriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(refusal([](auto& take) { take.device_index = 77; }), ENODEV);
  EXPECT_EQ(refusal([](auto& take) { take.uverbs_fd = -1; }), EBADF);
  EXPECT_EQ(refusal([&](auto& take) { take.uverbs_fd = null.number(); }), ENOENT);
  EXPECT_EQ(refusal([&](auto& take) { take.uverbs_fd = control_.number(); }), ENOENT);
  EXPECT_EQ(refusal([&](auto& take) { take.uverbs_fd = owner_.context()->cmd_fd; }), ENOENT);
  EXPECT_EQ(refusal([&](auto& take) { take.uverbs_fd = peer_card_.context()->async_fd; }), ENOENT);
  EXPECT_EQ(refusal([](auto& take) { take.pd_id += 1000; }), ENOENT);
  EXPECT_EQ(refusal([](auto& take) { take.pd_handle += 1; }), ENOENT);
  EXPECT_EQ(refusal([](auto& take) { take.port = 2; }), EINVAL);
  EXPECT_EQ(refusal([](auto& take) { take.port = 0; }), EINVAL);
  EXPECT_NE(refusal([](auto& take) { take.gid_index = 5000; }), 0);
  EXPECT_EQ(refusal([](auto&) {}), 0);
}

TEST_F(FastRegistration, InheritedDescriptorsGiveNothing) {
  EXPECT_EQ(InChild([&] {
              rnicd_fr_info info;
              rnicd_fr_create_region region;
              return Call(control_.number(), RNICD_FR_INFO, &info) == EPERM && domain_.CreateRegion(1, region) == EPERM
                         ? 0
                         : 1;
            }),
            0);
}

TEST_F(FastRegistration, DomainOfAnotherProcessIsNotTaken) {
  const rnicd_fr_take parents = TakeRequest(peer_card_);
  EXPECT_EQ(InChild([&] {
              const Descriptor own(OpenControl());
              rnicd_fr_take take = parents;
              return Call(own.number(), RNICD_FR_TAKE, &take) == ENOENT ? 0 : 1;
            }),
            0);
}

TEST(Device, OpenNeedsTheCapability) {
  struct stat status;
  ASSERT_EQ(stat("/dev/rnicd_fr", &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_EQ(InChild([] {
              // Still root, so the mode of the file lets it through.
              __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
              __user_cap_data_struct none[2] = {};
              none[0].effective = none[0].permitted = 1U << CAP_DAC_OVERRIDE;
              if (syscall(SYS_capset, &header, none) != 0) return 2;
              return OpenControl() < 0 && errno == EPERM ? 0 : 1;
            }),
            0);
}

TEST_F(FastRegistration, ModuleInUseIsNotRemoved) {
  EXPECT_GE(ModuleUsers(), 2);
  EXPECT_EQ(syscall(SYS_delete_module, "rnicd_fr", O_NONBLOCK), -1);
  EXPECT_EQ(errno, EWOULDBLOCK);
  EXPECT_EQ(Register(OnePage()), 0);
}

// Everything alive: a domain, mapped pages, a registration in force and one that a chain is making. Writes a byte to
// `progress` for each such chain.
int LiveUntilKilled(int progress) {
  const Descriptor control(OpenControl());
  const Card card(CardName());
  Domain domain(control.number(), card);
  const uint32_t count = std::min<uint32_t>(domain.region_pages_max(), 512);
  const Pages pages(count);
  uint32_t mapping = 0;
  rnicd_fr_create_region region;
  if (domain.Map(pages, mapping) != 0 || domain.CreateRegion(count, region) != 0) return 1;
  std::vector<rnicd_fr_run> runs = {{.mapping = mapping, .page = 0, .count = count, .reserved = 0}};
  const Registration all = {.region = region.region, .length = count * kPage};
  if (domain.Run(RegisterOp(all, 0, 1), runs) != 0) return 2;
  Registration other = all;
  other.slot = 1;
  while (true) {
    std::vector<rnicd_fr_op> ops = {RegisterOp(other, 0, 1), InvalidateOp(region.region, 1, other.key)};
    if (domain.Submit(ops, runs) != 0 || ops[1].result != 0) return 3;
    other.key = (other.key + 1) % 256;
    if (write(progress, "", 1) != 1) return 4;
  }
}

// Kills a process that lives so when `moment`, which gets the end of its progress, returns; its exit status
// as that of InChild.
int KillAt(const std::function<void(int)>& moment) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) _exit(LiveUntilKilled(ends[1]));
  close(ends[1]);
  moment(ends[0]);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  close(ends[0]);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void WaitForChains(int progress, int chains) {
  char byte = 0;
  for (int i = 0; i < chains && read(progress, &byte, 1) == 1; ++i) {
  }
}

// Number behind a name in a file of /proc with a name and a number in each line; -1 without the name.
int64_t KernelCount(const char* file, const std::string& wanted) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name;
    int64_t count = 0;
    if (fields >> name >> count && name == wanted) return count;
  }
  return -1;
}

// Pages that something in the kernel has pinned, by the kernel's own counts. Each processor keeps the last few of its
// changes to itself until it is asked for them.
int64_t PinnedPages() {
  std::ofstream("/proc/sys/vm/stat_refresh") << '1';
  return KernelCount("/proc/vmstat", "nr_foll_pin_acquired") - KernelCount("/proc/vmstat", "nr_foll_pin_released");
}

int64_t SlabKiB() { return KernelCount("/proc/meminfo", "SUnreclaim:"); }

// Linux 5.10 keeps the task of each process that is killed with a queue pair of rxe, without this module as well.
bool KernelKeepsTasks() {
  utsname system = {};
  uname(&system);
  return std::string(system.release).starts_with("5.10.");
}

// Kills with everything alive, and in turn with them kills at any moment of the start, when things are half made.
TEST(Kill, LeavesNothing) {
  const char* wanted = std::getenv("RNICD_FR_KILLS");
  const int kills = wanted != nullptr ? std::atoi(wanted) : 100;
  const std::string before = Objects();
  const int64_t pinned = PinnedPages();
  const auto kill_one = [](int number) {
    if (number % 2 == 0) return KillAt([&](int progress) { WaitForChains(progress, 1 + number % 8); });
    return KillAt([&](int) { usleep(static_cast<useconds_t>(number) * 7919 % kStartMicroseconds); });
  };
  // The first ones fill the kernel's caches.
  for (int i = 0; i < kills / 5; ++i) ASSERT_EQ(kill_one(i), 128 + SIGKILL) << "kill " << i;
  const int64_t slab = SlabKiB();
  for (int i = kills / 5; i < kills; ++i) ASSERT_EQ(kill_one(i), 128 + SIGKILL) << "kill " << i;
  EXPECT_EQ(Objects(), before);
  EXPECT_EQ(PinnedPages(), pinned);
  if (!KernelKeepsTasks()) {
    EXPECT_LT(SlabKiB() - slab, kSlabNoiseKiB);
  }
  EXPECT_EQ(ModuleUsers(), 0);
  std::printf("%d kills: %ld pages pinned, %+ld KiB of slab\n", kills, PinnedPages() - pinned, SlabKiB() - slab);
}

// A third card, which may be removed. rxe waits for the last context, so the removal ends with the test's Card.
TEST(Removal, DomainSaysThatTheCardIsGone) {
  ASSERT_EQ(Output("ip link add fr0 type dummy && ip link set fr0 up && rdma link add rxc type rxe netdev fr0 && "
                   "bash -c 'source tests/vm/cards.sh; wait_until 10 gid_slot rxc fe80:*' | wc -l"),
            "1\n");
  const Descriptor control(OpenControl());
  FILE* removal = nullptr;
  {
    const Card card("rxc");
    const Pages pages(8);
    Domain domain(control.number(), card);
    uint32_t mapping = 0;
    rnicd_fr_create_region region;
    ASSERT_EQ(domain.Map(pages, mapping), 0);
    ASSERT_EQ(domain.CreateRegion(8, region), 0);
    std::vector<rnicd_fr_run> runs = {{.mapping = mapping, .page = 0, .count = 8, .reserved = 0}};
    ASSERT_EQ(domain.Run(RegisterOp({.region = region.region, .length = 8 * kPage}, 0, 1), runs), 0);
    removal = popen("rdma link delete rxc", "r");
    int error = 0;
    while (error == 0) error = domain.CreateRegion(1, region);
    EXPECT_EQ(error, ENODEV);
    EXPECT_EQ(domain.Unmap(mapping), ENODEV);
    EXPECT_EQ(domain.Map(pages, mapping), ENODEV);
    EXPECT_EQ(domain.Run(InvalidateOp(1, 0, 0), {}), -ENODEV);
    rnicd_fr_take again = TakeRequest(card);
    EXPECT_EQ(Call(control.number(), RNICD_FR_TAKE, &again), ENODEV);
  }
  EXPECT_EQ(pclose(removal), 0);
  Output("ip link delete fr0");
}

}  // namespace
