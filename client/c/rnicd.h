#pragma once
// rnicd.h: the C interface of rnicd, the daemon that owns a node's RDMA cards.
//
// A session with the daemon allocates memory, registers it, and transfers bytes between queue pairs, by the rules of
// Microsoft's NDKPI, without privileges and without a device file. This program, examples/c/hello.c, is built by
// `cc hello.c $(pkg-config --cflags --libs librnicd)`:
//
// <!-- hello:begin -->
//   // Registers memory, connects a queue pair to itself, and writes from one half of the memory into the other.
//   #include <rnicd.h>
//   #include <stdio.h>
//   #include <string.h>
//
//   static int fail(const char* step) {
//     const struct rnicd_error* error = rnicd_last_error();
//     fprintf(stderr, "%s: %s (%s)\n", step, error->message, rnicd_reason_name(error->reason));
//     return 1;
//   }
//
//   int main(int argc, char** argv) {
//     struct rnicd_session_options options = RNICD_INIT(rnicd_session_options);
//     struct rnicd_memory_options pages = RNICD_INIT(rnicd_memory_options);
//     struct rnicd_memory_info mapped = RNICD_INIT(rnicd_memory_info);
//     struct rnicd_mr_info region = RNICD_INIT(rnicd_mr_info);
//     struct rnicd_qp_info self = RNICD_INIT(rnicd_qp_info);
//     struct rnicd_session* session;
//     struct rnicd_memory* memory;
//     struct rnicd_mr* mr;
//     struct rnicd_cq* cq;
//     struct rnicd_qp* qp;
//     struct rnicd_chain* chain;
//
//     options.socket_dir = argc > 1 ? argv[1] : NULL;
//     pages.bytes = 8192;
//     if (rnicd_open_session(&options, &session) < 0) return fail("session");
//     if (rnicd_allocate_memory(session, &pages, &memory) < 0) return fail("memory");
//     if (rnicd_query_memory(memory, &mapped) < 0) return fail("address");
//     if (rnicd_register_mr(memory, 0, 8192, RNICD_MR_REMOTE_WRITE, &mr) < 0) return fail("region");
//     if (rnicd_query_mr(mr, &region) < 0) return fail("tokens");
//     if (rnicd_create_cq(session, 16, 0, &cq) < 0) return fail("completion queue");
//     if (rnicd_create_qp(cq, cq, NULL, &qp) < 0) return fail("queue pair");
//     if (rnicd_query_qp(qp, &self) < 0) return fail("queue pair's address");
//     if (rnicd_connect_qp(qp, self.address, self.address_bytes) < 0) return fail("connect");
//
//     strcpy(mapped.address, "hello");
//     struct rnicd_sge sge = {region.address, 6, region.local_token};
//     struct rnicd_completion completion;
//     if (rnicd_create_chain(&chain) < 0) return fail("chain");
//     if (rnicd_chain_write(chain, &sge, 1, region.address + 4096, region.remote_token, 0, 7) < 0) return fail("add");
//     if (rnicd_post(qp, chain) < 0) return fail("post");
//     if (rnicd_poll_cq_for(cq, &completion, 1, 10000) != 1) return fail("poll");
//     printf("request %d: status %#x, and the other half says %s\n", (int)completion.context, completion.ntstatus,
//            (char*)mapped.address + 4096);
//
//     rnicd_close_chain(chain);
//     rnicd_close_qp(qp);
//     rnicd_close_cq(cq);
//     rnicd_close_mr(mr);
//     rnicd_close_memory(memory);
//     return rnicd_close_session(session, NULL) < 0 ? fail("end") : 0;
//   }
// <!-- hello:end -->
//
// Results      Functions that return int return 0, or a count, and on failure a negative errno value, as in
//              `-EINVAL`. rnicd_last_error has the details. Results in memory of the caller are written on success
//              only, except where the function says so.
// Errors       Any function returns -EINVAL for a null pointer or an argument outside its range (`field` names it),
//              -E2BIG (see Structs) and -ENOMEM. Those that speak with the daemon, all but rnicd_query_* of memory, mr,
//              fast_mr, mapping and qp, and rnicd_chain_*, also return
//                -ECONNRESET  the session is over: the daemon has ended or has ended the session, or the connection is
//                             lost
//                -ETIMEDOUT   no answer within the deadline; whether the daemon did it is unknown
//                -EPROTO      the daemon's answer makes no sense
//                -ESTALE      this is a child made by fork (see Fork)
//                -EAGAIN      too many requests at a time, or the daemon is about to stop: try again later
//                -EDQUOT      a limit of the session, the tenant or the node; `limit`, `used` and `requested` say which
//                -EACCES      not permitted
//                -ENOENT      the session has no such object
//                -EBADFD      the object is in a state in which it cannot do this
//                -EBUSY       the object is in use
//                -ERANGE      more than rnicd or the card supports
//                -ENOSPC      the card has no room for another object
//                -EOPNOTSUPP  the card, the system or the daemon cannot do this
//                -ENODEV      the card was removed
//                -EIO         the card or the daemon failed
//              A function's comment names what else it returns and what is special. `reason` is finer than errno.
// Threads      Functions may be called from several threads at once, also on one handle, except that a chain is used by
//              one thread at a time, and that nothing else uses a handle while it is being closed. A session's threads
//              share one connection and one ring: open several sessions where that is the bottleneck. pthread_cancel
//              has no effect inside of a function.
// Lifetime     A handle lives until its rnicd_close_*, which frees it in every case. Closing waits for the daemon and
//              returns its outcome. Children keep what they need of their parents: after a handle is closed those made
//              from it still work, but a session ends for all with rnicd_close_session. Close queue pairs before memory
//              that their requests use. NULL may be closed: nothing happens. Strings and structs that are passed in
//              are read before the function returns, except where it says so.
// Structs      A struct whose first member is `size` can grow. Initialize it with RNICD_INIT, which sets `size` and
//              clears the rest; zero means the default. A struct that is larger than the library knows is refused
//              (-E2BIG) unless what it does not know is zero. Structs with results are filled up to the caller's size.
//              The others never change.
// Callbacks    They run inside of rnicd_progress, on the caller's thread; with RNICD_THREAD on one that the library
//              starts for them. Those of asynchronous functions may also run before these return, and in
//              rnicd_close_session. A callback must not block, nor call rnicd_progress or rnicd_close_session. It may
//              post, register and close other handles.
// Fork         A session belongs to the process that opened it. In a child made by fork calls return -ESTALE, and
//              rnicd_close_* only frees memory. A child may open a session of its own.
// The process  The library starts no thread without RNICD_THREAD, installs no signal handler and no exit handler, and
//              changes no environment variable. It reads RNICD_SOCKET_DIR, RNICD_GRANT and RNICD_DATA_PATH.

#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

// Version of this header; rnicd_version is that of the library. Minor versions add to the interface.
#define RNICD_VERSION_MAJOR 0
#define RNICD_VERSION_MINOR 1
#define RNICD_VERSION_PATCH 0

// Initial value of a struct that can grow: struct rnicd_qp_options options = RNICD_INIT(rnicd_qp_options);
#ifdef __cplusplus
#define RNICD_INIT(type) rnicd_init<type>()
#else
#define RNICD_INIT(type) {.size = sizeof(struct type)}
#endif

// What a handle of each kind stands for is at the function that makes it.
struct rnicd_session;
struct rnicd_memory;
struct rnicd_mr;
struct rnicd_fast_mr;
struct rnicd_mapping;
struct rnicd_mw;
struct rnicd_cq;
struct rnicd_qp;
struct rnicd_chain;

// --- Errors ---------------------------------------------------------------------------------------------------------

// Details of a failure.
struct rnicd_error {
  // Bytes that the library knows.
  size_t size;
  // The errno value, positive; 0 where nothing has failed.
  int32_t code;
  // An enum rnicd_reason, which newer daemons extend; 0 when the daemon did not answer.
  uint32_t reason;
  // The NTSTATUS that NDK specifies for it.
  uint32_t ntstatus;
  uint32_t reserved;
  // Figures of an exceeded limit; otherwise 0.
  uint64_t limit;
  uint64_t used;
  uint64_t requested;
  // Milliseconds after which the same may succeed; 0 where that is not known.
  uint64_t retry_after_ms;
  // Argument or field of a request at fault, as in "options.label" or "requests[3].send.sges"; empty if none.
  char field[96];
  // Sentence for people, in lower case. Longer ones are cut.
  char message[256];
};

