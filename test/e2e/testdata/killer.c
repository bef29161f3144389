/* Kills the process before its rename number KILL_AT_RENAME of a file that a package brings. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int rename(const char *from, const char *to) {
	static int n;
	const char *at = getenv("KILL_AT_RENAME");
	if (at && strstr(from, ".dpkg-new") && ++n == atoi(at)) kill(getpid(), SIGKILL);
	int (*real)(const char *, const char *) = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
	return real(from, to);
}
