#pragma once

// The Network Direct service provider interface, version 2, as far as this project uses it: declarations of our own,
// from its documentation. Names of interfaces, methods and fields are the interface's; the order of methods is its
// binary form.
//
// Results:  HRESULTs with the values of NTSTATUS, so kNdPending is a success code: compare with it first.
// Calls:    a method with an OVERLAPPED either completes at once, and then nothing is notified, or returns kNdPending.
//           Then it is notified through the file that its object was created with, and GetOverlappedResult has the
//           status, which may be kNdPending again.
// Threads:  objects may be used from any thread. Nothing calls back into the client.
// Lifetime: COM's. Objects live in the process that made them.
// Source:   the Network Direct SPI of Microsoft, version 2.

#include <cstddef>

#include "provider/networkdirect/card/nd2_types.h"

namespace rnicd::provider {

constexpr HRESULT NdCode(uint32_t value) { return static_cast<HRESULT>(value); }
constexpr bool NdFailed(HRESULT result) { return result < 0; }

inline constexpr HRESULT kNdSuccess = 0;
inline constexpr HRESULT kNdTimeout = NdCode(0x00000102);
inline constexpr HRESULT kNdPending = NdCode(0x00000103);
inline constexpr HRESULT kNdBufferOverflow = NdCode(0x80000005);
inline constexpr HRESULT kNdDeviceBusy = NdCode(0x80000011);
inline constexpr HRESULT kNdNoMoreEntries = NdCode(0x8000001A);
inline constexpr HRESULT kNdUnsuccessful = NdCode(0xC0000001);
inline constexpr HRESULT kNdAccessViolation = NdCode(0xC0000005);
inline constexpr HRESULT kNdInvalidHandle = NdCode(0xC0000008);
inline constexpr HRESULT kNdInvalidParameter = NdCode(0xC000000D);
inline constexpr HRESULT kNdInvalidDeviceRequest = NdCode(0xC0000010);
inline constexpr HRESULT kNdNoMemory = NdCode(0xC0000017);
inline constexpr HRESULT kNdInvalidParameterMix = NdCode(0xC0000030);
inline constexpr HRESULT kNdDataOverrun = NdCode(0xC000003C);
inline constexpr HRESULT kNdSharingViolation = NdCode(0xC0000043);
inline constexpr HRESULT kNdInsufficientResources = NdCode(0xC000009A);
inline constexpr HRESULT kNdDeviceNotReady = NdCode(0xC00000A3);
inline constexpr HRESULT kNdIoTimeout = NdCode(0xC00000B5);
inline constexpr HRESULT kNdNotSupported = NdCode(0xC00000BB);
inline constexpr HRESULT kNdInternalError = NdCode(0xC00000E5);
inline constexpr HRESULT kNdCanceled = NdCode(0xC0000120);
inline constexpr HRESULT kNdRemoteError = NdCode(0xC000013D);
inline constexpr HRESULT kNdInvalidAddress = NdCode(0xC0000141);
inline constexpr HRESULT kNdInvalidDeviceState = NdCode(0xC0000184);
inline constexpr HRESULT kNdInvalidBufferSize = NdCode(0xC0000206);
inline constexpr HRESULT kNdTooManyAddresses = NdCode(0xC0000209);
inline constexpr HRESULT kNdAddressAlreadyExists = NdCode(0xC000020A);
inline constexpr HRESULT kNdConnectionRefused = NdCode(0xC0000236);
inline constexpr HRESULT kNdConnectionInvalid = NdCode(0xC000023A);
inline constexpr HRESULT kNdConnectionActive = NdCode(0xC000023B);
inline constexpr HRESULT kNdNetworkUnreachable = NdCode(0xC000023C);
inline constexpr HRESULT kNdHostUnreachable = NdCode(0xC000023D);
inline constexpr HRESULT kNdConnectionAborted = NdCode(0xC0000241);
inline constexpr HRESULT kNdDeviceRemoved = NdCode(0xC00002B6);

// Flags of IND2MemoryRegion::Register. Remote write contains local write.
inline constexpr ULONG kNdMrLocalWrite = 0x1;
inline constexpr ULONG kNdMrRemoteRead = 0x2;
inline constexpr ULONG kNdMrRemoteWrite = 0x5;
inline constexpr ULONG kNdMrReadSink = 0x8;
// Flags of requests.
inline constexpr ULONG kNdOpSilentSuccess = 0x1;
inline constexpr ULONG kNdOpReadFence = 0x2;
inline constexpr ULONG kNdOpSolicit = 0x4;
inline constexpr ULONG kNdOpAllowRead = 0x8;
inline constexpr ULONG kNdOpAllowWrite = 0x10;
inline constexpr ULONG kNdOpInline = 0x20;
// What a completion queue notifies of.
inline constexpr ULONG kNdNotifyErrors = 0;
inline constexpr ULONG kNdNotifyAny = 1;
inline constexpr ULONG kNdNotifySolicited = 2;
// ND2_ADAPTER_INFO::AdapterFlags.
inline constexpr ULONG kNdAdapterInOrderDma = 0x1;
inline constexpr ULONG kNdAdapterCqResize = 0x100;
inline constexpr ULONG kNdAdapterLoopback = 0x10000;

struct ND2_SGE {
  void* Buffer;
  ULONG BufferLength;
  UINT32 MemoryRegionToken;
};
static_assert(sizeof(ND2_SGE) == 16);

enum ND2_REQUEST_TYPE {
  Nd2RequestTypeReceive = 0,
  Nd2RequestTypeSend = 1,
  Nd2RequestTypeBind = 2,
  Nd2RequestTypeInvalidate = 3,
  Nd2RequestTypeRead = 4,
  Nd2RequestTypeWrite = 5,
};

struct ND2_RESULT {
  HRESULT Status;
  // Defined for a receive only.
  ULONG BytesTransferred;
  void* QueuePairContext;
  void* RequestContext;
  ND2_REQUEST_TYPE RequestType;
};
static_assert(sizeof(ND2_RESULT) == 32 && offsetof(ND2_RESULT, RequestType) == 24);

struct ND2_ADAPTER_INFO {
  // Set by the caller.
  ULONG InfoVersion;
  UINT16 VendorId;
  UINT16 DeviceId;
  UINT64 AdapterId;
  SIZE_T MaxRegistrationSize;
  SIZE_T MaxWindowSize;
  ULONG MaxInitiatorSge;
  ULONG MaxReceiveSge;
  ULONG MaxReadSge;
  ULONG MaxTransferLength;
  ULONG MaxInlineDataSize;
  ULONG MaxInboundReadLimit;
  ULONG MaxOutboundReadLimit;
  ULONG MaxReceiveQueueDepth;
  ULONG MaxInitiatorQueueDepth;
  ULONG MaxSharedReceiveQueueDepth;
  ULONG MaxCompletionQueueDepth;
  ULONG InlineRequestThreshold;
  ULONG LargeRequestThreshold;
  ULONG MaxCallerData;
  ULONG MaxCalleeData;
  ULONG AdapterFlags;
};
static_assert(sizeof(ND2_ADAPTER_INFO) == 96 && offsetof(ND2_ADAPTER_INFO, AdapterFlags) == 92);
inline constexpr ULONG kNdAdapterInfoVersion = 1;

inline constexpr IID kIidNd2Provider = {0x49EAE6C1, 0x76C4, 0x46D0, {0x80, 0x03, 0x5C, 0x2E, 0xAA, 0x2C, 0x9A, 0x8E}};
inline constexpr IID kIidNd2Adapter = {0xD89C798C, 0x4823, 0x4D69, {0x84, 0x6C, 0xDF, 0xDC, 0xCF, 0xF9, 0xE5, 0xF3}};
inline constexpr IID kIidNd2CompletionQueue = {
    0x20CC445E, 0x64A0, 0x4CBB, {0xAA, 0x75, 0xF6, 0xA7, 0x25, 0x1F, 0xDA, 0x9E}};
inline constexpr IID kIidNd2MemoryRegion = {
    0x55DFEA2F, 0xBC56, 0x4982, {0x8A, 0x45, 0x03, 0x01, 0xBE, 0x46, 0xC4, 0x13}};
inline constexpr IID kIidNd2MemoryWindow = {
    0x070FE1F5, 0x0AB5, 0x4361, {0x88, 0xDB, 0x97, 0x4B, 0xA7, 0x04, 0xD4, 0xB9}};
inline constexpr IID kIidNd2QueuePair = {0xEEF2F332, 0xB75D, 0x4063, {0xBC, 0xE3, 0x3A, 0x0B, 0xAD, 0x2D, 0x02, 0xCE}};
inline constexpr IID kIidNd2Connector = {0x7DD615C4, 0x6B4C, 0x4866, {0x95, 0x0C, 0xF3, 0xB1, 0xD2, 0x5A, 0x53, 0x02}};
inline constexpr IID kIidNd2Listener = {0x65D23D83, 0x3A57, 0x4E02, {0x86, 0xA4, 0x35, 0x01, 0x65, 0xC2, 0xD1, 0x30}};

class IND2Overlapped : public IUnknown {
 public:
  virtual HRESULT STDMETHODCALLTYPE CancelOverlappedRequests() = 0;
  virtual HRESULT STDMETHODCALLTYPE GetOverlappedResult(OVERLAPPED* call, BOOL wait) = 0;

