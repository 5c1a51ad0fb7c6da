#pragma once

// Cards of Network Direct in software. Every object and all data are guarded by one mutex, Model::mutex; one thread
// executes requests.

#include <atomic>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "provider/networkdirect/card/nd2.h"
#include "tests/networkdirect_model/model_control.h"

namespace rnicd::provider::model {

class CompletionQueue;
class Connector;
class Listener;
class MemoryRegion;
class MemoryWindow;
class QueuePair;

inline constexpr int kCards = 2;
inline constexpr UINT64 kFirstCard = 0x5E00;

// What an IND2Adapter isolates: tokens work on its own queue pairs only. Shared by its objects.
struct Domain {
  UINT64 card = 0;
};
using DomainPointer = std::shared_ptr<const Domain>;

// State of all cards of one IND2Provider.
// Lifetime: shared by its objects.
class Model final : public ModelControl {
 public:
  Model();
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  void SetPending(ModelPending mode) override;
  void FailNext(const char* method, HRESULT result, uint32_t skip, uint32_t count) override;
  void Hold(bool held) override;
  void Remove(UINT64 adapter_id) override;
  ModelCounts Count() const override;
  void FirstViolation(char* text, size_t bytes) const override;
  bool IsIdle() const override;
  uint64_t BindsExecuted() const override;
  uint64_t InvalidatesExecuted() const override;

  // All that follows: with the mutex.

  // Result that the method must return at once, without doing anything; kNdSuccess if it works.
  HRESULT Check(const char* method, UINT64 card);
  void Violate(const std::string& text);
  // The thread looks for work.
  void Wake() {
    work_ = true;
    changed_.NotifyAll();
  }
  UINT32 NextToken() { return next_token_ += 7; }
  // The way the next call completes; never kMixed.
  ModelPending NextPending();

  mutable Mutex mutex;
  std::set<QueuePair*> pairs;
  std::map<UINT32, MemoryRegion*> local_tokens;
  // A remote token is that of a region or of a window.
  std::map<UINT32, MemoryRegion*> remote_tokens;
  std::map<UINT32, MemoryWindow*> window_tokens;
  // Listeners by port.
  std::map<uint16_t, Listener*> listeners;
  uint16_t next_port = 49152;
  // Those with overlapped calls, for the removal of their card.
  std::set<class OverlappedCalls*> callers;
  std::set<UINT64> removed;
  uint64_t objects = 0;
  uint64_t regions = 0;
  uint64_t bound = 0;
  uint64_t binds = 0;
  uint64_t invalidates = 0;
  // What the system needs besides the files of clients.
  std::vector<HANDLE> file_ends;

 private:
  struct Fault {
    HRESULT result = kNdSuccess;
    uint32_t skip = 0;
    uint32_t count = 0;
  };

  void Run();
  bool TakeFault(const char* method, HRESULT& result);

  ConditionVariable changed_;
  bool stop_ = false;
  bool held_ = false;
  // True when something may have to be executed.
  bool work_ = false;
  bool running_ = false;
  ModelPending mode_ = ModelPending::kInline;
  uint32_t turn_ = 0;
  // Faults by method.
  std::map<std::string, Fault, std::less<>> faults_;
  std::string violation_;
  UINT32 next_token_ = 0x1000;
  std::thread thread_;
};

// What the kernel would do for a file that is opened for overlapped calls. Model::mutex is held.
HANDLE NewOverlappedFile(Model& model);
// The other ends of such files.
void CloseFileEnds(Model& model);
void BeginPending(HANDLE file, OVERLAPPED* call);
void NotifyPending(HANDLE file, OVERLAPPED* call);

// The calls of an object that have not been completed for good.
class OverlappedCalls {
 public:
  OverlappedCalls(Model& model, HANDLE file, UINT64 card) : model_(model), file_(file), card_(card) {
    model_.callers.insert(this);
  }
  ~OverlappedCalls() {
    if (!calls_.empty()) {
      model_.Violate("an object was released with a call pending");
    }
    model_.callers.erase(this);
  }
  OverlappedCalls(const OverlappedCalls&) = delete;
  OverlappedCalls& operator=(const OverlappedCalls&) = delete;

