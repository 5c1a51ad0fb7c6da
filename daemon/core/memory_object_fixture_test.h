#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "daemon/core/core_fixture_test.h"

namespace rnicd::core {

inline constexpr uint64_t kSize = 4 * kPage;

inline UniqueFd MemoryFile(uint64_t size = kSize, unsigned flags = MFD_ALLOW_SEALING) {
  UniqueFd file(memfd_create("owner", flags));
  EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(size)), 0) << strerror(errno);
  return file;
}

inline UniqueFd Duplicate(const UniqueFd& file) { return UniqueFd(dup(file.get())); }

// The owner's own writable mapping; unmapped on destruction.
class OwnersMapping {
 public:
  explicit OwnersMapping(int fd) : address_(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) {}
  ~OwnersMapping() {
    if (made()) {
      munmap(address_, kSize);
    }
  }
  bool made() const { return address_ != MAP_FAILED; }
  char* bytes() const { return static_cast<char*>(address_); }

 private:
  void* const address_;
};

class MemoryObjectTest : public ::testing::Test {
 protected:
  std::shared_ptr<MemoryObject> NewObject(uint64_t size = kSize) {
    return std::make_shared<MemoryObject>(os_, lingering_, size, PinsOf(ledger_),
                                          MemoryCharges{.object = *Charge::Take(ledger_, Resource::kMemoryObjects, 1),
                                                        .bytes = *Charge::Take(ledger_, Resource::kMemoryBytes, size)});
  }
  std::shared_ptr<MemoryObject> Attached(const UniqueFd& file) {
    auto object = NewObject();
    EXPECT_TRUE(object->Attach(Duplicate(file)).ok());
    return object;
  }
  uint64_t ChargedBytes() const { return ledger_->used(Resource::kMemoryBytes); }

  FaultyOs os_{LinuxOs()};
  const std::unique_ptr<FileWatch> watch_ = *NewInotifyWatch();
  LingeringMemory lingering_{*watch_};
  std::shared_ptr<Ledger> ledger_ = std::make_shared<Ledger>(Limits{}, nullptr);
};

}  // namespace rnicd::core