 protected:
  ~IND2Overlapped() = default;
};

class IND2CompletionQueue : public IND2Overlapped {
 public:
  virtual HRESULT STDMETHODCALLTYPE GetNotifyAffinity(USHORT* group, KAFFINITY* affinity) = 0;
  virtual HRESULT STDMETHODCALLTYPE Resize(ULONG depth) = 0;
  virtual HRESULT STDMETHODCALLTYPE Notify(ULONG type, OVERLAPPED* call) = 0;
  // Number of results.
  virtual ULONG STDMETHODCALLTYPE GetResults(ND2_RESULT results[], ULONG room) = 0;

 protected:
  ~IND2CompletionQueue() = default;
};

class IND2MemoryRegion : public IND2Overlapped {
 public:
  virtual HRESULT STDMETHODCALLTYPE Register(const void* buffer, SIZE_T bytes, ULONG flags, OVERLAPPED* call) = 0;
  virtual HRESULT STDMETHODCALLTYPE Deregister(OVERLAPPED* call) = 0;
  virtual UINT32 STDMETHODCALLTYPE GetLocalToken() = 0;
  // In network byte order.
  virtual UINT32 STDMETHODCALLTYPE GetRemoteToken() = 0;

 protected:
  ~IND2MemoryRegion() = default;
};

class IND2MemoryWindow : public IUnknown {
 public:
  // New with each Bind, and known when that returns.
  virtual UINT32 STDMETHODCALLTYPE GetRemoteToken() = 0;

