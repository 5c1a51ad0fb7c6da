#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "provider/verbs/card/verbs_api.h"
#include "provider/verbs/fake/cards_fake.h"
#include "provider/verbs/fake/verbs_keys_fake.h"

namespace rnicd::provider {

// Attributes as reported by the kernel's rdma_rxe, with smaller queues.
ibv_device_attr FakeDeviceAttributes();
// Ethernet, up, MTU 1024.
ibv_port_attr FakePortAttributes();
// fe80::1 at index 0, 10.0.0.1 at index 1, both RoCE v2.
std::vector<GidEntry> FakeGids();

struct FakeDevice {
  std::string name = "fake0";
  int numa_node = -1;
  ibv_device_attr attributes = FakeDeviceAttributes();
  // GID table of port 1, the only port.
  ibv_port_attr port = FakePortAttributes();
  std::vector<GidEntry> gids = FakeGids();
  uint32_t max_inline_bytes = 400;
};

// A send-queue request as posted.
struct PostedSend {
  uint32_t qp_num = 0;
  uint64_t wr_id = 0;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  unsigned send_flags = 0;
  // Entries of the request; empty with IBV_SEND_INLINE.
  std::vector<ibv_sge> entries;
  // Payload bytes, with IBV_SEND_INLINE.
  std::vector<std::byte> inline_bytes;
  // Remote address and key of reads, writes and atomics.
  uint64_t remote_addr = 0;
  uint32_t rkey = 0;
  // Immediate data as in the request, in network byte order.
  uint32_t imm_data = 0;
  // Key to invalidate, of IBV_WR_LOCAL_INV and IBV_WR_SEND_WITH_INV.
  uint32_t invalidate_rkey = 0;
  // Fields of IBV_WR_BIND_MW: the window, its key when posted, its new key, and the memory to bind.
  ibv_mw* mw = nullptr;
  uint32_t mw_rkey = 0;
  uint32_t bind_rkey = 0;
  ibv_mw_bind_info bind = {};
};

struct PostedReceive {
  uint32_t qp_num = 0;
  uint64_t wr_id = 0;
  std::vector<ibv_sge> entries;
};

// A message that arrives at a queue pair.
struct FakeArrival {
  uint32_t byte_len = 0;
  // IBV_WC_ bits of the completion. rxe reports an invalidation with 0x5, without IBV_WC_WITH_INV.
  unsigned wc_flags = 0;
  uint32_t imm_data = 0;
  // Key to invalidate at the sender's request; reported in the completion's invalidated_rkey.
  std::optional<uint32_t> invalidate;
  // Opcode of the completion; alternatively IBV_WC_RECV_RDMA_WITH_IMM.
  ibv_wc_opcode opcode = IBV_WC_RECV;
  ibv_wc_status status = IBV_WC_SUCCESS;
};

struct FakeRegion {
  ibv_mr* mr = nullptr;
  void* address = nullptr;
  size_t length = 0;
  uint64_t iova = 0;
  int access = 0;
  uint32_t lkey = 0;
  uint32_t rkey = 0;
  // Inode of the dma-buf, and the place of the region in it; 0 for memory with an address.
  uint64_t dmabuf_inode = 0;
  uint64_t dmabuf_offset = 0;
};

// Number of objects created and not yet destroyed.
struct FakeLive {
  size_t contexts = 0;
  size_t pds = 0;
  size_t mrs = 0;
  size_t mws = 0;
  size_t channels = 0;
  size_t cqs = 0;
  size_t qps = 0;
  friend bool operator==(const FakeLive&, const FakeLive&) = default;
};
std::ostream& operator<<(std::ostream& out, const FakeLive& live);

// Counts the calls of a card, for a thread that waits for the next.
// Threads: safe.
class FakeChanges {
 public:
  void Add() {
    MutexLock lock(mutex_);
    ++count_;
    changed_.NotifyAll();
  }
  uint64_t count() const {
    MutexLock lock(mutex_);
    return count_;
  }
  // Returns when the count is not `seen` any more.
  void AwaitMoreThan(uint64_t seen) {
    MutexLock lock(mutex_);
    while (count_ == seen) {
      changed_.Wait(mutex_);
    }
  }

