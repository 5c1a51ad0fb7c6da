#include <windows.h>
// Behind windows.h, whose types it uses.
#include <aclapi.h>
#include <sddl.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/files/safe_file.h"
#include "base/status.h"
#include "base/windows_status.h"

namespace rnicd {
namespace {

// Rights that allow changing a file's bytes, or acquiring the right to change them.
constexpr DWORD kChanges = FILE_WRITE_DATA | FILE_APPEND_DATA | WRITE_DAC | WRITE_OWNER | GENERIC_WRITE | GENERIC_ALL;

using Sid = std::array<std::byte, SECURITY_MAX_SID_SIZE>;
struct LocalFreeing {
  void operator()(void* memory) const { LocalFree(memory); }
};

absl::Status Refused(const std::string& path, const std::string& cause) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", cause));
}

absl::Status Failed(const std::string& path, std::string_view call, DWORD error) {
  return Refused(path, WindowsDetail(call, error));
}

// The accounts that may own a trusted file and write to it: the system, the Administrators, and the user of this
// process. OWNER RIGHTS stands for one of these, because the owner is checked as well.
class Trusted {
 public:
  Trusted() {
    Add(WinLocalSystemSid);
    Add(WinBuiltinAdministratorsSid);
    Add(WinCreatorOwnerRightsSid);
    HANDLE token = nullptr;
    if (OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token) != 0) {
      const UniqueFd owned(HandleToLong(token));
      DWORD bytes = sizeof(user_);
      GetTokenInformation(token, TokenUser, user_.data(), bytes, &bytes);
    }
  }
  Trusted(const Trusted&) = delete;
  Trusted& operator=(const Trusted&) = delete;

  bool Includes(PSID sid) {
    PSID user = reinterpret_cast<TOKEN_USER*>(user_.data())->User.Sid;
    return std::any_of(known_.begin(), known_.end(), [sid](Sid& known) { return EqualSid(sid, known.data()) != 0; }) ||
           (user != nullptr && EqualSid(sid, user) != 0);
  }

 private:
  void Add(WELL_KNOWN_SID_TYPE kind) {
    DWORD bytes = SECURITY_MAX_SID_SIZE;
    CreateWellKnownSid(kind, nullptr, known_[added_++].data(), &bytes);
  }

  std::array<Sid, 3> known_{};
  size_t added_ = 0;
  alignas(TOKEN_USER) std::array<std::byte, sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE> user_{};
};

// Whether only trusted accounts may change the file.
bool OnlyTrustedWrite(PACL list, Trusted& trusted) {
  if (list == nullptr) {
    return false;
  }
  for (DWORD index = 0; index < list->AceCount; ++index) {
    void* entry = nullptr;
    if (GetAce(list, index, &entry) == 0) {
      return false;
    }
    const auto* const allowed = static_cast<ACCESS_ALLOWED_ACE*>(entry);
    if ((allowed->Header.AceFlags & INHERIT_ONLY_ACE) != 0 || allowed->Header.AceType == ACCESS_DENIED_ACE_TYPE) {
      continue;
    }
    // Other kinds of entries are not examined.
    if (allowed->Header.AceType != ACCESS_ALLOWED_ACE_TYPE) {
      return false;
    }
    if ((allowed->Mask & kChanges) != 0 && !trusted.Includes(const_cast<DWORD*>(&allowed->SidStart))) {
      return false;
    }
  }
  return true;
}

absl::Status CheckOwnerAndRights(const std::string& path, HANDLE file) {
  PSID owner = nullptr;
  PACL list = nullptr;
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  const DWORD error = GetSecurityInfo(file, SE_FILE_OBJECT, OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION,
                                      &owner, nullptr, &list, nullptr, &descriptor);
  if (error != ERROR_SUCCESS) {
    return Failed(path, "GetSecurityInfo", error);
  }
  const std::unique_ptr<void, LocalFreeing> owned(descriptor);
  Trusted trusted;
  if (!trusted.Includes(owner)) {
    return Refused(path, "is owned neither by the Administrators nor by the user of this process");
  }
  return OnlyTrustedWrite(list, trusted) ? absl::OkStatus() : Refused(path, "is writable by others");
}