  UINT64 card() const { return card_; }
  size_t size() const { return calls_.size(); }
  // A call whose status is known: the result of the method.
  HRESULT Finish(OVERLAPPED* call, HRESULT status);
  // A call that waits for End.
  HRESULT Wait(OVERLAPPED* call);
  // Ends a call that waits, if it still does.
  void End(OVERLAPPED* call, HRESULT status);
  bool IsWaiting(OVERLAPPED* call) const;
  // Ends all that wait.
  void EndAll(HRESULT status);
  HRESULT Result(OVERLAPPED* call);

 private:
  struct Call {
    bool waiting = true;
    bool has_second_phase = false;
    HRESULT status = kNdSuccess;
  };

  Model& model_;
  const HANDLE file_;
  const UINT64 card_;
  std::map<OVERLAPPED*, Call> calls_;
};

// Reference counting and the two interfaces of an object.
template <typename Interface, const IID& kId>
class Object : public Interface {
 public:
  explicit Object(std::shared_ptr<Model> model) : model_(std::move(model)) { ++model_->objects; }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID interface_id, void** object) override {
    if (!IsEqualGUID(interface_id, kId)) {
      *object = nullptr;
      return kNdNotSupported;
    }
    AddRef();
    *object = this;
    return kNdSuccess;
  }
  ULONG STDMETHODCALLTYPE AddRef() override { return ++references_; }
  ULONG STDMETHODCALLTYPE Release() override {
    const ULONG left = --references_;
    if (left == 0) {
      // Kept until the mutex in it is unlocked.
      const std::shared_ptr<Model> model = model_;
      MutexLock lock(model->mutex);
      --model->objects;
      delete this;
    }
    return left;
  }

  Model& model() const { return *model_; }
  const std::shared_ptr<Model>& shared_model() const { return model_; }

 protected:
  virtual ~Object() = default;

 private:
  const std::shared_ptr<Model> model_;
  std::atomic<ULONG> references_ = 1;
};

// The same with overlapped calls.
template <typename Interface, const IID& kId>
class OverlappedObject : public Object<Interface, kId> {
 public:
  OverlappedObject(std::shared_ptr<Model> model, HANDLE file, UINT64 card)
      : Object<Interface, kId>(std::move(model)), calls(this->model(), file, card) {}

  HRESULT STDMETHODCALLTYPE CancelOverlappedRequests() override {
    MutexLock lock(this->model().mutex);
    calls.EndAll(kNdCanceled);
    return kNdSuccess;
  }
  HRESULT STDMETHODCALLTYPE GetOverlappedResult(OVERLAPPED* call, BOOL /*wait*/) override {
    MutexLock lock(this->model().mutex);
    return calls.Result(call);
  }

  OverlappedCalls calls;
};

class MemoryRegion final : public OverlappedObject<IND2MemoryRegion, kIidNd2MemoryRegion> {
 public:
  MemoryRegion(std::shared_ptr<Model> model, DomainPointer region_domain, HANDLE file);

  HRESULT STDMETHODCALLTYPE Register(const void* buffer, SIZE_T bytes, ULONG flags, OVERLAPPED* call) override;
  HRESULT STDMETHODCALLTYPE Deregister(OVERLAPPED* call) override;
  UINT32 STDMETHODCALLTYPE GetLocalToken() override { return local_token; }
  UINT32 STDMETHODCALLTYPE GetRemoteToken() override { return remote_token; }

  bool Contains(uint64_t address, uint64_t bytes) const {
    return registered && address >= base && bytes <= length && address - base <= length - bytes;
  }
  void End();

  const DomainPointer domain;
  bool registered = false;
  uint64_t base = 0;
  uint64_t length = 0;
  ULONG rights = 0;
  UINT32 local_token = 0;
  UINT32 remote_token = 0;
  uint64_t windows = 0;