 private:
  mutable Mutex mutex_;
  ConditionVariable changed_;
  uint64_t count_ RNICD_GUARDED_BY(mutex_) = 0;
};

// Simulated cards. They follow the rules of the verbs and return the errnos and statuses measured on rdma_rxe, but move
// no bytes. The test controls time: a request completes when the test completes it.
//
// Stricter than some cards, so that code which passes here works on all of them: a queue's slot is free again when its
// completion or a later one was polled; in a failed completion only wr_id, status and qp_num are defined; completions
// of a destroyed or reset queue pair can still be polled.
// Lifetime: outlives its users.
// Threads: safe.
class FakeVerbs : public VerbsApi {
 public:
  explicit FakeVerbs(std::vector<FakeDevice> devices = {FakeDevice{}});
  ~FakeVerbs() override;
  FakeVerbs(const FakeVerbs&) = delete;
  FakeVerbs& operator=(const FakeVerbs&) = delete;

  FakeCards& cards() override { return cards_; }
  ibv_context* Open(const CardId& card) override;
  int Close(ibv_context* context) override;
  int QueryDevice(ibv_context* context, ibv_device_attr& attributes) override;
  int QueryPort(ibv_context* context, uint8_t port, ibv_port_attr& attributes) override;
  std::vector<GidEntry> QueryGids(ibv_context* context, uint8_t port) override;
  int NextAsyncEvent(ibv_context* context, ibv_async_event& event) override;
  ibv_pd* AllocPd(ibv_context* context) override;
  int DeallocPd(ibv_pd* pd) override;
  ibv_mr* RegMr(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) override;
  int DeregMr(ibv_mr* mr) override;
  ibv_mw* AllocMw(ibv_pd* pd) override;
  int DeallocMw(ibv_mw* mw) override;
  ibv_comp_channel* CreateChannel(ibv_context* context) override;
  int DestroyChannel(ibv_comp_channel* channel) override;
  ibv_cq* NextCqEvent(ibv_comp_channel* channel) override;
  ibv_cq* CreateCq(ibv_context* context, int entries, ibv_comp_channel* channel) override;
  int DestroyCq(ibv_cq* cq) override;
  int ArmCq(ibv_cq* cq) override;
  int PollCq(ibv_cq* cq, int max, ibv_wc* completions) override;
  ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr& attributes) override;
  int ModifyQp(ibv_qp* qp, ibv_qp_attr& attributes, int mask) override;
  int QueryQpState(ibv_qp* qp, ibv_qp_state& state) override;
  int DestroyQp(ibv_qp* qp) override;
  int PostSend(ibv_qp* qp, ibv_send_wr& request) override;
  int PostRecv(ibv_qp* qp, ibv_recv_wr& request) override;

  // --- Time ---
  // If true, every send-queue request completes with success when posted.
  void set_automatic(bool automatic);
  // Completes the oldest send-queue request; false when there is none. A failure takes the queue pair to ERR and
  // flushes the rest. Success is replaced by the card's status if a key in the request is wrong or a bind is invalid.
  // The success of an unsignalled request is not reported.
  bool Complete(uint32_t qp_num, ibv_wc_status status = IBV_WC_SUCCESS);
  // Completes all send-queue requests, with success until one fails. Returns their number.
  size_t CompleteAll(uint32_t qp_num);
  // Completes the oldest receive; false when there is none.
  bool Arrive(uint32_t qp_num, const FakeArrival& arrival);
  bool Receive(uint32_t qp_num, uint32_t byte_len, unsigned wc_flags = 0, uint32_t imm_data = 0);
  // Fails the queue pair, as after a refused access of the peer: only flushed completions, and no asynchronous event.
  void FailQp(uint32_t qp_num);

