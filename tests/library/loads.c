// A host program that loads the library by dlopen, as plug-ins are.
//
// usage: loads SOCKET_DIR COUNT LIBRARY [OTHER_LIBRARY]
//
// Loads the library, registers memory in a session, closes both, and unloads the library, again and again, with a
// session of the other library open all the time. Prints what COUNT such rounds have left: descriptors, mappings,
// threads, and how many pieces of the heap each round. Pieces that the C library keeps for its next caller are less
// than one.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/c/rnicd.h"

enum { SMALLEST_PIECE_BYTES = 32 };

struct library {
  void* handle;
  int (*open_session)(const struct rnicd_session_options* options, struct rnicd_session** session);
  int (*close_session)(struct rnicd_session* session, struct rnicd_reclaimed* reclaimed);
  int (*allocate_memory)(struct rnicd_session* session, const struct rnicd_memory_options* options,
                         struct rnicd_memory** memory);
  int (*close_memory)(struct rnicd_memory* memory);
  int (*register_mr)(struct rnicd_memory* memory, uint64_t offset, uint64_t bytes, uint32_t rights,
                     struct rnicd_mr** mr);
  int (*close_mr)(struct rnicd_mr* mr);
};

struct held {
  long descriptors;
  long mappings;
  long threads;
  long heap;
};

static void must(int is, const char* what) {
  if (!is) {
    fprintf(stderr, "%s: %s\n", what, dlerror());
    exit(1);
  }
}

static long entries_of(const char* folder) {
  DIR* directory = opendir(folder);
  long count = 0;
  must(directory != NULL, folder);
  while (readdir(directory) != NULL) {
    ++count;
  }
  closedir(directory);
  return count;
}

static long lines_of(const char* path) {
  FILE* file = fopen(path, "r");
  long count = 0;
  int byte;
  must(file != NULL, path);
  while ((byte = getc(file)) != EOF) {
    count += byte == '\n';
  }
  fclose(file);
  return count;
}

static struct held count_held(void) {
  struct held held;
  struct mallinfo2 heap = mallinfo2();
  held.heap = (long)(heap.uordblks + heap.hblkhd);
  held.descriptors = entries_of("/proc/self/fd");
  held.threads = entries_of("/proc/self/task");
  held.mappings = lines_of("/proc/self/maps");
  return held;
}

static void* function(void* handle, const char* name) {
  void* found = dlsym(handle, name);
  must(found != NULL, name);
  return found;
}

static struct library load(const char* path) {
  struct library it;
  it.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  must(it.handle != NULL, path);
  *(void**)&it.open_session = function(it.handle, "rnicd_open_session");
  *(void**)&it.close_session = function(it.handle, "rnicd_close_session");
  *(void**)&it.allocate_memory = function(it.handle, "rnicd_allocate_memory");
  *(void**)&it.close_memory = function(it.handle, "rnicd_close_memory");
  *(void**)&it.register_mr = function(it.handle, "rnicd_register_mr");
  *(void**)&it.close_mr = function(it.handle, "rnicd_close_mr");
  return it;
}

static struct rnicd_session* open_session(const struct library* library, const char* socket_dir) {
  struct rnicd_session_options options = RNICD_INIT(rnicd_session_options);
  struct rnicd_session* session;
  options.socket_dir = socket_dir;
  must(library->open_session(&options, &session) == 0, "open a session");
  return session;
}

static void use_once(const char* path, const char* socket_dir) {
  struct library library = load(path);
  struct rnicd_session* session = open_session(&library, socket_dir);
  struct rnicd_memory_options options = RNICD_INIT(rnicd_memory_options);
  struct rnicd_memory* memory;
  struct rnicd_mr* mr;
  options.bytes = 4096;
  must(library.allocate_memory(session, &options, &memory) == 0, "allocate memory");
  must(library.register_mr(memory, 0, 4096, RNICD_MR_REMOTE_WRITE, &mr) == 0, "register it");
  must(library.close_mr(mr) == 0, "close the region");
  must(library.close_memory(memory) == 0, "close the memory");
  must(library.close_session(session, NULL) == 0, "close the session");
  must(dlclose(library.handle) == 0, "unload");
  must(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL, "the library stayed");
}

int main(int argc, char** argv) {
  must(argc >= 4, "usage: loads SOCKET_DIR COUNT LIBRARY [OTHER_LIBRARY]");
  const long count = atol(argv[2]);
  struct rnicd_session* session = NULL;
  struct library other;
  if (argc > 4) {
    other = load(argv[4]);
    session = open_session(&other, argv[1]);
  }
  // What the C library takes once, by and by, and for the counting.
  for (int round = 0; round < 100; ++round) {
    use_once(argv[3], argv[1]);
  }
  count_held();
  const struct held before = count_held();
  for (long round = 0; round < count; ++round) {
    use_once(argv[3], argv[1]);
  }
  const struct held after = count_held();
  if (session != NULL) {
    must(other.close_session(session, NULL) == 0, "close the session of the other library");
  }
  printf("descriptors %ld, mappings %ld, threads %ld, heap %ld\n", after.descriptors - before.descriptors,
         after.mappings - before.mappings, after.threads - before.threads,
         (after.heap - before.heap) / (SMALLEST_PIECE_BYTES * count));
  return 0;
}
