#pragma once

#include <memory>
#include <span>

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {

inline constexpr uint64_t kSize = 4 * kPage;

inline UniqueFd MemoryFile() { return MemoryFile(kSize); }

inline UniqueFd Duplicate(const UniqueFd& file) { return *SystemOs().Duplicate(file.get()); }

// The owner's own writable mapping; unmapped on destruction.
class OwnersMapping {
 public:
  explicit OwnersMapping(int fd) {
    if (const auto mapping = SystemOs().Map(fd, kSize); mapping.ok()) {
      mapping_ = *mapping;
    }
  }
  ~OwnersMapping() {
    if (made()) {
      (void)SystemOs().Unmap(mapping_);
    }
  }
  OwnersMapping(const OwnersMapping&) = delete;
  OwnersMapping& operator=(const OwnersMapping&) = delete;
  bool made() const { return !mapping_.empty(); }
  char* bytes() const { return reinterpret_cast<char*>(mapping_.data()); }

 private:
  std::span<std::byte> mapping_;
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

  FaultyOs os_{SystemOs()};
  const std::unique_ptr<FileWatch> watch_ = *NewFileWatch();
  LingeringMemory lingering_{*watch_};
  std::shared_ptr<Ledger> ledger_ = std::make_shared<Ledger>(Limits{}, nullptr);
};

}  // namespace rnicd::core