  // --- Failures ---
  // After `skip` more calls of the method of this name ("RegMr"), the next `count` do nothing and fail with `error`.
  void FailNext(const std::string& call, int error, uint64_t count = 1, uint64_t skip = 0);
  // Raises an event in every opening of the device, or of all devices if the name is empty.
  void RaiseAsync(ibv_event_type type, int port = 1, const std::string& device = {});
  void RaiseQpAsync(uint32_t qp_num, ibv_event_type type);
  // Removes the card: it cannot be opened again, and existing openings get DEVICE_FATAL; after that event their
  // descriptors hang up and NextAsyncEvent returns EIO. Calls that create or query fail with EIO (QueryPort: ENODEV);
  // polling returns earlier completions. Calls that destroy succeed but return `destroy_error`: libibverbs returns EIO
  // when the kernel has already destroyed the object.
  void RemoveDevice(const std::string& name, int destroy_error = 0);
  void AddDevice(FakeDevice device);
  // These calls raise no event.
  void SetPort(const std::string& device, const ibv_port_attr& port);
  void SetGids(const std::string& device, std::vector<GidEntry> gids);

  // --- What a test can see ---
  FakeLive live() const;
  // Misuse detected so far: destroying a queue pair with a bound window, using a destroyed object, ...
  std::vector<std::string> violations() const;
  // Number of calls of the method of this name, failures included.
  uint64_t calls(const std::string& call) const;
  // Existing queue pairs, in order of creation.
  std::vector<uint32_t> qp_nums() const;
  // IBV_QPS_UNKNOWN when the queue pair does not exist; the functions below return an empty result then.
  ibv_qp_state state(uint32_t qp_num) const;
  // The attributes passed to CreateQp.
  ibv_qp_init_attr init_attributes(uint32_t qp_num) const;
  // The attributes and mask of the last ModifyQp to this state, if there was one.
  std::optional<std::pair<ibv_qp_attr, int>> transition(uint32_t qp_num, ibv_qp_state state) const;
  // Requests not yet complete, oldest first.
  std::vector<PostedSend> PostedSends(uint32_t qp_num) const;
  std::vector<PostedReceive> PostedReceives(uint32_t qp_num) const;
  // All requests ever accepted, even if the queue pair has been destroyed.
  std::vector<PostedSend> SendHistory(uint32_t qp_num) const;
  // Existing registrations, oldest first.
  std::vector<FakeRegion> regions() const;
  // The region a window is bound to; null if none.
  ibv_mr* BoundTo(ibv_mw* mw) const;

  FakeChanges changes;
  // Keys of the kernel's module.
  FakeKeys keys;
  // Bytes of the kernel's pages. Set before anything is registered.
  uint64_t kernel_page_bytes = 4096;
  // Called without a lock for each accepted request, before an automatic completion. Set before anything is posted.
  std::function<void(const PostedSend&)> on_send;
  // Called without a lock while the memory is still mapped, before RegMr returns. Set before anything is registered.
  std::function<void(const FakeRegion&)> on_register;

 protected:
  // The card's part of each kind of registration: null with errno set if it refuses. `call` names the method;
  // `is_valid` is false if that has found the arguments wrong.
  ibv_mr* Register(const char* call, ibv_pd* pd, FakeRegion& region, bool is_valid);

 private:
  // A descriptor whose readability the fake controls; it hangs up as the kernel's descriptors do.
  class Signal;
  struct Device;
  struct Context;
  struct Pd;
  struct Mr;
  struct Mw;
  struct Channel;
  struct Cq;
  struct Qp;
  struct Fault {
    int error = 0;
    uint64_t remaining = 0;
    uint64_t skip = 0;
  };
  // Records by the address of the object returned to the caller.
  template <typename Record>
  using Table = std::map<const void*, std::shared_ptr<Record>>;

