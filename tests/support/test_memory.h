#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/support/process/memory_file.h"
#include "tests/support/test_session.h"

namespace rnicd::test {

// A sealed memory object of the daemon that this process also maps, so that a test sees the bytes that a peer reads or
// writes. Provides the logical address of each page on demand. A failing step is a test failure.
// Lifetime: the session outlives this; the destructor unmaps, the session's end releases the object.
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

  // The logical address mapping of the whole object, built once.
  const v1::BuildLamResponse& lam();
  // The logical addresses of these pages of the object, in this order.
  std::vector<uint64_t> Pages(const std::vector<size_t>& indices);
  std::vector<uint64_t> Pages(size_t first, size_t count);

 private:
  TestSession& session_;
  uint64_t id_ = 0;
  std::unique_ptr<SharedMapping> mapping_;
  std::optional<v1::BuildLamResponse> lam_;
};

}  // namespace rnicd::test
