// What is freed is cleared first: secrets of grants, tokens and tickets pass through strings, messages and the buffers
// of libraries. Replaces operators of the standard library, whose `new` is malloc. Not in a build with a sanitizer,
// which has allocators of its own.
#include <new>

#include "base/secrets/wipe.h"

// NOLINTBEGIN(misc-new-delete-overloads): those of the standard library stay.
void operator delete(void* memory) noexcept { rnicd::WipeAndFree(memory); }
void operator delete[](void* memory) noexcept { rnicd::WipeAndFree(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { rnicd::WipeAndFree(memory); }
void operator delete[](void* memory, std::size_t /*size*/) noexcept { rnicd::WipeAndFree(memory); }
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept { rnicd::WipeAndFree(memory); }
void operator delete[](void* memory, const std::nothrow_t& /*tag*/) noexcept { rnicd::WipeAndFree(memory); }
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { rnicd::WipeAndFree(memory); }
void operator delete[](void* memory, std::align_val_t /*alignment*/) noexcept { rnicd::WipeAndFree(memory); }
void operator delete(void* memory, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  rnicd::WipeAndFree(memory);
}
void operator delete[](void* memory, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  rnicd::WipeAndFree(memory);
}
// NOLINTEND(misc-new-delete-overloads)
