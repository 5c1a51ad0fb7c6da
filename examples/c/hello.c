// Registers memory, connects a queue pair to itself, and writes from one half of the memory into the other.
#include <rnicd.h>
#include <stdio.h>
#include <string.h>

static int fail(const char* step) {
  const struct rnicd_error* error = rnicd_last_error();
  fprintf(stderr, "%s: %s (%s)\n", step, error->message, rnicd_reason_name(error->reason));
  return 1;
}

int main(int argc, char** argv) {
  struct rnicd_session_options options = RNICD_INIT(rnicd_session_options);
  struct rnicd_memory_options pages = RNICD_INIT(rnicd_memory_options);
  struct rnicd_memory_info mapped = RNICD_INIT(rnicd_memory_info);
  struct rnicd_mr_info region = RNICD_INIT(rnicd_mr_info);
  struct rnicd_qp_info self = RNICD_INIT(rnicd_qp_info);
  struct rnicd_session* session;
  struct rnicd_memory* memory;
  struct rnicd_mr* mr;
  struct rnicd_cq* cq;
  struct rnicd_qp* qp;
  struct rnicd_chain* chain;

  options.socket_dir = argc > 1 ? argv[1] : NULL;
  pages.bytes = 8192;
  if (rnicd_open_session(&options, &session) < 0) return fail("session");
  if (rnicd_allocate_memory(session, &pages, &memory) < 0) return fail("memory");
  if (rnicd_query_memory(memory, &mapped) < 0) return fail("address");
  if (rnicd_register_mr(memory, 0, 8192, RNICD_MR_REMOTE_WRITE, &mr) < 0) return fail("region");
  if (rnicd_query_mr(mr, &region) < 0) return fail("tokens");
  if (rnicd_create_cq(session, 16, 0, &cq) < 0) return fail("completion queue");
  if (rnicd_create_qp(cq, cq, NULL, &qp) < 0) return fail("queue pair");
  if (rnicd_query_qp(qp, &self) < 0) return fail("queue pair's address");
  if (rnicd_connect_qp(qp, self.address, self.address_bytes) < 0) return fail("connect");

  strcpy(mapped.address, "hello");
  struct rnicd_sge sge = {region.address, 6, region.local_token};
  struct rnicd_completion completion;
  if (rnicd_create_chain(&chain) < 0) return fail("chain");
  if (rnicd_chain_write(chain, &sge, 1, region.address + 4096, region.remote_token, 0, 7) < 0) return fail("add");
  if (rnicd_post(qp, chain) < 0) return fail("post");
  if (rnicd_poll_cq_for(cq, &completion, 1, 10000) != 1) return fail("poll");
  printf("request %d: status %#x, and the other half says %s\n", (int)completion.context, completion.ntstatus,
         (char*)mapped.address + 4096);

  rnicd_close_chain(chain);
  rnicd_close_qp(qp);
  rnicd_close_cq(cq);
  rnicd_close_mr(mr);
  rnicd_close_memory(memory);
  return rnicd_close_session(session, NULL) < 0 ? fail("end") : 0;
}
