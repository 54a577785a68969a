/*
 * bounded.c - run a command that must end soon and need little.
 *
 *     bounded COMMAND...
 *
 * Ends with the status of the command; with 99, and words on standard error, where it took more
 * than a second of processor time or held more than 256 MB.  A sanitizer is given more of both.
 * Processor time is what the command itself takes, however busy the machine is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { SLOWER = 20, LARGER = 4 };
#else
enum { SLOWER = 1, LARGER = 1 };
#endif

enum { MILLISECONDS = 1000 * SLOWER, MEGABYTES = 256 * LARGER, OUT_OF_BOUNDS = 99 };

static long milliseconds(const struct timeval *time)
{
    return time->tv_sec * 1000 + time->tv_usec / 1000;
}

/* A command that does not end by itself is ended, long after it has failed. */
static void run(char **command)
{
    const struct rlimit end = { 20 * SLOWER, 20 * SLOWER };
    setrlimit(RLIMIT_CPU, &end);
    execvp(command[0], command);
    perror(command[0]);
    _exit(127);
}

int main(int argc, char **argv)
{
    struct rusage used;
    int status;
    if (argc < 2)
        return 2;
    pid_t child = fork();
    if (child == 0)
        run(argv + 1);
    if (child < 0 || wait4(child, &status, 0, &used) != child) {
        perror("bounded");
        return OUT_OF_BOUNDS;
    }
    long took = milliseconds(&used.ru_utime) + milliseconds(&used.ru_stime);
    long held = used.ru_maxrss / 1024;
    if (took > MILLISECONDS || held > MEGABYTES) {
        fprintf(stderr, "bounded: took %ld ms and %ld MB, expected at most %d ms and %d MB\n", took,
                held, MILLISECONDS, MEGABYTES);
        return OUT_OF_BOUNDS;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
