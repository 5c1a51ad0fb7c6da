// What a client begins with: the exports of the DLL, the provider and its adapters.

#include <algorithm>
#include <atomic>

#include "tests/networkdirect_model/model.h"

#ifdef _WIN32
#define RNICD_MODEL_EXPORT extern "C" __declspec(dllexport)
#else
#define RNICD_MODEL_EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace rnicd::provider::model {
namespace {

bool IsCard(UINT64 id) { return id >= kFirstCard && id < kFirstCard + kCards; }

// Providers that a client has not released.
std::atomic<int> live_providers{0};

}  // namespace

ND2_ADAPTER_INFO InfoOf(UINT64 card) {
  ND2_ADAPTER_INFO info = {};
  info.InfoVersion = kNdAdapterInfoVersion;
  info.VendorId = 0x5E;
  info.DeviceId = 1;
  info.AdapterId = card;
  info.MaxRegistrationSize = SIZE_T{1} << 30;
  info.MaxWindowSize = SIZE_T{1} << 30;
  info.MaxInitiatorSge = 16;
  info.MaxReceiveSge = 16;
  info.MaxReadSge = 8;
  info.MaxTransferLength = 1U << 30;
  info.MaxInlineDataSize = 256;
  info.MaxInboundReadLimit = 16;
  info.MaxOutboundReadLimit = 16;
  info.MaxReceiveQueueDepth = 4096;
  info.MaxInitiatorQueueDepth = 4096;
  info.MaxCompletionQueueDepth = 8192;
  info.InlineRequestThreshold = 256;
  info.LargeRequestThreshold = 65536;
  info.MaxCallerData = 56;
  info.MaxCalleeData = 148;
  info.AdapterFlags = kNdAdapterInOrderDma | kNdAdapterCqResize | kNdAdapterLoopback;
  return info;
}

sockaddr_in AddressOfCard(UINT64 card, uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(0x0A530005U + static_cast<uint32_t>(card - kFirstCard));
  return address;
}

// --- adapters ---

namespace {

// Gives the object to the client if it wants that interface.
template <typename Made>
HRESULT Give(Made* made, REFIID interface_id, void** object) {
  const HRESULT result = made->QueryInterface(interface_id, object);
  made->Release();
  return result;
}

}  // namespace

HRESULT Adapter::CreateOverlappedFile(HANDLE* file) {
  MutexLock lock(model().mutex);
  if (const HRESULT result = model().Check("IND2Adapter::CreateOverlappedFile", domain_->card); NdFailed(result)) {
    return result;
  }
  *file = NewOverlappedFile(model());
  return kNdSuccess;
}

HRESULT Adapter::Query(ND2_ADAPTER_INFO* info, ULONG* bytes) {
  MutexLock lock(model().mutex);
  if (const HRESULT result = model().Check("IND2Adapter::Query", domain_->card); NdFailed(result)) {
    return result;
  }
  if (info == nullptr || *bytes < sizeof(*info)) {
    *bytes = sizeof(*info);
    return kNdBufferOverflow;
  }
  if (info->InfoVersion != kNdAdapterInfoVersion) {
    return kNdInvalidParameter;
  }
  *info = InfoOf(domain_->card);
  return kNdSuccess;
}

HRESULT Adapter::CreateCompletionQueue(REFIID interface_id, HANDLE file, ULONG depth, USHORT /*group*/,
                                       KAFFINITY /*affinity*/, void** object) {
  CompletionQueue* made = nullptr;
  {
    MutexLock lock(model().mutex);
    if (const HRESULT result = model().Check("IND2Adapter::CreateCompletionQueue", domain_->card); NdFailed(result)) {
      return result;
    }
    if (depth == 0 || depth > InfoOf(domain_->card).MaxCompletionQueueDepth) {
      return kNdInvalidParameter;
    }
    made = new CompletionQueue(shared_model(), domain_, file, depth);
  }
  return Give(made, interface_id, object);
}

HRESULT Adapter::CreateMemoryRegion(REFIID interface_id, HANDLE file, void** object) {
  MemoryRegion* made = nullptr;
  {
    MutexLock lock(model().mutex);
    if (const HRESULT result = model().Check("IND2Adapter::CreateMemoryRegion", domain_->card); NdFailed(result)) {
      return result;
    }
    made = new MemoryRegion(shared_model(), domain_, file);
  }
  return Give(made, interface_id, object);
}

HRESULT Adapter::CreateMemoryWindow(REFIID interface_id, void** object) {
  MemoryWindow* made = nullptr;
  {
    MutexLock lock(model().mutex);
    if (const HRESULT result = model().Check("IND2Adapter::CreateMemoryWindow", domain_->card); NdFailed(result)) {
      return result;
    }
    made = new MemoryWindow(shared_model(), domain_);
  }
  return Give(made, interface_id, object);
}