 protected:
  ~IND2MemoryWindow() = default;
};

class IND2QueuePair : public IUnknown {
 public:
  virtual HRESULT STDMETHODCALLTYPE Flush() = 0;
  virtual HRESULT STDMETHODCALLTYPE Send(void* context, const ND2_SGE entries[], ULONG count, ULONG flags) = 0;
  virtual HRESULT STDMETHODCALLTYPE Receive(void* context, const ND2_SGE entries[], ULONG count) = 0;
  virtual HRESULT STDMETHODCALLTYPE Bind(void* context, IUnknown* region, IUnknown* window, const void* buffer,
                                         SIZE_T bytes, ULONG flags) = 0;
  virtual HRESULT STDMETHODCALLTYPE Invalidate(void* context, IUnknown* window, ULONG flags) = 0;
  virtual HRESULT STDMETHODCALLTYPE Read(void* context, const ND2_SGE entries[], ULONG count, UINT64 remote_address,
                                         UINT32 remote_token, ULONG flags) = 0;
  virtual HRESULT STDMETHODCALLTYPE Write(void* context, const ND2_SGE entries[], ULONG count, UINT64 remote_address,
                                          UINT32 remote_token, ULONG flags) = 0;

 protected:
  ~IND2QueuePair() = default;
};

class IND2Connector : public IND2Overlapped {
 public:
  virtual HRESULT STDMETHODCALLTYPE Bind(const sockaddr* address, ULONG bytes) = 0;
  virtual HRESULT STDMETHODCALLTYPE Connect(IUnknown* queue_pair, const sockaddr* address, ULONG bytes,
                                            ULONG inbound_read_limit, ULONG outbound_read_limit,
                                            const void* private_data, ULONG private_bytes, OVERLAPPED* call) = 0;
  virtual HRESULT STDMETHODCALLTYPE CompleteConnect(OVERLAPPED* call) = 0;
  virtual HRESULT STDMETHODCALLTYPE Accept(IUnknown* queue_pair, ULONG inbound_read_limit, ULONG outbound_read_limit,
                                           const void* private_data, ULONG private_bytes, OVERLAPPED* call) = 0;
  virtual HRESULT STDMETHODCALLTYPE Reject(const void* private_data, ULONG private_bytes) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetReadLimits(ULONG* inbound, ULONG* outbound) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetPrivateData(void* data, ULONG* bytes) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetLocalAddress(sockaddr* address, ULONG* bytes) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetPeerAddress(sockaddr* address, ULONG* bytes) = 0;
  virtual HRESULT STDMETHODCALLTYPE NotifyDisconnect(OVERLAPPED* call) = 0;
  virtual HRESULT STDMETHODCALLTYPE Disconnect(OVERLAPPED* call) = 0;