// Details of the calling thread's last failure; never NULL. Successes do not change them.
// Lifetime: until the thread's next failing call.
const struct rnicd_error* rnicd_last_error(void);

// Name of an enum rnicd_reason, as in "QUOTA_REGIONS", and of an NTSTATUS, as in "STATUS_CANCELLED". Where the number
// is not known "UNKNOWN" and "STATUS_UNKNOWN".
// Lifetime: static.
const char* rnicd_reason_name(uint32_t reason);
const char* rnicd_ntstatus_name(uint32_t ntstatus);

// Version of the library, as in "0.1.0".
// Lifetime: static.
const char* rnicd_version(void);

// --- Sessions -------------------------------------------------------------------------------------------------------

// How requests travel to the daemon, and completions back.
enum rnicd_data_path {
  // As RINGS where the daemon serves rings, else as CALLS. The environment variable RNICD_DATA_PATH, set to "calls" or
  // "rings", selects one of them.
  RNICD_DATA_PATH_AUTOMATIC = 0,
  // A call of the daemon for each.
  RNICD_DATA_PATH_CALLS = 1,
  // Through memory that this process and the daemon share. Where the daemon serves no rings, or no further one for this
  // session, functions that need one fail with the reason.
  RNICD_DATA_PATH_RINGS = 2
};

// Flags of a session: callbacks run on a thread of the library.
#define RNICD_THREAD 0x1u

struct rnicd_session_options {
  size_t size;
  // Directory with the daemon's sockets, at most 90 bytes. NULL: the environment variable RNICD_SOCKET_DIR, else
  // "/run/rnicd".
  const char* socket_dir;
  // Shown to operators beside the process; up to 64 printable ASCII characters. NULL: none.
  const char* label;
  // Secret of a grant, to whose tenant the session then belongs. NULL: the environment variable RNICD_GRANT; without
  // that the node's policy decides the tenant of this process.
  const char* grant;
  // A name of rnicd_get_adapter. NULL: the node's first adapter.
  const char* adapter_name;
  // Timeout of connecting, and of one call. 0: 30,000. The time to register memory is linear in its size.
  uint32_t call_deadline_ms;
  // Timeout of freeing what a failed rnicd_close_* left behind. After one timeout nothing waits any more; the daemon
  // releases everything when the session or the process ends. 0: 5,000.
  uint32_t release_deadline_ms;
  // An enum rnicd_data_path.
  uint32_t data_path;
  // RNICD_ flags combined by OR.
  uint32_t flags;
  // The longest time that a thread polls shared memory without sleeping; only where the daemon runs on another
  // processor. 0: 20. Negative: never.
  int32_t spin_max_us;
  uint32_t reserved;
  // Called at most once, when the session ends without rnicd_close_session: evicted, daemon stopping, connection lost.
  // `why` is valid during the call; its code is ECONNRESET, and its field the daemon's cause, as in "evicted". May be
  // NULL.
  void (*on_session_ended)(void* context, const struct rnicd_error* why);
  // Passed to the callbacks.
  void* context;
  // Called at most once, when the card of the session's adapter is gone. What was made on it has ended, memory stays; a
  // new session may use another card. May be NULL.
  void (*on_adapter_removed)(void* context);
};

// Connects to the daemon and opens a session. `options` may be NULL. Adapter and protection domain are opened when
// first needed; all objects of a session belong to one protection domain.
// Errors: -ECONNREFUSED no daemon at this address; -EDQUOT too many sessions; -EACCES no tenant for this process, or
//         the grant was refused; -EAGAIN the daemon is draining.
int rnicd_open_session(const struct rnicd_session_options* options, struct rnicd_session** session);

// What a session still held when it was closed.
struct rnicd_reclaimed {
  size_t size;
  uint64_t regions;
  uint64_t pinned_bytes;
  uint64_t memory_bytes;
};

// Ends the session for everything made from it: tokens stop working, later calls return -ECONNRESET, threads that wait
// wake with it. Memory stays mapped until its handle is closed. `reclaimed` may be NULL.
int rnicd_close_session(struct rnicd_session* session, struct rnicd_reclaimed* reclaimed);

// Number by which operators see the session; 0 for NULL.
uint64_t rnicd_session_id(const struct rnicd_session* session);
// Name of the tenant whose limits the session shares, as in "guests/uid=1000"; "" for NULL.
// Lifetime: that of the session.
const char* rnicd_tenant(const struct rnicd_session* session);

// Usage of one counted resource.
struct rnicd_resource {
  // "memory_bytes", "memory_objects", "pinned_bytes", "registered_bytes", "regions", "queue_pairs", ...
  char name[32];
  uint64_t used;
  // 0 means no limit.
  uint64_t limit;
};

// Writes the session's usage of its first `capacity` resources, and returns how many there are.
int rnicd_query_session(struct rnicd_session* session, struct rnicd_resource* resources, uint32_t capacity);

// An adapter of the node.
struct rnicd_adapter {
  size_t size;
  // Stable across restarts.
  char name[64];
  // "soft" or "verbs".
  char provider[32];
  // The card's NUMA node; -1 when it has none.
  int32_t numa_node;
  uint32_t reserved;
};

// Limits of an adapter. Source: NDK_ADAPTER_INFO.
struct rnicd_adapter_info {
  size_t size;
  // NDKPI version.
  uint16_t version_major;
  uint16_t version_minor;
  // IEEE OUI of the vendor, and the vendor's number of the device.
  uint32_t vendor_id;
  uint32_t device_id;
  // Pages of 4 KiB for which the adapter offers most fast-registration regions. A hint.
  uint32_t frmr_page_count;
  // Bytes of one registration, and of one memory window.
  uint64_t max_registration_size;
  uint64_t max_window_size;
  // SGEs in one initiator request, one receive, one read.
  uint32_t max_initiator_request_sge;
  uint32_t max_receive_request_sge;
  uint32_t max_read_request_sge;
  // Bytes over all SGEs of one request, and in one inline payload.
  uint32_t max_transfer_length;
  uint32_t max_inline_data_size;
  // Reads in progress of a queue pair, as target and as initiator.
  uint32_t max_inbound_read_limit;
  uint32_t max_outbound_read_limit;
  // Requests outstanding in one queue; 0 for shared receive queues, which are not supported.
  uint32_t max_receive_queue_depth;
  uint32_t max_initiator_queue_depth;
  uint32_t max_srq_depth;
  // Completions in one completion queue.
  uint32_t max_cq_depth;
  // Bytes above which read and write are faster than send and receive. A hint.
  uint32_t large_request_threshold;
  // Bytes of private data in a connect, and in its answer.
  uint32_t max_caller_data;
  uint32_t max_callee_data;
  // RNICD_ADAPTER_ flags combined by OR.
  uint32_t adapter_flags;
  // 0 not known or not hardware, 1 iWARP, 2 InfiniBand, 3 RoCE, 4 RoCE v2.
  uint32_t rdma_technology;
};
#define RNICD_ADAPTER_IN_ORDER_DMA 0x1u
#define RNICD_ADAPTER_READ_SINK_NOT_REQUIRED 0x2u
#define RNICD_ADAPTER_READ_LOCAL_INVALIDATE 0x10u
#define RNICD_ADAPTER_CQ_RESIZE 0x100u
#define RNICD_ADAPTER_LOOPBACK 0x10000u

// Describes the node's adapter number `index`, from 0. `info` may be NULL.
// Errors: -ENOENT there are no more.
int rnicd_get_adapter(struct rnicd_session* session, uint32_t index, struct rnicd_adapter* adapter,
                      struct rnicd_adapter_info* info);
// The limits of the session's own adapter.
// Errors: -ENOENT no adapter has the name of the options.
// Source: NDK_FN_QUERY_ADAPTER_INFO.
int rnicd_query_adapter(struct rnicd_session* session, struct rnicd_adapter_info* info);
// Token for SGEs that name logical addresses (struct rnicd_pages); constant for the session's life. Never for a peer.
// Source: NDK_FN_GET_PRIVILEGED_MEMORY_REGION_TOKEN.
int rnicd_privileged_token(struct rnicd_session* session, uint32_t* token);