absl::Status CheckFile(const std::string& path, HANDLE file) {
  BY_HANDLE_FILE_INFORMATION facts;
  if (GetFileType(file) != FILE_TYPE_DISK) {
    return Refused(path, "is not a regular file");
  }
  if (GetFileInformationByHandle(file, &facts) == 0) {
    return Failed(path, "GetFileInformationByHandle", GetLastError());
  }
  if ((facts.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0) {
    return Refused(path, "is a symbolic link");
  }
  if ((facts.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0) {
    return Refused(path, "is not a regular file");
  }
  return CheckOwnerAndRights(path, file);
}

struct Opening {
  DWORD access = 0;
  DWORD disposition = OPEN_EXISTING;
  bool follow_link = false;
  PSECURITY_ATTRIBUTES attributes = nullptr;
};

absl::StatusOr<UniqueFd> OpenChecked(const std::string& path, const Opening& opening) {
  // A directory opens, too, so that it is refused for what it is.
  const DWORD flags = FILE_FLAG_BACKUP_SEMANTICS | (opening.follow_link ? 0 : FILE_FLAG_OPEN_REPARSE_POINT);
  // Paths are UTF-8 everywhere in the project.
  const std::u8string utf8(path.begin(), path.end());
  UniqueFd file(HandleToLong(CreateFileW(std::filesystem::path(utf8).c_str(), opening.access | READ_CONTROL,
                                         FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, opening.attributes,
                                         opening.disposition, flags, nullptr)));
  if (!file.valid()) {
    const DWORD error = GetLastError();
    const bool missing = error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND;
    return missing ? absl::NotFoundError(absl::StrCat(path, ": ", WindowsDetail("CreateFile", error)))
                   : Failed(path, "CreateFile", error);
  }
  RNICD_RETURN_IF_ERROR(CheckFile(path, LongToHandle(file.get())));
  return file;
}

}  // namespace

// Reads to the end instead of relying on a size: the file may grow meanwhile.
absl::StatusOr<std::string> ReadSafeFile(const std::string& path, const SafeFileOptions& options) {
  RNICD_ASSIGN_OR_RETURN(const UniqueFd file,
                         OpenChecked(path, {.access = GENERIC_READ, .follow_link = options.follow_link}));
  std::string content;
  std::array<char, 65536> chunk;
  while (content.size() <= options.bytes_max) {
    DWORD count = 0;
    if (ReadFile(LongToHandle(file.get()), chunk.data(), chunk.size(), &count, nullptr) == 0) {
      return Failed(path, "ReadFile", GetLastError());
    }
    if (count == 0) {
      return content;
    }
    content.append(chunk.data(), count);
  }
  return Refused(path, absl::StrCat("is longer than ", options.bytes_max, " bytes"));
}

// For its owner, the system and the Administrators; nothing is inherited from the folder.
absl::StatusOr<UniqueFd> OpenSafeFileForAppend(const std::string& path) {
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  if (ConvertStringSecurityDescriptorToSecurityDescriptorW(L"D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FA;;;OW)", 1, &descriptor,
                                                           nullptr) == 0) {
    return Failed(path, "ConvertStringSecurityDescriptorToSecurityDescriptor", GetLastError());
  }
  const std::unique_ptr<void, LocalFreeing> owned(descriptor);
  SECURITY_ATTRIBUTES attributes = {.nLength = sizeof(attributes), .lpSecurityDescriptor = descriptor};
  return OpenChecked(path, {.access = FILE_APPEND_DATA | FILE_READ_DATA | FILE_READ_ATTRIBUTES | SYNCHRONIZE,
                            .disposition = OPEN_ALWAYS,
                            .attributes = &attributes});
}

}  // namespace rnicd