 private:
  ~MemoryRegion() override;
  HRESULT TryRegister(const void* buffer, SIZE_T bytes, ULONG flags);
  HRESULT TryDeregister();
};

class MemoryWindow final : public Object<IND2MemoryWindow, kIidNd2MemoryWindow> {
 public:
  MemoryWindow(std::shared_ptr<Model> model, DomainPointer window_domain);

  UINT32 STDMETHODCALLTYPE GetRemoteToken() override {
    MutexLock lock(model().mutex);
    return token;
  }
  void Unbind();

  const DomainPointer domain;
  UINT32 token = 0;
  // Null if it is not bound.
  MemoryRegion* region = nullptr;
  QueuePair* pair = nullptr;
  uint64_t base = 0;
  uint64_t length = 0;
  ULONG rights = 0;

 private:
  ~MemoryWindow() override;
};

class CompletionQueue final : public OverlappedObject<IND2CompletionQueue, kIidNd2CompletionQueue> {
 public:
  CompletionQueue(std::shared_ptr<Model> model, const DomainPointer& domain, HANDLE file, ULONG depth);

  HRESULT STDMETHODCALLTYPE GetNotifyAffinity(USHORT* /*group*/, KAFFINITY* /*affinity*/) override {
    return kNdNotSupported;
  }
  HRESULT STDMETHODCALLTYPE Resize(ULONG new_depth) override;
  HRESULT STDMETHODCALLTYPE Notify(ULONG type, OVERLAPPED* call) override;
  ULONG STDMETHODCALLTYPE GetResults(ND2_RESULT taken[], ULONG room) override;

  void Push(const ND2_RESULT& result);

  std::deque<ND2_RESULT> results;

 private:
  ~CompletionQueue() override;

  ULONG depth_;
};

// A request in a queue.
struct Request {
  ND2_REQUEST_TYPE type = Nd2RequestTypeSend;
  void* context = nullptr;
  ULONG flags = 0;
  std::vector<ND2_SGE> entries;
  // The bytes of an inline request.
  std::vector<std::byte> inline_bytes;
  uint64_t remote_address = 0;
  UINT32 remote_token = 0;
  // Set for a bind or an invalidation.
  MemoryRegion* region = nullptr;
  MemoryWindow* window = nullptr;
  UINT32 window_token = 0;
};

class QueuePair final : public Object<IND2QueuePair, kIidNd2QueuePair> {
 public:
  struct Limits {
    ULONG receive_depth = 0;
    ULONG initiator_depth = 0;
    ULONG receive_sge = 0;
    ULONG initiator_sge = 0;
    ULONG inline_bytes = 0;
  };
  QueuePair(std::shared_ptr<Model> model, DomainPointer pair_domain, CompletionQueue& receives_to,
            CompletionQueue& initiators_to, const Limits& limits);

  HRESULT STDMETHODCALLTYPE Flush() override;
  HRESULT STDMETHODCALLTYPE Send(void* context, const ND2_SGE entries[], ULONG count, ULONG flags) override;
  HRESULT STDMETHODCALLTYPE Receive(void* context, const ND2_SGE entries[], ULONG count) override;
  HRESULT STDMETHODCALLTYPE Bind(void* context, IUnknown* region, IUnknown* window, const void* buffer, SIZE_T bytes,
                                 ULONG flags) override;
  HRESULT STDMETHODCALLTYPE Invalidate(void* context, IUnknown* window, ULONG flags) override;
  HRESULT STDMETHODCALLTYPE Read(void* context, const ND2_SGE entries[], ULONG count, UINT64 remote_address,
                                 UINT32 remote_token, ULONG flags) override;
  HRESULT STDMETHODCALLTYPE Write(void* context, const ND2_SGE entries[], ULONG count, UINT64 remote_address,
                                  UINT32 remote_token, ULONG flags) override;

  // Ends the oldest request of a queue.
  void End(std::deque<Request>& queue, HRESULT status, ULONG bytes = 0);
  // Everything outstanding is cancelled, and nothing is accepted any more.
  void EnterError();
  // The connection has ended: both sides are in error, and both connectors are told.
  void Disconnect();