// Descriptor for poll, select or epoll that becomes readable when rnicd_progress has something to do, and sometimes
// when it has not.
// Lifetime: that of the session. Do not read, write or close it.
// Errors: -EINVAL for a session with RNICD_THREAD.
int rnicd_fd(struct rnicd_session* session);
// Runs the callbacks that are due, and waits up to the timeout for the first; 0 does not wait, and negative waits
// without end. One thread at a time.
// Errors: as rnicd_fd.
int rnicd_progress(struct rnicd_session* session, int timeout_ms);

// --- Memory ---------------------------------------------------------------------------------------------------------

// Flags of memory.
// Allocates the pages from `numa_node`.
#define RNICD_MEMORY_ON_NODE 0x1u
// Leaves this process's page table empty: the first access to each page costs a page fault, and allocating is faster,
// by some 60 ms for a GiB.
#define RNICD_MEMORY_NO_POPULATE 0x2u

struct rnicd_memory_options {
  size_t size;
  // Bytes; at least one page, and a whole number of pages.
  uint64_t bytes;
  // Bytes of a page: 4 KiB, 2 MiB or 1 GiB. 0: the largest that the daemon's pool has ready and that divide `bytes`,
  // else 4 KiB.
  uint64_t page_size;
  // Where to map the memory: a multiple of its page size, with nothing mapped in the `bytes` bytes from there. NULL:
  // anywhere.
  void* address;
  uint32_t numa_node;
  // RNICD_MEMORY_ flags combined by OR.
  uint32_t flags;
  // Called while an allocation takes long, with the bytes that are ready and those in all; at most once for each 64th
  // of it. Only with RNICD_THREAD, since the allocating thread waits. Must call nothing of this library. May be NULL.
  void (*on_progress)(void* context, uint64_t ready_bytes, uint64_t bytes);
  // Passed to the callback.
  void* context;
};

// Allocates pages that can be registered, charged to this session and mapped into this process, within call_deadline_ms
// and a second for each 64 MiB.
// Errors: -EINVAL `bytes` is not a whole number of pages, no such NUMA node, or `address` cannot be used; -ENOMEM the
//         node has no such pages, or this process cannot map them; -EDQUOT.
int rnicd_allocate_memory(struct rnicd_session* session, const struct rnicd_memory_options* options,
                          struct rnicd_memory** memory);
// Allocates `count` memories, at most 16,384, in two calls of the daemon. All options have the same `size`. Returns 0,
// or the first failure, whose field begins with "options[N]." if it is that of one; each `memories[N]` is then a
// handle, or NULL where that one failed.
// Errors: as rnicd_allocate_memory.
int rnicd_allocate_batch(struct rnicd_session* session, const struct rnicd_memory_options* options, uint32_t count,
                         struct rnicd_memory** memories);
// Makes memory of the first `bytes` bytes of the caller's memfd, which must have MFD_ALLOW_SEALING; or of a whole
// dma-buf that can be mapped. `fd` is borrowed and stays open. The file is sealed: it cannot shrink, and nobody can map
// it writable any more; earlier mappings keep working.
// Errors: -EINVAL another kind of file, one that cannot be sealed or is sealed against writing, one that is not open
//         for reading and writing or too short; -EOPNOTSUPP the card does not take dma-bufs; -EDQUOT.
int rnicd_import_memory(struct rnicd_session* session, int fd, uint64_t bytes, struct rnicd_memory** memory);
// The same without another mapping: `mapping` is the caller's own, shared and writable, of all `bytes` bytes from the
// file's start. It must stay where it is while the memory is attached, and stays the caller's afterwards.
// Errors: as rnicd_import_memory; -EINVAL the kernel has no such mapping.
int rnicd_import_mapping(struct rnicd_session* session, int fd, void* mapping, uint64_t bytes,
                         struct rnicd_memory** memory);
// Puts pages that the daemon allocates in the place of the caller's own, with their address and contents: `bytes` bytes
// from `pages` on, whole pages of the kernel. The caller gets private pages back, with the contents at that time, when
// the memory is not attached any more, also after the daemon has died; where the process cannot have them then, those
// of the daemon stay. Costs a copy each way, and some 15 ms for each GiB and 5 us for each mapping that the process
// has.
// - They must be private anonymous memory, readable and writable. Refused: files, shared memory, the stacks of the
//   first and of the calling thread, the heap of brk, huge pages of hugetlbfs, locked pages, and pages with advice or
//   protection keys other than advice on huge pages.
// - Nothing can check that the pages are the caller's alone: map them by mmap. Pages of a malloc block lie whole inside
//   of it; never round outwards.
// - While this runs, and while the last handle that uses the memory is closed, nothing else writes to the pages:
//   another thread that does gets a SIGSEGV, and a system call EFAULT. Reading is safe.
// - The kernel and devices must not have pinned them: direct I/O, io_uring, CUDA or another RDMA library would keep on
//   using the old ones.
// - While replaced, they must not be unmapped, moved or freed: nothing is given back then, and what is mapped there in
//   the end stays as it is. MADV_DONTNEED does not empty them. They are not in core dumps, do not count against the
//   process's memory limit, and take its address space twice.
// - A child made by fork shares them with its parent until that gets its own back, and keeps them alive if the parent
//   dies before. With MADV_DONTFORK on them it has none, and must not close the handle.
// Errors: as rnicd_allocate_memory; -EINVAL for pages that cannot be replaced, with the cause in the message. After a
//         failure all is as it was.
int rnicd_replace_memory(struct rnicd_session* session, void* pages, uint64_t bytes, struct rnicd_memory** memory);
// Releases and unmaps the memory. While regions, mappings or requests use it -EBUSY, and it stays attached until the
// last of them is gone.
int rnicd_close_memory(struct rnicd_memory* memory);

struct rnicd_memory_info {
  size_t size;
  // The mapping in this process, readable and writable.
  void* address;
  uint64_t bytes;
  // Bytes of a page.
  uint64_t page_size;
  uint64_t id;
  // 1 if the pages were ready in the daemon's pool.
  uint32_t from_pool;
  // 1 if the kernel may back them by transparent huge pages.
  uint32_t transparent_huge_pages;
};
// Describes the memory. Makes no call of the daemon.
int rnicd_query_memory(const struct rnicd_memory* memory, struct rnicd_memory_info* info);

// --- Memory regions -------------------------------------------------------------------------------------------------

// Flags of a registration, combined by OR; 0 allows local reads only. Source: NDK_MR_FLAG_.
#define RNICD_MR_LOCAL_WRITE 0x1u
#define RNICD_MR_REMOTE_READ 0x2u
// Includes local write.
#define RNICD_MR_REMOTE_WRITE 0x5u
// May be the sink of a read; needed only where RNICD_ADAPTER_READ_SINK_NOT_REQUIRED is clear.
#define RNICD_MR_READ_SINK 0x8u

// Bytes of a memory that become a region.
struct rnicd_range {
  // From the start of the memory.
  uint64_t offset;
  uint64_t length;
  // RNICD_MR_ flags.
  uint32_t flags;
  uint32_t reserved;
};

// An entry of an MDL chain: a run of bytes of a memory.
struct rnicd_mdl {
  struct rnicd_memory* memory;
  uint64_t offset;
  uint64_t length;
  // Address by which SGEs and peers name the first byte; equal to `offset` modulo 4,096. 0: its address in this
  // process.
  uint64_t address;
};

// Registers `length` bytes of the memory from `offset` on, at their address in this process: the card may use them, and
// two tokens name them.
// Errors: -EINVAL outside of the memory, unknown flags; -EDQUOT; -ENOSPC the card has no room. Then nothing is left.
// Source: NDK_FN_CREATE_MR, NDK_FN_REGISTER_MR; ibv_reg_mr(3).
int rnicd_register_mr(struct rnicd_memory* memory, uint64_t offset, uint64_t length, uint32_t flags,
                      struct rnicd_mr** mr);
// Registers `length` bytes of a chain of `count` entries, whose addresses are contiguous.
// Errors: as rnicd_register_mr; -ERANGE too many entries.
int rnicd_register_mdl(struct rnicd_session* session, const struct rnicd_mdl* chain, uint32_t count, uint64_t length,
                       uint32_t flags, struct rnicd_mr** mr);