 protected:
  ~IND2Connector() = default;
};

class IND2Listener : public IND2Overlapped {
 public:
  virtual HRESULT STDMETHODCALLTYPE Bind(const sockaddr* address, ULONG bytes) = 0;
  virtual HRESULT STDMETHODCALLTYPE Listen(ULONG backlog) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetLocalAddress(sockaddr* address, ULONG* bytes) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetConnectionRequest(IUnknown* connector, OVERLAPPED* call) = 0;

 protected:
  ~IND2Listener() = default;
};

class IND2Adapter : public IUnknown {
 public:
  virtual HRESULT STDMETHODCALLTYPE CreateOverlappedFile(HANDLE* file) = 0;
  virtual HRESULT STDMETHODCALLTYPE Query(ND2_ADAPTER_INFO* info, ULONG* bytes) = 0;
  virtual HRESULT STDMETHODCALLTYPE QueryAddressList(SOCKET_ADDRESS_LIST* list, ULONG* bytes) = 0;
  virtual HRESULT STDMETHODCALLTYPE CreateCompletionQueue(REFIID interface_id, HANDLE file, ULONG depth, USHORT group,
                                                          KAFFINITY affinity, void** object) = 0;
  virtual HRESULT STDMETHODCALLTYPE CreateMemoryRegion(REFIID interface_id, HANDLE file, void** object) = 0;
  virtual HRESULT STDMETHODCALLTYPE CreateMemoryWindow(REFIID interface_id, void** object) = 0;
  virtual HRESULT STDMETHODCALLTYPE CreateSharedReceiveQueue(REFIID interface_id, HANDLE file, ULONG depth,
                                                             ULONG max_sge, ULONG notify_threshold, USHORT group,
                                                             KAFFINITY affinity, void** object) = 0;
  virtual HRESULT STDMETHODCALLTYPE CreateQueuePair(REFIID interface_id, IUnknown* receive_queue,
                                                    IUnknown* initiator_queue, void* context, ULONG receive_depth,
                                                    ULONG initiator_depth, ULONG receive_sge, ULONG initiator_sge,
                                                    ULONG inline_bytes, void** object) = 0;
  virtual HRESULT STDMETHODCALLTYPE CreateQueuePairWithSrq(REFIID interface_id, IUnknown* receive_queue,
                                                           IUnknown* initiator_queue, IUnknown* shared_queue,
                                                           void* context, ULONG initiator_depth, ULONG initiator_sge,
                                                           ULONG inline_bytes, void** object) = 0;
  virtual HRESULT STDMETHODCALLTYPE CreateConnector(REFIID interface_id, HANDLE file, void** object) = 0;
  virtual HRESULT STDMETHODCALLTYPE CreateListener(REFIID interface_id, HANDLE file, void** object) = 0;

 protected:
  ~IND2Adapter() = default;
};

class IND2Provider : public IUnknown {
 public:
  virtual HRESULT STDMETHODCALLTYPE QueryAddressList(SOCKET_ADDRESS_LIST* list, ULONG* bytes) = 0;
  virtual HRESULT STDMETHODCALLTYPE ResolveAddress(const sockaddr* address, ULONG bytes, UINT64* adapter_id) = 0;
  virtual HRESULT STDMETHODCALLTYPE OpenAdapter(REFIID interface_id, UINT64 adapter_id, void** object) = 0;

 protected:
  ~IND2Provider() = default;
};

// What the DLL of a card exports. The class is the GUID of the provider in the Winsock catalogue; the object is the
// IND2Provider itself, without a class factory.
using DllGetClassObjectFunction = HRESULT(STDMETHODCALLTYPE*)(const GUID& class_id, REFIID interface_id, void** object);
using DllCanUnloadNowFunction = HRESULT(STDMETHODCALLTYPE*)();

}  // namespace rnicd::provider