  const DomainPointer domain;
  // Null once the client has released it.
  CompletionQueue* receive_queue;
  CompletionQueue* initiator_queue;
  std::deque<Request> receives;
  std::deque<Request> initiators;
  QueuePair* peer = nullptr;
  Connector* connector = nullptr;
  bool was_connected = false;
  bool in_error = false;

 private:
  ~QueuePair() override;
  HRESULT Post(const char* method, Request request, const ND2_SGE entries[], ULONG count);
  HRESULT CheckInitiator(const char* method) const;

  const Limits limits_;
};

class Connector final : public OverlappedObject<IND2Connector, kIidNd2Connector> {
 public:
  Connector(std::shared_ptr<Model> model, DomainPointer connector_domain, HANDLE file);

  HRESULT STDMETHODCALLTYPE Bind(const sockaddr* address, ULONG bytes) override;
  HRESULT STDMETHODCALLTYPE Connect(IUnknown* queue_pair, const sockaddr* address, ULONG bytes, ULONG inbound,
                                    ULONG outbound, const void* data, ULONG data_bytes, OVERLAPPED* call) override;
  HRESULT STDMETHODCALLTYPE CompleteConnect(OVERLAPPED* call) override;
  HRESULT STDMETHODCALLTYPE Accept(IUnknown* queue_pair, ULONG inbound, ULONG outbound, const void* data,
                                   ULONG data_bytes, OVERLAPPED* call) override;
  HRESULT STDMETHODCALLTYPE Reject(const void* data, ULONG data_bytes) override;
  HRESULT STDMETHODCALLTYPE GetReadLimits(ULONG* /*inbound*/, ULONG* /*outbound*/) override { return kNdNotSupported; }
  HRESULT STDMETHODCALLTYPE GetPrivateData(void* data, ULONG* bytes) override;
  HRESULT STDMETHODCALLTYPE GetLocalAddress(sockaddr* /*address*/, ULONG* /*bytes*/) override {
    return kNdNotSupported;
  }
  HRESULT STDMETHODCALLTYPE GetPeerAddress(sockaddr* /*address*/, ULONG* /*bytes*/) override { return kNdNotSupported; }
  HRESULT STDMETHODCALLTYPE NotifyDisconnect(OVERLAPPED* call) override;
  HRESULT STDMETHODCALLTYPE Disconnect(OVERLAPPED* call) override;
  HRESULT STDMETHODCALLTYPE CancelOverlappedRequests() override;

  // The connection of its queue pair has ended.
  void OnDisconnected();

  const DomainPointer domain;
  bool bound = false;
  QueuePair* pair = nullptr;
  // The other connector, while the connection is made; null if that has given up.
  Connector* partner = nullptr;
  std::vector<std::byte> private_data;
  // Connect or Accept, and NotifyDisconnect.
  OVERLAPPED* connecting = nullptr;
  OVERLAPPED* disconnect = nullptr;
  bool accepted = false;

 private:
  ~Connector() override;
  void LosePartner(HRESULT status);
};

class Listener final : public OverlappedObject<IND2Listener, kIidNd2Listener> {
 public:
  Listener(std::shared_ptr<Model> model, DomainPointer listener_domain, HANDLE file);

  HRESULT STDMETHODCALLTYPE Bind(const sockaddr* address, ULONG bytes) override;
  HRESULT STDMETHODCALLTYPE Listen(ULONG backlog) override;
  HRESULT STDMETHODCALLTYPE GetLocalAddress(sockaddr* address, ULONG* bytes) override;
  HRESULT STDMETHODCALLTYPE GetConnectionRequest(IUnknown* connector, OVERLAPPED* call) override;

  // A connector asks for a connection; it waits if nobody takes requests at the moment.
  void Ask(Connector& active);
  void Forget(Connector& active) { std::erase(asking_, &active); }

  const DomainPointer domain;