// Registers `count` ranges of the memory, at most 16,384, in one call of the daemon. Returns 0, or the first failure;
// each `mrs[N]` is then a handle, or NULL where that range failed.
// Errors: as rnicd_register_mr.
int rnicd_register_batch(struct rnicd_memory* memory, const struct rnicd_range* ranges, uint32_t count,
                         struct rnicd_mr** mrs);
// Allocates memory and registers `count` ranges of it, in two calls of the daemon: from nothing to tokens. Where
// `memory` is not NULL afterwards, `mrs` is as in rnicd_register_batch, and the result is the first failure of a range;
// otherwise there is nothing.
// Errors: as rnicd_allocate_memory, rnicd_register_mr.
int rnicd_provision(struct rnicd_session* session, const struct rnicd_memory_options* options,
                    const struct rnicd_range* ranges, uint32_t count, struct rnicd_memory** memory,
                    struct rnicd_mr** mrs);
// As rnicd_register_mr, without waiting for a registration that takes long. On 0 the callback is called exactly once,
// perhaps before this returns: with a region and NULL, or with NULL and an error that is valid during the call.
int rnicd_register_mr_async(struct rnicd_memory* memory, uint64_t offset, uint64_t length, uint32_t flags,
                            void (*done)(void* context, struct rnicd_mr* mr, const struct rnicd_error* error),
                            void* context);

struct rnicd_mr_info {
  size_t size;
  // Address of the first byte, as SGEs and peers name it. 0, as lengths and tokens, once deregistered.
  uint64_t address;
  uint64_t length;
  // For SGEs of this session.
  uint32_t local_token;
  // For peers; opaque.
  uint32_t remote_token;
  uint64_t id;
};
// Describes the region. Makes no call of the daemon.
int rnicd_query_mr(const struct rnicd_mr* mr, struct rnicd_mr_info* info);

// Ends the registration: both tokens are invalid on success. The handle is still to be closed. Nothing else uses the
// handle meanwhile.
// Errors: -EBADFD not registered, or busy; -EBUSY a window is bound to it.
// Source: NDK_FN_DEREGISTER_MR.
int rnicd_deregister_mr(struct rnicd_mr* mr);
// Ends the registration and closes the region. Waits for windows that are bound to it.
int rnicd_close_mr(struct rnicd_mr* mr);
// Closes `count` regions in one call of the daemon, and returns the first failure. NULL ones are skipped.
int rnicd_close_mrs(struct rnicd_mr** mrs, uint32_t count);
// Closes without waiting. On 0 the callback is called exactly once, perhaps before this returns, with NULL when both
// tokens are invalid, or with an error that is valid during the call. The handle is gone when this returns.
int rnicd_close_mr_async(struct rnicd_mr* mr, void (*done)(void* context, const struct rnicd_error* error),
                         void* context);

// --- Fast registration and memory windows ---------------------------------------------------------------------------

// Flags of a fast-registration region: registrations may grant remote rights.
#define RNICD_FAST_MR_REMOTE_ACCESS 0x1u

// Creates a region that work requests register again and again: rnicd_chain_fast_register and
// rnicd_chain_invalidate_fast_mr. `max_pages` is the maximum of 4 KiB pages in one registration; at least 1.
// Errors: -ERANGE too many pages; -EDQUOT; -ENOSPC.
// Source: NDK_FN_CREATE_MR, NDK_FN_INITIALIZE_FAST_REGISTER_MR.
int rnicd_create_fast_mr(struct rnicd_session* session, uint32_t max_pages, uint32_t flags, struct rnicd_fast_mr** mr);

struct rnicd_fast_mr_info {
  size_t size;
  uint64_t id;
  // For SGEs of this session; constant, and valid only while pages are registered.
  uint32_t local_token;
  uint32_t reserved;
};
// Describes the region. Makes no call of the daemon.
int rnicd_query_fast_mr(const struct rnicd_fast_mr* mr, struct rnicd_fast_mr_info* info);
// Asks the daemon for the remote token of the last posted registration; rnicd_chain_token has it too. Each registration
// changes it.
// Source: NDK_FN_GET_REMOTE_TOKEN_FROM_MR.
int rnicd_fast_mr_token(struct rnicd_fast_mr* mr, uint32_t* token);
// Ends a registration and closes the region. Waits for posted requests that name it.
int rnicd_close_fast_mr(struct rnicd_fast_mr* mr);

// Pages and the part of them that a fast registration names: address A of it is byte (A - address + fbo) of the pages
// laid end to end.
struct rnicd_pages {
  size_t size;
  // Logical addresses of 4 KiB pages, in any order, repeats allowed.
  const uint64_t* pages;
  uint32_t page_count;
  // Bytes into the first page at which the region begins; 0 to 4,095.
  uint32_t fbo;
  // Bytes; at least 1, at most all pages less fbo.
  uint64_t length;
  // Address of the first byte, as SGEs and peers name it: fbo plus a whole number of pages.
  uint64_t address;
};

// Maps `length` bytes of the memory from `offset` on for the adapter: pages with logical addresses, for fast
// registrations, and for SGEs with the privileged token.
// Errors: as rnicd_register_mr.
// Source: NDK_FN_BUILD_LAM.
int rnicd_create_mapping(struct rnicd_memory* memory, uint64_t offset, uint64_t length, struct rnicd_mapping** mapping);
// Maps `length` bytes of a chain of `count` entries, whose addresses are contiguous.
// Errors: as rnicd_register_mdl.
int rnicd_create_mapping_mdl(struct rnicd_session* session, const struct rnicd_mdl* chain, uint32_t count,
                             uint64_t length, struct rnicd_mapping** mapping);
// Describes all of the mapping, ready for rnicd_chain_fast_register.
// Lifetime: `pages->pages` is the mapping's own.
int rnicd_query_mapping(const struct rnicd_mapping* mapping, struct rnicd_pages* pages);
// Releases the mapping. Its addresses are then invalid for new requests; pages that a fast registration uses stay
// mapped and charged until that ends.
// Source: NDK_FN_RELEASE_LAM.
int rnicd_close_mapping(struct rnicd_mapping* mapping);

// Creates a memory window: a second, narrower remote token for a part of a region. rnicd_chain_bind opens it, for peers
// of that queue pair only, and rnicd_chain_invalidate_mw closes it.
// Errors: -EDQUOT; -ENOSPC.
// Source: NDK_FN_CREATE_MW.
int rnicd_create_mw(struct rnicd_session* session, struct rnicd_mw** mw);
// Asks the daemon for the token of the last posted bind; rnicd_chain_token has it too.
// Errors: -EBADFD it was never bound.
// Source: NDK_FN_GET_REMOTE_TOKEN_FROM_MW.
int rnicd_mw_token(struct rnicd_mw* mw, uint32_t* token);
// Ends the binding and closes the window. Before its region, whose close waits for it.
int rnicd_close_mw(struct rnicd_mw* mw);

// --- Completion queues ----------------------------------------------------------------------------------------------

// What a completion is of. Source: NDK_OPERATION_TYPE.
enum rnicd_operation {
  RNICD_RECEIVE = 1,
  // Also a send that invalidates, at the sender.
  RNICD_SEND = 2,
  RNICD_FAST_REGISTER = 4,
  RNICD_BIND = 8,
  RNICD_INVALIDATE = 16,
  RNICD_READ = 32,
  RNICD_WRITE = 64,
  RNICD_RECEIVE_AND_INVALIDATE = 0x8001
};

// The end of one posted request. Source: NDK_RESULT_EX.
struct rnicd_completion {
  // As given with the request, and when the queue pair was created.
  uint64_t context;
  uint64_t qp_context;
  // Which request this is: the id of its queue pair, and its number among those of the initiator or the receive queue,
  // from 1 modulo 2^32. Both 0 from an older daemon.
  uint64_t qp_id;
  uint32_t request_number;
  // 0 for success. After a failure the queue pair is unusable, and its other requests end as REQUEST_FLUSHED.
  uint32_t ntstatus;
  // An enum rnicd_reason; 0 for success.
  uint32_t reason;
  // Bytes received; of successful receives only.
  uint32_t bytes;
  // With RNICD_RECEIVE_AND_INVALIDATE the token that the sender invalidated. Otherwise 0.
  uint32_t invalidated_token;
  // An enum rnicd_operation.
  uint32_t operation;
};

