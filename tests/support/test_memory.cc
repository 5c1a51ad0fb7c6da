#include "tests/support/test_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/support/calls/expect.h"

namespace rnicd::test {

TestMemory::TestMemory(TestSession& session, uint64_t size) : session_(session) {
  const v1::AllocateMemoryResponse memory = session.Allocate(size);
  id_ = memory.memory_id();
  const UniqueFd file = session.Fetch(memory.fd_ticket());
  // A sealed file refuses new writable mappings.
  mapping_ = std::make_unique<SharedMapping>(file.get(), size);
  EXPECT_EQ(mapping_->bytes().size(), size) << "the memory object cannot be mapped";
  ExpectOk(session.Seal(id_));
}

std::string TestMemory::Text(uint64_t offset, uint64_t count) const {
  const std::span<const std::byte> bytes = mapping_->bytes();
  if (offset > bytes.size() || count > bytes.size() - offset) {
    ADD_FAILURE() << "bytes " << offset << " to " << offset + count << " are not in the memory object";
    return std::string();
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()) + offset, count);
}

void TestMemory::SetText(uint64_t offset, const std::string& text) {
  const std::span<std::byte> bytes = mapping_->bytes();
  if (offset > bytes.size() || text.size() > bytes.size() - offset) {
    ADD_FAILURE() << "bytes " << offset << " to " << offset + text.size() << " are not in the memory object";
    return;
  }
  std::memcpy(bytes.data() + offset, text.data(), text.size());
}

void TestMemory::Fill(std::byte value) { std::ranges::fill(mapping_->bytes(), value); }

const v1::BuildLamResponse& TestMemory::lam() {
  if (!lam_.has_value()) {
    const uint64_t size = mapping_->bytes().size();
    v1::BuildLamRequest request;
    request.set_adapter_id(session_.adapter_id());
    *request.add_mdl_chain() = MdlEntry(id_, 0, size, kBase);
    request.set_length(size);
    const auto built = session_.Call(&MemoryStub::BuildLam, request);
    ExpectOk(built);
    EXPECT_EQ(static_cast<uint64_t>(built.response.adapter_page_array_size()), size / kPage);
    lam_ = built.response;
  }
  return *lam_;
}

std::vector<uint64_t> TestMemory::Pages(const std::vector<size_t>& indices) {
  const v1::BuildLamResponse& mapping = lam();
  std::vector<uint64_t> pages;
  pages.reserve(indices.size());
  for (const size_t index : indices) {
    if (index >= static_cast<size_t>(mapping.adapter_page_array_size())) {
      ADD_FAILURE() << "page " << index << " is not in the mapping";
      return {};
    }
    pages.push_back(mapping.adapter_page_array(static_cast<int>(index)));
  }
  return pages;
}

std::vector<uint64_t> TestMemory::Pages(size_t first, size_t count) {
  std::vector<size_t> indices(count);
  std::iota(indices.begin(), indices.end(), first);
  return Pages(indices);
}

}  // namespace rnicd::test