 private:
  struct Taker {
    Connector* connector = nullptr;
    OVERLAPPED* call = nullptr;
  };
  ~Listener() override;
  // Brings the two together.
  static void Give(Connector& active, Connector& passive);

  uint16_t port_ = 0;
  std::deque<Connector*> asking_;
  std::deque<Taker> takers_;
};

class Adapter final : public Object<IND2Adapter, kIidNd2Adapter> {
 public:
  Adapter(std::shared_ptr<Model> model, UINT64 card)
      : Object(std::move(model)), domain_(std::make_shared<const Domain>(Domain{.card = card})) {}

  HRESULT STDMETHODCALLTYPE CreateOverlappedFile(HANDLE* file) override;
  HRESULT STDMETHODCALLTYPE Query(ND2_ADAPTER_INFO* info, ULONG* bytes) override;
  HRESULT STDMETHODCALLTYPE QueryAddressList(SOCKET_ADDRESS_LIST* /*list*/, ULONG* /*bytes*/) override {
    return kNdNotSupported;
  }
  HRESULT STDMETHODCALLTYPE CreateCompletionQueue(REFIID interface_id, HANDLE file, ULONG depth, USHORT group,
                                                  KAFFINITY affinity, void** object) override;
  HRESULT STDMETHODCALLTYPE CreateMemoryRegion(REFIID interface_id, HANDLE file, void** object) override;
  HRESULT STDMETHODCALLTYPE CreateMemoryWindow(REFIID interface_id, void** object) override;
  HRESULT STDMETHODCALLTYPE CreateSharedReceiveQueue(REFIID /*interface_id*/, HANDLE /*file*/, ULONG /*depth*/,
                                                     ULONG /*max_sge*/, ULONG /*notify_threshold*/, USHORT /*group*/,
                                                     KAFFINITY /*affinity*/, void** /*object*/) override {
    return kNdNotSupported;
  }
  HRESULT STDMETHODCALLTYPE CreateQueuePair(REFIID interface_id, IUnknown* receive_queue, IUnknown* initiator_queue,
                                            void* context, ULONG receive_depth, ULONG initiator_depth,
                                            ULONG receive_sge, ULONG initiator_sge, ULONG inline_bytes,
                                            void** object) override;
  HRESULT STDMETHODCALLTYPE CreateQueuePairWithSrq(REFIID /*interface_id*/, IUnknown* /*receive_queue*/,
                                                   IUnknown* /*initiator_queue*/, IUnknown* /*shared_queue*/,
                                                   void* /*context*/, ULONG /*initiator_depth*/,
                                                   ULONG /*initiator_sge*/, ULONG /*inline_bytes*/,
                                                   void** /*object*/) override {
    return kNdNotSupported;
  }
  HRESULT STDMETHODCALLTYPE CreateConnector(REFIID interface_id, HANDLE file, void** object) override;
  HRESULT STDMETHODCALLTYPE CreateListener(REFIID interface_id, HANDLE file, void** object) override;

  ~Adapter() override = default;

 private:
  const DomainPointer domain_;
};

// What a card of the model reports; tests know the limits.
ND2_ADAPTER_INFO InfoOf(UINT64 card);
// 10.83.0.5 and the next address, or port 0.
sockaddr_in AddressOfCard(UINT64 card, uint16_t port);

class Provider final : public Object<IND2Provider, kIidNd2Provider> {
 public:
  explicit Provider(std::shared_ptr<Model> model);

  HRESULT STDMETHODCALLTYPE QueryAddressList(SOCKET_ADDRESS_LIST* list, ULONG* bytes) override;
  HRESULT STDMETHODCALLTYPE ResolveAddress(const sockaddr* address, ULONG bytes, UINT64* adapter_id) override;
  HRESULT STDMETHODCALLTYPE OpenAdapter(REFIID interface_id, UINT64 adapter_id, void** object) override;

 private:
  ~Provider() override;
};

// Executes one request of a queue pair; false if nothing could be done.
bool ExecuteOne(Model& model, QueuePair& pair);

}  // namespace rnicd::provider::model