// Creates a queue to which queue pairs report completed requests. `depth` is the maximum of completions that can be
// queued; at least 1. `depth_max` is the highest that rnicd_resize_cq will be asked for; 0: `depth`. A queue in shared
// memory reserves room for it at once.
// Errors: -EINVAL more than the adapter's max_cq_depth; -EDQUOT; -ENOSPC.
// Source: NDK_FN_CREATE_CQ.
int rnicd_create_cq(struct rnicd_session* session, uint32_t depth, uint32_t depth_max, struct rnicd_cq** cq);
// Removes the oldest completions, at most `max`, writes them to the array, and returns how many they are. With shared
// memory this makes no call and allocates nothing.
// Errors: -EOVERFLOW more completions came than fit: the queue and its queue pairs are unusable.
// Source: NDK_FN_GET_CQ_RESULTS_EX.
int rnicd_poll_cq(struct rnicd_cq* cq, struct rnicd_completion* completions, uint32_t max);
// As rnicd_poll_cq, but waits for the first completion up to the timeout; negative waits without end. 0 on timeout.
int rnicd_poll_cq_for(struct rnicd_cq* cq, struct rnicd_completion* completions, uint32_t max, int timeout_ms);

// Completions for which a queue is armed. Source: NDK_CQ_NOTIFY_.
enum rnicd_notify {
  // Failures of the queue itself only.
  RNICD_NOTIFY_ERRORS = 0,
  RNICD_NOTIFY_ANY = 1,
  // A receive that was sent with RNICD_OP_SOLICIT, and any completion that failed.
  RNICD_NOTIFY_SOLICITED = 2
};
// Requests one notification. Arming again before it comes combines the types: ANY wins over everything, SOLICITED over
// ERRORS. It comes at once if there is a completion of that type newer than the last notification.
// Source: NDK_FN_ARM_CQ.
int rnicd_arm_cq(struct rnicd_cq* cq, enum rnicd_notify type);
// Waits for a notification newer than the last one waited for, up to the timeout; negative waits without end. Returns
// 1, or 0 on timeout. A poll may already have taken the completion that caused it. It wakes one waiting thread.
// Errors: as rnicd_poll_cq.
int rnicd_wait_cq(struct rnicd_cq* cq, int timeout_ms);
// Changes the depth and keeps the queued completions.
// Errors: as rnicd_create_cq; -EBUSY more are queued; -EOPNOTSUPP; -EINVAL with the reason ABOVE_MAPPED_DEPTH for more
//         than the `depth_max` of a queue in shared memory.
// Source: NDK_FN_RESIZE_CQ.
int rnicd_resize_cq(struct rnicd_cq* cq, uint32_t depth);
// Descriptor for the caller's own poll or epoll, which becomes readable when rnicd_prepare_cq says so:
//
//   for (;;) {
//     while ((count = rnicd_poll_cq(cq, completions, 64)) > 0) handle(completions, count);
//     if (rnicd_prepare_cq(cq) == 1) epoll_wait(...);
//     rnicd_stop_cq(cq);
//   }
//
// It may also become readable without a completion, and stays so until the next rnicd_stop_cq or rnicd_prepare_cq. One
// event loop at a time; other threads may poll and wait meanwhile.
// Lifetime: that of the queue. Do not read, write or close it.
// Errors: -EOPNOTSUPP a queue without shared memory.
int rnicd_cq_fd(struct rnicd_cq* cq);
// Returns 1 when the next completion, or a failure of the queue, will make the descriptor readable, and 0 when there
// are completions already.
// Errors: -ENOENT before rnicd_cq_fd; as rnicd_poll_cq.
int rnicd_prepare_cq(struct rnicd_cq* cq);
// From now on completions do not make the descriptor readable, which saves the daemon a system call for each.
int rnicd_stop_cq(struct rnicd_cq* cq);
// Closes the queue. Where queue pairs still report to it, the daemon does it when the last of them is closed.
int rnicd_close_cq(struct rnicd_cq* cq);

// --- Queue pairs ----------------------------------------------------------------------------------------------------

// Flags of a queue pair: flushes when the peer has disconnected, failed or died.
#define RNICD_QP_FLUSH_WITH_PEER 0x1u

struct rnicd_qp_options {
  size_t size;
  // Maximum of outstanding receives, and of outstanding initiator requests, silent ones included. 0: 64.
  uint32_t receive_queue_depth;
  uint32_t initiator_queue_depth;
  // Maximum of SGEs in one receive, and in one initiator request other than a read. 0: 4.
  uint32_t max_receive_request_sge;
  uint32_t max_initiator_request_sge;
  // Maximum of bytes in one inline payload. 0: 256.
  uint32_t inline_data_size;
  // RNICD_QP_ flags combined by OR.
  uint32_t flags;
  // Returned with every completion.
  uint64_t qp_context;
  // Called at most once, when the peer disconnected or is dead. This alone does not flush requests. May close this
  // queue pair. May be NULL.
  void (*on_disconnected)(void* context);
  // Passed to the callback.
  void* context;
};

// Creates one end of a connection between two sessions, or within one. `options` may be NULL. Both queues may be the
// same.
// Errors: -EINVAL above a limit of the adapter; -ENOENT the queues are of different sessions; -EDQUOT; -ENOSPC.
// Source: NDK_FN_CREATE_QP.
int rnicd_create_qp(struct rnicd_cq* receive_cq, struct rnicd_cq* initiator_cq, const struct rnicd_qp_options* options,
                    struct rnicd_qp** qp);

struct rnicd_qp_info {
  size_t size;
  uint64_t id;
  // What the peer passes to rnicd_connect_qp: opaque bytes, constant for the queue pair's life.
  unsigned char address[64];
  uint32_t address_bytes;
  uint32_t reserved;
};
// Describes the queue pair. Makes no call of the daemon.
int rnicd_query_qp(const struct rnicd_qp* qp, struct rnicd_qp_info* info);

enum rnicd_qp_state {
  // Not connected yet: receives can be posted.
  RNICD_QP_INIT = 1,
  // Everything can be posted.
  RNICD_QP_READY_TO_SEND = 2,
  // Disconnected, flushed, or a request failed: nothing is executed any more.
  RNICD_QP_ERROR = 3
};
// Asks the daemon for the state, and returns an enum rnicd_qp_state.
int rnicd_qp_state(struct rnicd_qp* qp);

// Connects to the queue pair with this address. Both sides do, in any order; what one side posts before the other has
// done it waits. Once in a queue pair's life.
// Errors: -ENOENT no such queue pair; -EBADFD connected before, flushed or failed.
int rnicd_connect_qp(struct rnicd_qp* qp, const void* peer_address, size_t address_bytes);
// Waits for running transfers, then flushes, and notifies the peer.
// Errors: -ENOTCONN.
// Source: NDK_FN_DISCONNECT.
int rnicd_disconnect_qp(struct rnicd_qp* qp);
// Completes every pending request as REQUEST_FLUSHED. The queue pair cannot be used afterwards.
// Source: NDK_FN_FLUSH.
int rnicd_flush_qp(struct rnicd_qp* qp);
// Flushes and closes the queue pair; completions of flushed requests stay on their queues. Waits for on_disconnected if
// that runs on another thread, and is not called afterwards.
int rnicd_close_qp(struct rnicd_qp* qp);

// Posts the chain's requests in order, up to the first that is refused; rnicd_chain_posted is how many. Each of them
// ends with one completion, except one with RNICD_OP_SILENT_SUCCESS that succeeds. Inline payloads and pages are
// copied, so the chain can be reset or posted again at once; memory and objects of its requests must live until they
// are complete. Returns 0 if all were posted, else why the next was refused (`field` begins with "requests[N]"). After
// -ECONNRESET and -ETIMEDOUT how many were posted is unknown.
// Errors: -EAGAIN the queue is full (QUEUE_FULL): poll completions; -ENOTCONN not connected; -EINVAL none or more than
//         1,024 requests, too many SGEs, too many bytes; -EACCES objects of another protection domain.
// Source: NDK_FN_SEND, _SEND_AND_INVALIDATE, _RECEIVE, _READ, _WRITE, _FAST_REGISTER, _INVALIDATE, _BIND.
int rnicd_post(struct rnicd_qp* qp, struct rnicd_chain* chain);
// As rnicd_post, but waits only for room in the ring, not for the outcome, and all requests count as posted. One that
// rnicd_post would refuse completes in its place instead, with the reason of the refusal: what was posted before it is
// executed, then the queue pair fails, and what is behind it completes as REQUEST_FLUSHED, silent requests too. (A
// receive that is refused fails the queue pair at once.) rnicd_chain_token has no tokens of it: rnicd_fast_mr_token and
// rnicd_mw_token do. Without a ring it waits for the call, and a daemon without this feature refuses as in rnicd_post.
// Requests in a ring that ends before the session complete as REQUEST_FLUSHED, and their queue pairs are flushed: polls
// and waits notice it within 100 ms; an event loop that sleeps on rnicd_cq_fd is not woken.
// Errors: as rnicd_post for the whole chain, and nothing was posted; -EAGAIN more requests than rnicd_query_outstanding
//         leaves room for.
int rnicd_post_without_outcome(struct rnicd_qp* qp, struct rnicd_chain* chain);

