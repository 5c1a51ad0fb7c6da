// usage: c_client fork|fork-beside-thread|threads SOCKET_DIR
//   fork                a child's calls are refused, it opens a session of its own, and the parent goes on
//   fork-beside-thread  the same, with RNICD_THREAD
//   threads             threads of this process while a session is used, without RNICD_THREAD and with it
// Exits with 0, or says on stderr what is not as it should be.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/c/rnicd.h"

#define EXPECT(condition)                                                                                          \
  do {                                                                                                             \
    if (!(condition)) {                                                                                            \
      fprintf(stderr, "line %d: not %s; last error %d: %s\n", __LINE__, #condition, (int)rnicd_last_error()->code, \
              rnicd_last_error()->message);                                                                        \
      _exit(1);                                                                                                    \
    }                                                                                                              \
  } while (0)

// A queue pair that is connected to itself, and memory to write to.
struct loop {
  struct rnicd_session* session;
  struct rnicd_memory* memory;
  struct rnicd_mr* mr;
  struct rnicd_cq* cq;
  struct rnicd_qp* qp;
  struct rnicd_chain* chain;
};

static void on_session_ended(void* context, const struct rnicd_error* why) {
  (void)context;
  (void)why;
}

static struct loop open_loop(const char* socket_dir, uint32_t flags) {
  struct rnicd_session_options options = RNICD_INIT(rnicd_session_options);
  struct rnicd_memory_options pages = RNICD_INIT(rnicd_memory_options);
  struct rnicd_qp_info self = RNICD_INIT(rnicd_qp_info);
  struct loop it;
  options.socket_dir = socket_dir;
  options.flags = flags;
  options.on_session_ended = on_session_ended;
  pages.bytes = 4096;
  EXPECT(rnicd_open_session(&options, &it.session) == 0);
  EXPECT(rnicd_allocate_memory(it.session, &pages, &it.memory) == 0);
  EXPECT(rnicd_register_mr(it.memory, 0, 4096, RNICD_MR_REMOTE_WRITE, &it.mr) == 0);
  EXPECT(rnicd_create_cq(it.session, 16, 0, &it.cq) == 0);
  EXPECT(rnicd_create_qp(it.cq, it.cq, NULL, &it.qp) == 0);
  EXPECT(rnicd_query_qp(it.qp, &self) == 0);
  EXPECT(rnicd_connect_qp(it.qp, self.address, self.address_bytes) == 0);
  EXPECT(rnicd_create_chain(&it.chain) == 0);
  return it;
}

static void write_to_itself(struct loop* it, const char* text) {
  struct rnicd_memory_info memory = RNICD_INIT(rnicd_memory_info);
  struct rnicd_mr_info region = RNICD_INIT(rnicd_mr_info);
  struct rnicd_completion completion;
  EXPECT(rnicd_query_memory(it->memory, &memory) == 0);
  EXPECT(rnicd_query_mr(it->mr, &region) == 0);
  EXPECT(rnicd_reset_chain(it->chain) == 0);
  EXPECT(rnicd_chain_write_inline(it->chain, text, strlen(text) + 1, region.address, region.remote_token, 0, 1) == 0);
  EXPECT(rnicd_post(it->qp, it->chain) == 0);
  EXPECT(rnicd_poll_cq_for(it->cq, &completion, 1, -1) == 1);
  EXPECT(completion.ntstatus == 0);
  EXPECT(strcmp(memory.address, text) == 0);
}

// All that closes returns this, but that of the chain, which belongs to no session.
static void close_loop(struct loop* it, int result) {
  EXPECT(rnicd_close_chain(it->chain) == 0);
  EXPECT(rnicd_close_qp(it->qp) == result);
  EXPECT(rnicd_close_cq(it->cq) == result);
  EXPECT(rnicd_close_mr(it->mr) == result);
  EXPECT(rnicd_close_memory(it->memory) == result);
  EXPECT(rnicd_close_session(it->session, NULL) == result);
}

static void be_a_child(struct loop* parents, const char* socket_dir, uint32_t flags) {
  struct rnicd_completion completion;
  struct rnicd_mr* mr;
  struct loop own;
  EXPECT(rnicd_chain_send(parents->chain, NULL, 0, 0, 0) == 0);
  EXPECT(rnicd_post(parents->qp, parents->chain) == -ESTALE);
  EXPECT(strcmp(rnicd_last_error()->message, "no answer from rnicd: the session belongs to the process before fork") ==
         0);
  EXPECT(rnicd_poll_cq(parents->cq, &completion, 1) == -ESTALE);
  EXPECT(rnicd_poll_cq_for(parents->cq, &completion, 1, -1) == -ESTALE);
  EXPECT(rnicd_wait_cq(parents->cq, -1) == -ESTALE);
  EXPECT(rnicd_qp_state(parents->qp) == -ESTALE);
  EXPECT(rnicd_register_mr(parents->memory, 0, 1, 0, &mr) == -ESTALE);
  EXPECT(rnicd_query_session(parents->session, NULL, 0) == -ESTALE);
  EXPECT(rnicd_fd(parents->session) == -ESTALE);
  EXPECT(rnicd_progress(parents->session, -1) == -ESTALE);
  own = open_loop(socket_dir, flags);
  write_to_itself(&own, "child");
  close_loop(&own, 0);
  close_loop(parents, -ESTALE);
  _exit(0);
}

static void try_fork(const char* socket_dir, uint32_t flags) {
  struct loop it = open_loop(socket_dir, flags);
  int status = 0;
  pid_t child;
  write_to_itself(&it, "before");
  child = fork();
  EXPECT(child >= 0);
  if (child == 0) {
    be_a_child(&it, socket_dir, flags);
  }
  write_to_itself(&it, "beside");
  EXPECT(waitpid(child, &status, 0) == child);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  write_to_itself(&it, "after");
  close_loop(&it, 0);
}

static int threads(void) {
  DIR* folder = opendir("/proc/self/task");
  int count = 0;
  EXPECT(folder != NULL);
  for (struct dirent* entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    count += entry->d_name[0] != '.';
  }
  closedir(folder);
  return count;
}

static void count_threads(const char* socket_dir) {
  struct loop it;
  const int before = threads();
  it = open_loop(socket_dir, 0);
  write_to_itself(&it, "alone");
  EXPECT(rnicd_progress(it.session, 0) == 0);
  EXPECT(threads() == before);
  close_loop(&it, 0);
  it = open_loop(socket_dir, RNICD_THREAD);
  EXPECT(threads() == before + 1);
  close_loop(&it, 0);
  EXPECT(threads() == before);
}

int main(int argc, char** argv) {
  EXPECT(argc == 3);
  if (strcmp(argv[1], "fork") == 0) {
    try_fork(argv[2], 0);
  } else if (strcmp(argv[1], "fork-beside-thread") == 0) {
    try_fork(argv[2], RNICD_THREAD);
  } else {
    EXPECT(strcmp(argv[1], "threads") == 0);
    count_threads(argv[2]);
  }
  return 0;
}
