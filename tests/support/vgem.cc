#include "tests/support/vgem.h"

#include <fcntl.h>
#include <linux/types.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <gtest/gtest.h>

namespace rnicd::test {
namespace {

// The kernel's uapi/drm, which few machines have headers of.
struct DrmVersion {
  int version_major;
  int version_minor;
  int version_patchlevel;
  size_t name_length;
  char* name;
  size_t date_length;
  char* date;
  size_t description_length;
  char* description;
};
struct DrmDumbBuffer {
  __u32 height;
  __u32 width;
  __u32 bits_per_pixel;
  __u32 flags;
  __u32 handle;
  __u32 pitch;
  __u64 size;
};
struct DrmPrimeHandle {
  __u32 handle;
  __u32 flags;
  __s32 fd;
};
constexpr unsigned long kVersion = _IOWR('d', 0x00, DrmVersion);
constexpr unsigned long kHandleToFd = _IOWR('d', 0x2d, DrmPrimeHandle);
constexpr unsigned long kCreateDumb = _IOWR('d', 0xb2, DrmDumbBuffer);

constexpr uint32_t kBitsPerPixel = 32;
constexpr uint32_t kPixelsOfAPage = 1024;

bool IsVgem(const std::string& path) {
  const UniqueFd card(open(path.c_str(), O_RDWR | O_CLOEXEC));
  char name[32] = {};
  DrmVersion version = {};
  version.name = name;
  version.name_length = sizeof(name) - 1;
  return card.valid() && ioctl(card.get(), kVersion, &version) == 0 && std::string_view(name) == "vgem";
}

}  // namespace

std::string VgemPath() {
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/dri", failed)) {
    const std::string path = entry.path();
    if (entry.path().filename().string().starts_with("card") && IsVgem(path)) {
      return path;
    }
  }
  return {};
}

UniqueFd MakeDmabuf(const std::string& card, uint64_t bytes, bool writable) {
  const UniqueFd opened(open(card.c_str(), O_RDWR | O_CLOEXEC));
  DrmDumbBuffer buffer = {};
  buffer.width = kPixelsOfAPage;
  buffer.height = static_cast<uint32_t>(bytes / (kPixelsOfAPage * kBitsPerPixel / 8));
  buffer.bits_per_pixel = kBitsPerPixel;
  if (!opened.valid() || ioctl(opened.get(), kCreateDumb, &buffer) != 0) {
    ADD_FAILURE() << "the card " << card << " makes no buffer: " << strerror(errno);
    return {};
  }
  DrmPrimeHandle exported = {};
  exported.handle = buffer.handle;
  exported.flags = static_cast<__u32>(O_CLOEXEC | (writable ? O_RDWR : 0));
  if (ioctl(opened.get(), kHandleToFd, &exported) != 0) {
    ADD_FAILURE() << "the card " << card << " exports no buffer: " << strerror(errno);
    return {};
  }
  return UniqueFd(exported.fd);
}

}  // namespace rnicd::test