// Requests posted by this handle whose end is not known.
struct rnicd_outstanding {
  uint32_t initiator;
  uint32_t receive;
};
// Counts them without a call. A completion that was polled proves that all earlier requests of its queue are over:
// silent ones that succeed count until then. Always 0 with an older daemon.
int rnicd_query_outstanding(const struct rnicd_qp* qp, struct rnicd_outstanding* outstanding);

// --- Work chains ----------------------------------------------------------------------------------------------------

// Flags of requests, combined by OR.
// Source: NDK_OP_FLAG_. Every request but a receive: no completion if it succeeds.
#define RNICD_OP_SILENT_SUCCESS 0x1u
// The same: does not begin before all earlier reads of the queue pair are complete.
#define RNICD_OP_READ_FENCE 0x2u
// The same: the adapter may wait for the next request. A hint.
#define RNICD_OP_DEFER 0x200u
// Sends: the receiver's completion satisfies a queue that is armed SOLICITED.
#define RNICD_OP_SOLICIT 0x4u
// Fast registrations and binds: rights of the token. Remote write includes local write.
#define RNICD_OP_REMOTE_READ 0x8u
#define RNICD_OP_LOCAL_WRITE 0x10u
#define RNICD_OP_REMOTE_WRITE 0x30u
// Fast registrations: as RNICD_MR_READ_SINK.
#define RNICD_OP_READ_SINK 0x80u
// Reads: ends the fast registration of the sink when the bytes are there.
#define RNICD_OP_READ_LOCAL_INVALIDATE 0x100u

// A piece of memory that a request reads or writes.
struct rnicd_sge {
  // Inside the token's region; a logical address with the privileged token.
  uint64_t address;
  // Bytes; may be 0.
  uint32_t length;
  // A local token, or the privileged token.
  uint32_t token;
};

// Creates an empty chain of work requests: of no session, and reused best, because it keeps its memory. Each function
// below adds one request, with `flags` and a `context` that its completion returns; `sges` may be NULL if `sge_count`
// is 0, and the transfer then has no bytes. rnicd_post validates the requests.
int rnicd_create_chain(struct rnicd_chain** chain);
// Removes all requests.
int rnicd_reset_chain(struct rnicd_chain* chain);
// Frees the chain.
int rnicd_close_chain(struct rnicd_chain* chain);
// Number of requests, and how many of them the last rnicd_post posted; 0 for NULL.
uint32_t rnicd_chain_length(const struct rnicd_chain* chain);
uint32_t rnicd_chain_posted(const struct rnicd_chain* chain);
// Remote token that the last rnicd_post issued for request number `index`, a fast registration or a bind; 0 if none.
// Valid once the request is executed.
uint32_t rnicd_chain_token(const struct rnicd_chain* chain, uint32_t index);

// Sends the bytes of the SGEs to the peer's oldest receive.
int rnicd_chain_send(struct rnicd_chain* chain, const struct rnicd_sge* sges, uint32_t sge_count, uint32_t flags,
                     uint64_t context);
// As rnicd_chain_send, with a payload that is copied from `bytes` and needs no registered memory.
int rnicd_chain_send_inline(struct rnicd_chain* chain, const void* bytes, size_t length, uint32_t flags,
                            uint64_t context);
// As rnicd_chain_send; and the receiver invalidates `token`, which is its own, before its receive completes.
int rnicd_chain_send_and_invalidate(struct rnicd_chain* chain, const struct rnicd_sge* sges, uint32_t sge_count,
                                    uint32_t token, uint32_t flags, uint64_t context);
int rnicd_chain_send_inline_and_invalidate(struct rnicd_chain* chain, const void* bytes, size_t length, uint32_t token,
                                           uint32_t flags, uint64_t context);
// Takes the bytes of one of the peer's sends into the SGEs. Takes no flags.
int rnicd_chain_receive(struct rnicd_chain* chain, const struct rnicd_sge* sges, uint32_t sge_count, uint64_t context);
// Copies the peer's memory into the SGEs.
int rnicd_chain_read(struct rnicd_chain* chain, const struct rnicd_sge* sges, uint32_t sge_count,
                     uint64_t remote_address, uint32_t remote_token, uint32_t flags, uint64_t context);
// Copies the SGEs into the peer's memory.
int rnicd_chain_write(struct rnicd_chain* chain, const struct rnicd_sge* sges, uint32_t sge_count,
                      uint64_t remote_address, uint32_t remote_token, uint32_t flags, uint64_t context);
int rnicd_chain_write_inline(struct rnicd_chain* chain, const void* bytes, size_t length, uint64_t remote_address,
                             uint32_t remote_token, uint32_t flags, uint64_t context);
// Registers pages. rnicd_chain_token has the remote token.
int rnicd_chain_fast_register(struct rnicd_chain* chain, const struct rnicd_fast_mr* mr,
                              const struct rnicd_pages* pages, uint32_t flags, uint64_t context);
// Ends a fast registration. An rnicd_mr is deregistered instead.
int rnicd_chain_invalidate_fast_mr(struct rnicd_chain* chain, const struct rnicd_fast_mr* mr, uint32_t flags,
                                   uint64_t context);
// Opens the window on `length` bytes of the region, from `address` on. rnicd_chain_token has the remote token.
int rnicd_chain_bind(struct rnicd_chain* chain, const struct rnicd_mr* mr, const struct rnicd_mw* mw, uint64_t address,
                     uint64_t length, uint32_t flags, uint64_t context);
// Ends a window's binding.
int rnicd_chain_invalidate_mw(struct rnicd_chain* chain, const struct rnicd_mw* mw, uint32_t flags, uint64_t context);

// --- Reasons --------------------------------------------------------------------------------------------------------

// Why a call was refused, or a request failed. Numbers are never reused.
enum rnicd_reason {
  RNICD_REASON_UNSPECIFIED = 0,
  // clang-format off
  // <!-- reasons:begin -->
  // --- Callers, sessions and grants
  // the caller's role may not call this method
  RNICD_REASON_METHOD_NOT_PERMITTED = 1,
  // the connection has no session; call OpenSession or JoinSession first
  RNICD_REASON_SESSION_REQUIRED = 2,
  // the connection already carries a session
  RNICD_REASON_SESSION_ALREADY_OPEN = 3,
  // no session with this id belongs to the calling process
  RNICD_REASON_SESSION_NOT_FOUND = 4,
  // the session is being taken back
  RNICD_REASON_SESSION_ENDING = 5,
  // the session already has an event stream
  RNICD_REASON_EVENT_STREAM_ALREADY_OPEN = 6,
  // the daemon is draining or stopping: it takes no new sessions, memory and registrations
  RNICD_REASON_DAEMON_DRAINING = 7,
  // the daemon failed; this is a bug, please report it
  RNICD_REASON_INTERNAL_FAULT = 8,
  // the node's policy has no tenant for the caller
  RNICD_REASON_TENANT_REFUSED = 9,
  // the grant does not exist, has expired, or is not for this caller
  RNICD_REASON_GRANT_REFUSED = 10,
  // more calls or connections than the caller may make now
  RNICD_REASON_RATE_LIMITED = 11,
  // another daemon has taken over, and opens the sessions now; connect again
  RNICD_REASON_DAEMON_HANDED_OVER = 12,

