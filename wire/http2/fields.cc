#include "wire/http2/fields.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/secrets/wipe.h"
#include "base/system/heap.h"

namespace rnicd::http2 {
namespace {

void FreeWiped(void* memory, void* /*data*/) { WipeAndFree(memory); }

void* ReallocateWiped(void* memory, size_t size, void* /*data*/) {
  void* const moved = std::malloc(size);
  if (moved != nullptr && memory != nullptr) {
    std::memcpy(moved, memory, std::min(size, AllocatedBytes(memory)));
    WipeAndFree(memory);
  }
  return moved;
}

}  // namespace

std::string_view TextOf(const uint8_t* bytes, size_t size) { return {reinterpret_cast<const char*>(bytes), size}; }

std::vector<nghttp2_nv> NameValues(const std::vector<HeaderField>& fields) {
  std::vector<nghttp2_nv> values;
  values.reserve(fields.size());
  for (const auto& [name, value] : fields) {
    // nghttp2's type only lacks a const.
    values.push_back({.name = reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
                      .value = reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())),
                      .namelen = name.size(),
                      .valuelen = value.size(),
                      .flags = NGHTTP2_NV_FLAG_NONE});
  }
  return values;
}

nghttp2_mem WipingMemory() {
  return {.mem_user_data = nullptr,
          .malloc = [](size_t size, void* /*data*/) { return std::malloc(size); },
          .free = FreeWiped,
          .calloc = [](size_t count, size_t size, void* /*data*/) { return std::calloc(count, size); },
          .realloc = ReallocateWiped};
}

}  // namespace rnicd::http2
