#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/support/memory_file.h"
#include "tests/support/test_session.h"

namespace rnicd::test {

// A memory object of the daemon's that this process has mapped as well, so that a test can see the very bytes that a
// peer reads or writes. Sealed; page-wise logical addresses on demand. Each step that fails is a test failure.
// Lifetime: outlived by its session; the mapping goes with it, the object with the session.
class TestMemory {
 public:
  TestMemory(TestSession& session, uint64_t size);
  TestMemory(const TestMemory&) = delete;
  TestMemory& operator=(const TestMemory&) = delete;

  uint64_t id() const { return id_; }
  std::span<std::byte> bytes() { return mapping_->bytes(); }
  // `count` bytes from `offset`, as text.
  std::string Text(uint64_t offset, uint64_t count) const;
  void SetText(uint64_t offset, const std::string& text);
  void Fill(std::byte value);

  // A mapping of the whole object, built once.
  const v1::BuildLamResponse& lam();
  // The logical addresses of these pages of it, in this order.
  std::vector<uint64_t> Pages(const std::vector<size_t>& indices);
  std::vector<uint64_t> Pages(size_t first, size_t count);

 private:
  TestSession& session_;
  uint64_t id_ = 0;
  std::unique_ptr<SharedMapping> mapping_;
  std::optional<v1::BuildLamResponse> lam_;
};

}  // namespace rnicd::test