  // --- Ids
  // no object with this id belongs to the session
  RNICD_REASON_OBJECT_NOT_FOUND = 20,
  // the node has no adapter with this name
  RNICD_REASON_ADAPTER_NOT_FOUND = 21,
  // this NDKPI version is not provided
  RNICD_REASON_NDK_VERSION_UNSUPPORTED = 22,
  // the object is being closed and takes no new children or requests
  RNICD_REASON_OBJECT_CLOSING = 23,
  // no grant has this id
  RNICD_REASON_GRANT_NOT_FOUND = 25,
  // a grant with this name already exists; revoke it first
  RNICD_REASON_GRANT_NAME_TAKEN = 26,
  // the policy file was refused; the policy in force stays
  RNICD_REASON_POLICY_REFUSED = 27,
  // the daemon has no service of this name; ask for rnicd
  RNICD_REASON_HEALTH_SERVICE_UNKNOWN = 28,
  // the door of the grant cannot be made
  RNICD_REASON_DOOR_UNAVAILABLE = 29,

  // --- Requests, before their method sees them
  // the request's bytes are not one message of the method's type
  RNICD_REASON_MESSAGE_MALFORMED = 30,
  // the request's message has too many bytes
  RNICD_REASON_MESSAGE_TOO_LARGE = 31,
  // the request has too many messages, texts and unknown fields
  RNICD_REASON_MESSAGE_TOO_COMPLEX = 32,
  // the daemon does not take compressed messages
  RNICD_REASON_MESSAGE_COMPRESSED = 33,
  // the requests on the way take more memory than the connection, its owner or the daemon may use; try again when some
  // have been answered
  RNICD_REASON_REQUEST_BUDGET = 34,
  // the request did not arrive whole in time
  RNICD_REASON_REQUEST_TIMEOUT = 35,
  // the daemon has no method with this path
  RNICD_REASON_METHOD_UNKNOWN = 36,
  // the request does not carry the secret of its connection
  RNICD_REASON_SECRET_REQUIRED = 37,

  // --- Arguments
  // the field's value is outside its documented range
  RNICD_REASON_FIELD_OUT_OF_RANGE = 40,
  // the length is zero
  RNICD_REASON_LENGTH_ZERO = 41,
  // the length is above the sum of the MDL chain
  RNICD_REASON_LENGTH_ABOVE_CHAIN = 42,
  // the length is above the adapter's max_registration_size
  RNICD_REASON_LENGTH_ABOVE_ADAPTER_LIMIT = 43,
  // the MDL chain has no entry
  RNICD_REASON_MDL_CHAIN_EMPTY = 44,
  // the MDL chain has too many entries
  RNICD_REASON_MDL_CHAIN_TOO_LONG = 45,
  // the MDL chain is not virtually contiguous over the length
  RNICD_REASON_MDL_CHAIN_GAP = 46,
  // an MDL entry covers no byte
  RNICD_REASON_MDL_ENTRY_EMPTY = 47,
  // zero-based virtual addresses are not supported
  RNICD_REASON_MDL_ADDRESS_ZERO = 48,
  // an MDL entry passes the end of the 64-bit range
  RNICD_REASON_MDL_RANGE_OVERFLOW = 49,
  // an MDL entry passes the end of its memory object
  RNICD_REASON_MDL_RANGE_OUTSIDE_MEMORY = 50,
  // an MDL entry's address and offset differ modulo the page, or a seam lies inside a page
  RNICD_REASON_MDL_NOT_PAGE_CONGRUENT = 51,
  // the flags have an unknown bit
  RNICD_REASON_FLAGS_UNKNOWN = 52,
  // remote write requires local write; set both bits
  RNICD_REASON_FLAGS_INCOMPLETE_REMOTE_WRITE = 53,
  // the batch is empty or has too many items
  RNICD_REASON_BATCH_SIZE = 54,
  // the response does not fit into the caller's buffer
  RNICD_REASON_BUFFER_TOO_SMALL = 55,
  // the value is above the adapter's limit
  RNICD_REASON_ABOVE_ADAPTER_LIMIT = 56,
  // the length is above what the pages hold behind the first byte offset
  RNICD_REASON_LENGTH_ABOVE_PAGES = 57,
  // address and length pass the end of the 64-bit range
  RNICD_REASON_ADDRESS_RANGE_OVERFLOW = 58,
  // the base address is not the first byte offset plus a whole number of pages
  RNICD_REASON_BASE_NOT_CONGRUENT = 59,

  // --- Memory regions
  // the region was created for the other kind of registration
  RNICD_REASON_REGION_WRONG_KIND = 60,
  // the region is registered
  RNICD_REASON_REGION_ALREADY_REGISTERED = 61,
  // the region is not registered
  RNICD_REASON_REGION_NOT_REGISTERED = 62,
  // the region has a request pending
  RNICD_REASON_REGION_BUSY = 63,
  // the region was not initialized for fast registration
  RNICD_REASON_REGION_NOT_INITIALIZED = 64,
  // the region is already initialized
  RNICD_REASON_REGION_ALREADY_INITIALIZED = 65,
  // the region was initialized without remote access
  RNICD_REASON_REGION_NO_REMOTE_ACCESS = 66,
  // the region lacks the local write right that a window for remote writes needs
  RNICD_REASON_REGION_RIGHTS_INSUFFICIENT = 67,
  // a memory window is bound to the region
  RNICD_REASON_REGION_HAS_WINDOWS = 68,
  // the number of pages is not supported
  RNICD_REASON_PAGE_COUNT_UNSUPPORTED = 69,
  // the page array has more pages than the region was initialized for
  RNICD_REASON_PAGE_COUNT_ABOVE_REGION = 70,
  // the logical address is not the start of a page
  RNICD_REASON_LOGICAL_ADDRESS_UNALIGNED = 71,
  // the logical address lies in no mapping of the session on this adapter
  RNICD_REASON_LOGICAL_ADDRESS_UNKNOWN = 72,
  // the window does not lie inside the region
  RNICD_REASON_WINDOW_OUTSIDE_REGION = 73,
  // the window was never bound
  RNICD_REASON_WINDOW_NOT_BOUND = 74,

  // --- Memory objects
  // the memory object's descriptor has not passed the fd socket yet
  RNICD_REASON_MEMORY_NOT_ATTACHED = 80,
  // the memory object is not sealed; call SealMemory first
  RNICD_REASON_MEMORY_NOT_SEALED = 81,
  // the memory object is already sealed
  RNICD_REASON_MEMORY_ALREADY_SEALED = 82,
  // a region or a running request uses the memory object
  RNICD_REASON_MEMORY_IN_USE = 83,
  // the size is not a whole number of pages
  RNICD_REASON_MEMORY_SIZE_UNALIGNED = 84,
  // the descriptor is neither a memory file (memfd) nor a dma-buf
  RNICD_REASON_MEMORY_NOT_MEMORY = 85,
  // the memory file does not allow sealing (MFD_ALLOW_SEALING)
  RNICD_REASON_MEMORY_NOT_SEALABLE = 86,
  // the memory file is already sealed against writing
  RNICD_REASON_MEMORY_WRITE_SEALED = 87,
  // the descriptor is not open for reading and writing
  RNICD_REASON_MEMORY_READ_ONLY = 88,
  // the memory file is shorter than announced
  RNICD_REASON_MEMORY_TOO_SHORT = 89,
  // the node cannot provide the pages
  RNICD_REASON_MEMORY_PAGES_UNAVAILABLE = 90,
  // the kernel refused to seal the memory file
  RNICD_REASON_MEMORY_SEAL_REFUSED = 91,
  // the node has no such NUMA node
  RNICD_REASON_NUMA_NODE_UNKNOWN = 92,

  // --- The fd socket
  // the ticket was never issued to this process, was used, or has expired
  RNICD_REASON_TICKET_UNKNOWN = 100,
  // the packet on the fd socket is not an FdRequest
  RNICD_REASON_FD_PACKET_MALFORMED = 101,
  // the packet carries a different number of descriptors than announced or needed
  RNICD_REASON_FD_COUNT_WRONG = 102,
  // an earlier descriptor of the same pod, container or user blocks the daemon's thread for it; close what is behind
  // it, then try again
  RNICD_REASON_FD_BLOCKED = 103,

