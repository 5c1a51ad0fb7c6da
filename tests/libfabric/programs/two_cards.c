// usage: two_cards SOCKET_DIR SOCKET_DIR (BYTES ROUNDS)...
// A session at each of two daemons, connected: writes from the first to the second with as many outstanding as
// ib_write_bw has, and half of a round trip of messages, as ib_send_lat. A line for each size, with bytes, MB/s, and
// the median in microseconds.
#include <string.h>

#include "measure.h"

// perftest's: requests outstanding, how many of them have one completion, and the longest message within a request.
enum { kOutstanding = 128, kReported = 16, kInline = 236 };

static const uint32_t kBytes = 8u << 20;

struct end {
  struct rnicd_session* session;
  struct rnicd_mr_info region;
  struct rnicd_cq* sent;
  struct rnicd_cq* received;
  struct rnicd_qp* qp;
  struct rnicd_qp_info info;
  struct rnicd_chain* chain;
};

static void open_end(struct end* end, const char* socket_dir) {
  struct rnicd_session_options where = RNICD_INIT(rnicd_session_options);
  struct rnicd_memory_options pages = RNICD_INIT(rnicd_memory_options);
  struct rnicd_qp_options depths = RNICD_INIT(rnicd_qp_options);
  struct rnicd_memory* memory;
  struct rnicd_mr* mr;
  where.socket_dir = socket_dir;
  pages.bytes = kBytes;
  depths.initiator_queue_depth = kOutstanding;
  end->region = (struct rnicd_mr_info)RNICD_INIT(rnicd_mr_info);
  end->info = (struct rnicd_qp_info)RNICD_INIT(rnicd_qp_info);
  must(rnicd_open_session(&where, &end->session), "session");
  must(rnicd_allocate_memory(end->session, &pages, &memory), "memory");
  must(rnicd_register_mr(memory, 0, kBytes, RNICD_MR_LOCAL_WRITE | RNICD_MR_REMOTE_WRITE, &mr), "region");
  must(rnicd_query_mr(mr, &end->region), "tokens");
  must(rnicd_create_cq(end->session, kOutstanding, 0, &end->sent), "completion queue");
  must(rnicd_create_cq(end->session, kOutstanding, 0, &end->received), "completion queue");
  must(rnicd_create_qp(end->received, end->sent, &depths, &end->qp), "queue pair");
  must(rnicd_query_qp(end->qp, &end->info), "address");
  must(rnicd_create_chain(&end->chain), "chain");
}

static void complete(struct rnicd_cq* cq) {
  struct rnicd_completion completion;
  must(rnicd_poll_cq_for(cq, &completion, 1, -1), "poll");
  if (completion.ntstatus != 0) {
    fprintf(stderr, "a request has failed: %s\n", rnicd_reason_name((int)completion.reason));
    exit(1);
  }
}

static void post_writes(struct end* from, const struct end* to, uint32_t bytes, int count) {
  const struct rnicd_sge sge = {from->region.address, bytes, from->region.local_token};
  rnicd_reset_chain(from->chain);
  for (int left = count; left > 0; --left) {
    rnicd_chain_write(from->chain, &sge, 1, to->region.address, to->region.remote_token,
                      left > 1 ? RNICD_OP_SILENT_SUCCESS : 0, 0);
  }
  must(rnicd_post_without_outcome(from->qp, from->chain), "write");
}

static double megabytes_per_second(struct end* from, const struct end* to, uint32_t bytes, int rounds) {
  const int reports = (rounds + kReported - 1) / kReported;
  const double begin = now_us();
  for (int posted = 0, done = 0; done < reports;) {
    if (posted < reports && posted - done < kOutstanding / kReported) {
      post_writes(from, to, bytes, kReported);
      ++posted;
    } else {
      complete(from->sent);
      ++done;
    }
  }
  return (double)bytes * kReported * reports / (now_us() - begin);
}

static void post_receive(struct end* end, uint32_t bytes) {
  const struct rnicd_sge sge = {end->region.address, bytes, end->region.local_token};
  rnicd_reset_chain(end->chain);
  rnicd_chain_receive(end->chain, &sge, 1, 0);
  must(rnicd_post_without_outcome(end->qp, end->chain), "receive");
}

static void send_to(struct end* from, const struct end* to, uint32_t bytes) {
  const struct rnicd_sge sge = {from->region.address, bytes, from->region.local_token};
  rnicd_reset_chain(from->chain);
  if (bytes <= kInline) {
    rnicd_chain_send_inline(from->chain, (const void*)(uintptr_t)sge.address, bytes, 0, 0);
  } else {
    rnicd_chain_send(from->chain, &sge, 1, 0, 0);
  }
  must(rnicd_post_without_outcome(from->qp, from->chain), "send");
  complete(to->received);
}

static double half_round_trip_us(struct end* left, struct end* right, uint32_t bytes, int rounds) {
  double* took = malloc(sizeof(double) * (size_t)rounds);
  for (int round = 0; round < rounds; ++round) {
    post_receive(left, bytes);
    post_receive(right, bytes);
    const double begin = now_us();
    send_to(left, right, bytes);
    send_to(right, left, bytes);
    took[round] = (now_us() - begin) / 2;
    complete(left->sent);
    complete(right->sent);
  }
  const double half = median(took, (size_t)rounds);
  free(took);
  return half;
}

int main(int argc, char** argv) {
  struct end left, right;
  if (argc < 3) return 2;
  open_end(&left, argv[1]);
  open_end(&right, argv[2]);
  must(rnicd_connect_qp(left.qp, right.info.address, right.info.address_bytes), "connect");
  must(rnicd_connect_qp(right.qp, left.info.address, left.info.address_bytes), "connect");
  for (int at = 3; at + 1 < argc; at += 2) {
    const uint32_t bytes = (uint32_t)atoi(argv[at]);
    const int rounds = atoi(argv[at + 1]);
    const double rate = megabytes_per_second(&left, &right, bytes, rounds);
    printf("%u %.2f %.2f\n", bytes, rate, half_round_trip_us(&left, &right, bytes, rounds));
    fflush(stdout);
  }
  rnicd_close_session(left.session, NULL);
  rnicd_close_session(right.session, NULL);
  return 0;
}
