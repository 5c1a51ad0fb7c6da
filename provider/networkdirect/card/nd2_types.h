#pragma once

// The few types of Windows that nd2.h is written with: those of Windows itself, and elsewhere types of the same name
// and size, so that the provider and the model of a card that its tests use are compiled, and checked by sanitizers, on
// Linux too.

#ifdef _WIN32

#include <guiddef.h>
#include <windows.h>
#include <winsock2.h>
#include <ws2tcpip.h>

#else

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#define STDMETHODCALLTYPE

namespace rnicd::provider {

using BOOL = int;
using USHORT = uint16_t;
using UINT16 = uint16_t;
using UINT32 = uint32_t;
using UINT64 = uint64_t;
using ULONG = uint32_t;
using SIZE_T = uint64_t;
using KAFFINITY = uint64_t;
using HRESULT = int32_t;
using HANDLE = void*;

struct GUID {
  uint32_t Data1;
  uint16_t Data2;
  uint16_t Data3;
  uint8_t Data4[8];
};
using IID = GUID;
using REFIID = const IID&;
inline bool IsEqualGUID(const GUID& one, const GUID& other) {
  return __builtin_memcmp(&one, &other, sizeof(GUID)) == 0;
}

// Identity of a call that has not completed. Its address is what a completion names.
struct OVERLAPPED {
  uint64_t Internal;
  uint64_t InternalHigh;
  uint64_t Offset;
  HANDLE hEvent;
};
// What a CompletionPort looks like to the one who completes calls.
class OverlappedQueue {
 public:
  virtual void Post(OVERLAPPED* call) = 0;

 protected:
  ~OverlappedQueue() = default;
};
// What a HANDLE of IND2Adapter::CreateOverlappedFile points to. The one who opened it deletes it, when no call on it is
// pending.
struct OverlappedFile {
  OverlappedQueue* queue = nullptr;
};

struct SOCKET_ADDRESS {
  sockaddr* lpSockaddr;
  int iSockaddrLength;
};
struct SOCKET_ADDRESS_LIST {
  int iAddressCount;
  SOCKET_ADDRESS Address[1];
};

}  // namespace rnicd::provider

#endif

namespace rnicd::provider {

// That of COM, of which nothing but its binary form is used: a destructor that is not accessible is no part of it.
class IUnknown {
 public:
  virtual HRESULT STDMETHODCALLTYPE QueryInterface(REFIID interface_id, void** object) = 0;
  virtual ULONG STDMETHODCALLTYPE AddRef() = 0;
  virtual ULONG STDMETHODCALLTYPE Release() = 0;

 protected:
  ~IUnknown() = default;
};

}  // namespace rnicd::provider