  // Whether a call needs the card itself, or is served by memory or the kernel even if the card was removed.
  enum class Asks : uint8_t { kCard, kNobody };
  // Counts the call and returns the error it must report, or 0. A null context belongs to a destroyed object.
  int Begin(const char* call, const Context* context, Asks asks) RNICD_REQUIRES(mutex_);
  int TakeFault(const std::string& call) RNICD_REQUIRES(mutex_);
  void Violate(std::string what) RNICD_REQUIRES(mutex_);
  Device* FindDevice(const std::string& name, uint64_t instance = 0) RNICD_REQUIRES(mutex_);
  Qp* FindQp(uint32_t qp_num) const RNICD_REQUIRES(mutex_);
  template <typename Record>
  static Record* Find(const Table<Record>& table, const void* object);
  template <typename Record>
  static size_t CountOf(const Table<Record>& table, const Device& device);
  template <typename Record>
  static Record* Add(Table<Record>& table, Context& context);
  void Raise(Context& context, const ibv_async_event& event) RNICD_REQUIRES(mutex_);
  // Removes the object from its table; returns the result of its destruction.
  template <typename Record>
  int End(Table<Record>& table, const Record& record) RNICD_REQUIRES(mutex_);
  bool HasChildren(const Pd& pd) const RNICD_REQUIRES(mutex_);
  template <typename Record>
  void EraseOf(Table<Record>& table, const Context& context) RNICD_REQUIRES(mutex_);

  int CheckTransition(const Qp& qp, const ibv_qp_attr& attributes, int mask) RNICD_REQUIRES(mutex_);
  int CheckAddress(const Qp& qp, const ibv_qp_attr& attributes) RNICD_REQUIRES(mutex_);
  int AcceptSend(Qp& qp, const ibv_send_wr& request) RNICD_REQUIRES(mutex_);
  int AcceptReceive(Qp& qp, const ibv_recv_wr& request) RNICD_REQUIRES(mutex_);
  bool Finish(Qp& qp, ibv_wc_status status) RNICD_REQUIRES(mutex_);
  bool FinishReceive(Qp& qp, const FakeArrival& arrival) RNICD_REQUIRES(mutex_);
  // Takes the queue pair to ERR: all waiting requests are flushed, sends first.
  void Flush(Qp& qp) RNICD_REQUIRES(mutex_);
  void Push(Qp& qp, bool receive, uint64_t slots, const ibv_wc& completion) RNICD_REQUIRES(mutex_);
  // The card's status for a request that has passed all other checks.
  ibv_wc_status Execute(Qp& qp, const PostedSend& send) RNICD_REQUIRES(mutex_);
  ibv_wc_status Bind(Qp& qp, const PostedSend& send) RNICD_REQUIRES(mutex_);
  // False when no window has this key.
  bool Invalidate(const ibv_pd* pd, uint32_t rkey) RNICD_REQUIRES(mutex_);
  bool KeysAreGood(const ibv_pd* pd, const std::vector<ibv_sge>& entries, bool write) const RNICD_REQUIRES(mutex_);

  FakeCards cards_;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Device>> devices_ RNICD_GUARDED_BY(mutex_);
  Table<Context> contexts_ RNICD_GUARDED_BY(mutex_);
  Table<Pd> pds_ RNICD_GUARDED_BY(mutex_);
  Table<Mr> mrs_ RNICD_GUARDED_BY(mutex_);
  Table<Mw> mws_ RNICD_GUARDED_BY(mutex_);
  Table<Channel> channels_ RNICD_GUARDED_BY(mutex_);
  Table<Cq> cqs_ RNICD_GUARDED_BY(mutex_);
  Table<Qp> qps_ RNICD_GUARDED_BY(mutex_);
  // Objects that libibverbs leaks when a destruction returns an error.
  std::vector<std::shared_ptr<void>> left_behind_ RNICD_GUARDED_BY(mutex_);
  std::map<uint32_t, std::vector<PostedSend>> history_ RNICD_GUARDED_BY(mutex_);
  std::map<std::string, Fault> faults_ RNICD_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> calls_ RNICD_GUARDED_BY(mutex_);
  std::vector<std::string> violations_ RNICD_GUARDED_BY(mutex_);
  bool automatic_ RNICD_GUARDED_BY(mutex_) = false;
  uint32_t next_key_ RNICD_GUARDED_BY(mutex_) = 1;
  uint32_t next_qp_num_ RNICD_GUARDED_BY(mutex_) = 17;
};

}  // namespace rnicd::provider