  // --- Limits
  // too many sessions
  RNICD_REASON_QUOTA_SESSIONS = 120,
  // too many open adapters
  RNICD_REASON_QUOTA_ADAPTERS = 121,
  // too many protection domains
  RNICD_REASON_QUOTA_PROTECTION_DOMAINS = 122,
  // too many memory objects
  RNICD_REASON_QUOTA_MEMORY_OBJECTS = 123,
  // too many bytes of memory objects
  RNICD_REASON_QUOTA_MEMORY_BYTES = 124,
  // too many memory regions
  RNICD_REASON_QUOTA_REGIONS = 125,
  // too many pinned bytes, each page counted once
  RNICD_REASON_QUOTA_PINNED_BYTES = 126,
  // too many pending requests
  RNICD_REASON_QUOTA_PENDING_REQUESTS = 127,
  // too many logical address mappings
  RNICD_REASON_QUOTA_LOGICAL_MAPPINGS = 128,
  // too many pages of fast-register regions
  RNICD_REASON_QUOTA_FAST_REGISTER_PAGES = 129,
  // too many completion queues
  RNICD_REASON_QUOTA_COMPLETION_QUEUES = 130,
  // too many completion queue entries
  RNICD_REASON_QUOTA_CQ_ENTRIES = 131,
  // too many queue pairs
  RNICD_REASON_QUOTA_QUEUE_PAIRS = 132,
  // too many queue pair entries
  RNICD_REASON_QUOTA_QUEUE_ENTRIES = 133,
  // too many memory windows
  RNICD_REASON_QUOTA_WINDOWS = 134,
  // too many pages in posted requests and live fast registrations
  RNICD_REASON_QUOTA_POSTED_PAGES = 135,
  // too many registered bytes, each page counted as often as it is registered
  RNICD_REASON_QUOTA_REGISTERED_BYTES = 136,
  // too many grants
  RNICD_REASON_QUOTA_GRANTS = 137,
  // too many pages of logical address mappings
  RNICD_REASON_QUOTA_LOGICAL_PAGES = 138,
  // too many bytes of the daemon's own memory for what the caller holds
  RNICD_REASON_QUOTA_HEAP_BYTES = 139,
  // too many listeners
  RNICD_REASON_QUOTA_LISTENERS = 218,
  // too many connectors
  RNICD_REASON_QUOTA_CONNECTORS = 219,
  // too many rings
  RNICD_REASON_QUOTA_RINGS = 190,

  // --- The device
  // the device has no room for another object
  RNICD_REASON_DEVICE_OUT_OF_RESOURCES = 140,
  // the device refused an operation that should have worked
  RNICD_REASON_DEVICE_FAILED = 141,
  // the device cannot do this
  RNICD_REASON_DEVICE_NOT_CAPABLE = 142,
  // the device was removed; close the objects created on it
  RNICD_REASON_DEVICE_REMOVED = 144,
  // the daemon may not pin more memory (RLIMIT_MEMLOCK, and no CAP_IPC_LOCK)
  RNICD_REASON_DEVICE_MEMLOCK_LIMIT = 145,
  // the kernel cannot pin a page of the range
  RNICD_REASON_MEMORY_NOT_PINNABLE = 146,

  // --- Queue pairs, completion queues and rings
  // the queue pair is not connected
  RNICD_REASON_QP_NOT_CONNECTED = 160,
  // the queue pair was connected before, was flushed, or has failed
  RNICD_REASON_QP_NOT_CONNECTABLE = 161,
  // no queue pair has this address
  RNICD_REASON_QP_ADDRESS_UNKNOWN = 162,
  // the queue has no room for another request
  RNICD_REASON_QUEUE_FULL = 163,
  // the request has more SGEs than the queue pair allows
  RNICD_REASON_SGE_COUNT = 164,
  // the SGEs add up to more than the adapter's max_transfer_length
  RNICD_REASON_TRANSFER_TOO_LONG = 165,
  // the inline data is longer than the queue pair allows
  RNICD_REASON_INLINE_TOO_LONG = 166,
  // this adapter does not take the privileged token for the sink of a read
  RNICD_REASON_READ_SINK_PRIVILEGED = 167,
  // the object and the queue pair belong to different protection domains
  RNICD_REASON_DOMAIN_MISMATCH = 168,
  // the objects belong to different adapters
  RNICD_REASON_ADAPTER_MISMATCH = 169,
  // more completions arrived than the queue holds; the queue and its queue pairs have failed
  RNICD_REASON_CQ_OVERRUN = 170,
  // the queue holds more completions than the new depth
  RNICD_REASON_CQ_BACKLOG = 171,
  // the queue is mapped: its completions are in shared memory, not in the daemon
  RNICD_REASON_CQ_MAPPED = 172,
  // the mapped queue was not created for so many completions
  RNICD_REASON_ABOVE_MAPPED_DEPTH = 173,
  // the indices in the ring's memory are impossible; the ring has ended, the session goes on
  RNICD_REASON_RING_BROKEN = 191,
  // the daemon serves no rings, or has no descriptor or memory for another
  RNICD_REASON_RINGS_UNAVAILABLE = 192,

  // --- Connections
  // nobody listens at the peer's address, or the peer has rejected the connection
  RNICD_REASON_CONNECTION_REFUSED = 200,
  // the peer has given up the connection
  RNICD_REASON_CONNECTION_ABORTED = 201,
  // the peer has not answered in time
  RNICD_REASON_CONNECTION_TIMED_OUT = 202,
  // the connector was closed before the request had ended
  RNICD_REASON_CONNECTION_CANCELLED = 203,
  // the connector is not in a state for this call
  RNICD_REASON_CONNECTOR_STATE = 204,
  // the connector or the queue pair is connected, or connecting
  RNICD_REASON_CONNECTION_ACTIVE = 205,
  // the adapter has no route to the peer's network
  RNICD_REASON_NETWORK_UNREACHABLE = 206,
  // the peer's host does not answer
  RNICD_REASON_HOST_UNREACHABLE = 207,
  // the address and port are taken
  RNICD_REASON_ADDRESS_IN_USE = 208,
  // the address is not one of this adapter, or no peer can have it
  RNICD_REASON_ADDRESS_INVALID = 209,
  // a connection between these two addresses and ports exists
  RNICD_REASON_CONNECTION_EXISTS = 210,
  // no port is left that the caller may use
  RNICD_REASON_PORTS_EXHAUSTED = 211,
  // the listener listens already, or not yet
  RNICD_REASON_LISTENER_STATE = 212,
  // the private data are longer than the adapter carries
  RNICD_REASON_PRIVATE_DATA_TOO_LONG = 213,
  // the policy does not let the caller listen at this address, or reach it
  RNICD_REASON_ADDRESS_NOT_PERMITTED = 214,
  // no listener on this node has this name
  RNICD_REASON_NAME_NOT_FOUND = 215,
  // another listener has this name
  RNICD_REASON_NAME_TAKEN = 216,
  // the connection was made without reads in this direction
  RNICD_REASON_READS_NOT_AGREED = 217,

  // --- Posted requests that failed: in completions only, never in a call
  // the request was not executed: the queue pair was flushed, disconnected or closed, or failed before
  RNICD_REASON_REQUEST_FLUSHED = 180,
  // an SGE's token is not valid, or does not cover its range with the right that the request needs
  RNICD_REASON_LOCAL_ACCESS_REFUSED = 181,
  // the remote token is not valid at the peer, or does not cover the range with the right that the request needs
  RNICD_REASON_REMOTE_ACCESS_REFUSED = 182,
  // the peer has failed or disconnected, or did not answer in time
  RNICD_REASON_PEER_LOST = 183,
  // the peer could not do its part: its receive failed, or the token could not be invalidated
  RNICD_REASON_PEER_FAILED = 184,
  // the message is longer than the receive's SGEs
  RNICD_REASON_RECEIVE_TOO_SHORT = 185,
  // the bytes arrived, but the token to be invalidated is not one of a fast registration or a bound window
  RNICD_REASON_TOKEN_NOT_INVALIDATED = 186,
  // the region or window was registered, bound, invalidated or closed before the request's turn came
  RNICD_REASON_REQUEST_OUT_OF_STATE = 187
  // <!-- reasons:end -->
  // clang-format on
};

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}

template <typename Struct>
inline Struct rnicd_init() {
  Struct value = Struct();
  value.size = sizeof(Struct);
  return value;
}
#endif
