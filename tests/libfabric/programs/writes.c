// A write within registered memory through the C library, posted and polled, and the same copy by memcpy: a line for
// each size, with bytes, and the median of both in microseconds.
#include <rnicd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kRounds = 200 };

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

static double median(double* values) {
  qsort(values, kRounds, sizeof(double), compare);
  return values[kRounds / 2];
}

static void must(int result, const char* step) {
  if (result < 0) {
    fprintf(stderr, "%s: %s\n", step, rnicd_last_error()->message);
    exit(1);
  }
}

int main(int argc, char** argv) {
  const uint64_t half = UINT64_C(16) << 20;
  struct rnicd_memory_options pages = RNICD_INIT(rnicd_memory_options);
  struct rnicd_mr_info region = RNICD_INIT(rnicd_mr_info);
  struct rnicd_qp_info self = RNICD_INIT(rnicd_qp_info);
  struct rnicd_session* session;
  struct rnicd_memory* memory;
  struct rnicd_mr* mr;
  struct rnicd_cq* cq;
  struct rnicd_qp* qp;
  struct rnicd_chain* chain;
  pages.bytes = 2 * half;
  must(rnicd_open_session(NULL, &session), "session");
  must(rnicd_allocate_memory(session, &pages, &memory), "memory");
  must(rnicd_register_mr(memory, 0, 2 * half, RNICD_MR_REMOTE_WRITE, &mr), "region");
  must(rnicd_query_mr(mr, &region), "tokens");
  must(rnicd_create_cq(session, 16, 0, &cq), "completion queue");
  must(rnicd_create_qp(cq, cq, NULL, &qp), "queue pair");
  must(rnicd_query_qp(qp, &self), "address");
  must(rnicd_connect_qp(qp, self.address, self.address_bytes), "connect");
  must(rnicd_create_chain(&chain), "chain");
  for (int at = 1; at < argc; ++at) {
    const struct rnicd_sge from = {region.address, (uint32_t)atoi(argv[at]), region.local_token};
    double by_card[kRounds], by_memcpy[kRounds];
    for (int round = 0; round < kRounds; ++round) {
      struct rnicd_completion completion;
      rnicd_reset_chain(chain);
      rnicd_chain_write(chain, &from, 1, region.address + half, region.remote_token, 0, 0);
      double begin = now_us();
      must(rnicd_post_without_outcome(qp, chain), "post");
      must(rnicd_poll_cq_for(cq, &completion, 1, 10000), "poll");
      by_card[round] = now_us() - begin;
      begin = now_us();
      memcpy((void*)(uintptr_t)(region.address + half), (void*)(uintptr_t)region.address, from.length);
      by_memcpy[round] = now_us() - begin;
    }
    printf("%u %.2f %.2f\n", from.length, median(by_card), median(by_memcpy));
  }
  rnicd_close_session(session, NULL);
  return 0;
}