HRESULT Adapter::CreateQueuePair(REFIID interface_id, IUnknown* receive_queue, IUnknown* initiator_queue,
                                 void* /*context*/, ULONG receive_depth, ULONG initiator_depth, ULONG receive_sge,
                                 ULONG initiator_sge, ULONG inline_bytes, void** object) {
  QueuePair* made = nullptr;
  {
    MutexLock lock(model().mutex);
    if (const HRESULT result = model().Check("IND2Adapter::CreateQueuePair", domain_->card); NdFailed(result)) {
      return result;
    }
    const ND2_ADAPTER_INFO info = InfoOf(domain_->card);
    if (receive_depth == 0 || receive_depth > info.MaxReceiveQueueDepth || initiator_depth == 0 ||
        initiator_depth > info.MaxInitiatorQueueDepth || receive_sge > info.MaxReceiveSge ||
        initiator_sge > info.MaxInitiatorSge || inline_bytes > info.MaxInlineDataSize) {
      return kNdInvalidParameter;
    }
    made = new QueuePair(shared_model(), domain_, *static_cast<CompletionQueue*>(receive_queue),
                         *static_cast<CompletionQueue*>(initiator_queue),
                         {.receive_depth = receive_depth,
                          .initiator_depth = initiator_depth,
                          .receive_sge = receive_sge,
                          .initiator_sge = initiator_sge,
                          .inline_bytes = inline_bytes});
  }
  return Give(made, interface_id, object);
}

HRESULT Adapter::CreateConnector(REFIID interface_id, HANDLE file, void** object) {
  Connector* made = nullptr;
  {
    MutexLock lock(model().mutex);
    if (const HRESULT result = model().Check("IND2Adapter::CreateConnector", domain_->card); NdFailed(result)) {
      return result;
    }
    made = new Connector(shared_model(), domain_, file);
  }
  return Give(made, interface_id, object);
}

HRESULT Adapter::CreateListener(REFIID interface_id, HANDLE file, void** object) {
  Listener* made = nullptr;
  {
    MutexLock lock(model().mutex);
    if (const HRESULT result = model().Check("IND2Adapter::CreateListener", domain_->card); NdFailed(result)) {
      return result;
    }
    made = new Listener(shared_model(), domain_, file);
  }
  return Give(made, interface_id, object);
}

// --- the provider ---

Provider::Provider(std::shared_ptr<Model> model) : Object(std::move(model)) { ++live_providers; }
Provider::~Provider() { --live_providers; }

HRESULT Provider::QueryAddressList(SOCKET_ADDRESS_LIST* list, ULONG* bytes) {
  // The addresses follow the list.
  constexpr ULONG kListBytes = sizeof(SOCKET_ADDRESS_LIST) + (kCards - 1) * sizeof(SOCKET_ADDRESS);
  constexpr ULONG kBytes = kListBytes + kCards * sizeof(sockaddr_in);
  if (list == nullptr || *bytes < kBytes) {
    *bytes = kBytes;
    return kNdBufferOverflow;
  }
  list->iAddressCount = kCards;
  auto* place = reinterpret_cast<std::byte*>(list) + kListBytes;
  for (int index = 0; index < kCards; ++index) {
    const sockaddr_in address = AddressOfCard(kFirstCard + static_cast<UINT64>(index), 0);
    std::memcpy(place, &address, sizeof(address));
    list->Address[index] = {.lpSockaddr = reinterpret_cast<sockaddr*>(place), .iSockaddrLength = sizeof(address)};
    place += sizeof(address);
  }
  return kNdSuccess;
}

HRESULT Provider::ResolveAddress(const sockaddr* address, ULONG bytes, UINT64* adapter_id) {
  MutexLock lock(model().mutex);
  for (UINT64 card = kFirstCard; IsCard(card); ++card) {
    const sockaddr_in own = AddressOfCard(card, 0);
    if (bytes >= sizeof(own) && address->sa_family == AF_INET &&
        reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr == own.sin_addr.s_addr) {
      *adapter_id = card;
      return model().Check("IND2Provider::ResolveAddress", card);
    }
  }
  return kNdInvalidAddress;
}

HRESULT Provider::OpenAdapter(REFIID interface_id, UINT64 adapter_id, void** object) {
  Adapter* made = nullptr;
  {
    MutexLock lock(model().mutex);
    if (const HRESULT result = model().Check("IND2Provider::OpenAdapter", adapter_id); NdFailed(result)) {
      return result;
    }
    if (!IsCard(adapter_id)) {
      return kNdInvalidParameter;
    }
    made = new Adapter(shared_model(), adapter_id);
  }
  return Give(made, interface_id, object);
}

// --- exports ---

RNICD_MODEL_EXPORT HRESULT STDMETHODCALLTYPE DllGetClassObject(const GUID& /*class_id*/, REFIID interface_id,
                                                               void** object) {
  return Give(new Provider(std::make_shared<Model>()), interface_id, object);
}

RNICD_MODEL_EXPORT HRESULT STDMETHODCALLTYPE DllCanUnloadNow() { return live_providers == 0 ? 0 : 1; }

RNICD_MODEL_EXPORT ModelControl* RnicdNetworkDirectModelControl(IND2Provider* provider) {
  return &static_cast<Provider*>(provider)->model();
}

}  // namespace rnicd::provider::model
