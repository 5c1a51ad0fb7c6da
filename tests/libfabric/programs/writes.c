// Writes within registered memory through the C library, and the same copies by memcpy: a line for each size, with
// bytes, the median of both in microseconds, and MB/s of both, 16 writes being in flight.
#include <string.h>

#include "measure.h"

enum { kRounds = 200, kInFlight = 16 };

static struct rnicd_cq* cq;
static struct rnicd_qp* qp;
static struct rnicd_chain* chain;

static void post_write(const struct rnicd_sge* from, uint64_t to, uint32_t token) {
  rnicd_reset_chain(chain);
  rnicd_chain_write(chain, from, 1, to, token, 0, 0);
  must(rnicd_post_without_outcome(qp, chain), "post");
}

static int complete(void) {
  struct rnicd_completion completions[kInFlight];
  return must(rnicd_poll_cq_for(cq, completions, kInFlight, 10000), "poll");
}

static double write_us(const struct rnicd_sge* from, uint64_t to, uint32_t token) {
  double took[kRounds];
  for (int round = 0; round < kRounds; ++round) {
    const double begin = now_us();
    post_write(from, to, token);
    complete();
    took[round] = now_us() - begin;
  }
  return median(took, kRounds);
}

static double memcpy_us(const struct rnicd_sge* from, uint64_t to) {
  double took[kRounds];
  for (int round = 0; round < kRounds; ++round) {
    const double begin = now_us();
    memcpy((void*)(uintptr_t)to, (void*)(uintptr_t)from->address, from->length);
    took[round] = now_us() - begin;
  }
  return median(took, kRounds);
}

static double write_rate(const struct rnicd_sge* from, uint64_t to, uint32_t token) {
  const double begin = now_us();
  for (int posted = 0, done = 0; done < kRounds;) {
    if (posted < kRounds && posted - done < kInFlight) {
      post_write(from, to, token);
      ++posted;
    } else {
      done += complete();
    }
  }
  return (double)from->length * kRounds / (now_us() - begin);
}

int main(int argc, char** argv) {
  const uint64_t half = UINT64_C(16) << 20;
  struct rnicd_memory_options pages = RNICD_INIT(rnicd_memory_options);
  struct rnicd_mr_info region = RNICD_INIT(rnicd_mr_info);
  struct rnicd_qp_info self = RNICD_INIT(rnicd_qp_info);
  struct rnicd_session* session;
  struct rnicd_memory* memory;
  struct rnicd_mr* mr;
  pages.bytes = 2 * half;
  must(rnicd_open_session(NULL, &session), "session");
  must(rnicd_allocate_memory(session, &pages, &memory), "memory");
  must(rnicd_register_mr(memory, 0, 2 * half, RNICD_MR_REMOTE_WRITE, &mr), "region");
  must(rnicd_query_mr(mr, &region), "tokens");
  must(rnicd_create_cq(session, kInFlight, 0, &cq), "completion queue");
  must(rnicd_create_qp(cq, cq, NULL, &qp), "queue pair");
  must(rnicd_query_qp(qp, &self), "address");
  must(rnicd_connect_qp(qp, self.address, self.address_bytes), "connect");
  must(rnicd_create_chain(&chain), "chain");
  for (int at = 1; at < argc; ++at) {
    const struct rnicd_sge from = {region.address, (uint32_t)atoi(argv[at]), region.local_token};
    const uint64_t to = region.address + half;
    const double by_card = write_us(&from, to, region.remote_token);
    const double by_memcpy = memcpy_us(&from, to);
    printf("%u %.2f %.2f %.0f %.0f\n", from.length, by_card, by_memcpy, write_rate(&from, to, region.remote_token),
           from.length / by_memcpy);
  }
  rnicd_close_session(session, NULL);
  return 0;
}
