/*
 * Preloaded into the daemon below qemu. qemu has a thread of its own in every process that it runs, and the daemon, which
 * reads the kernel's list of its threads once at its start, refuses to drop privileges when there is more than one. The
 * first look at that list finds the folder in RNICD_ONE_THREAD instead, which has one entry; later ones see the list.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int openat(int folder, const char *path, int flags, ...)
{
	static int (*real)(int, const char *, int, ...);
	static int seen;
	unsigned mode = 0;

	if (real == NULL)
		real = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat");
	if (flags & O_CREAT) {
		va_list arguments;

		va_start(arguments, flags);
		mode = va_arg(arguments, unsigned);
		va_end(arguments);
	}
	if (!seen && getenv("RNICD_ONE_THREAD") && strcmp(path, "/proc/self/task") == 0) {
		seen = 1;
		path = getenv("RNICD_ONE_THREAD");
	}
	return real(folder, path, flags, mode);
}
