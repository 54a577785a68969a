/*
 * bounded.c - run a command that must end soon and need little.
 *
 *     bounded [-s SECONDS] [-m MB] COMMAND...
 *
 * Ends with the status of the command; with 99, and words on standard error, where it took more
 * than a second of processor time or held more than 256 MB.  A sanitizer is given more of both,
 * CUDA's libraries memory.
 * Processor time is what the command itself takes, however busy the machine is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { SLOWER = 20, LARGER = 4 };
#else
enum { SLOWER = 1, LARGER = 1 };
#endif

/* MB of CUDA's libraries that are mapped with each program: their pages count as its own. */
#ifdef HAVE_CUDA
enum { LIBRARIES = 192 };
#else
enum { LIBRARIES = 0 };
#endif

enum { OUT_OF_BOUNDS = 99 };

static long seconds = 1, megabytes = 256;

static long milliseconds(const struct timeval *time)
{
    return time->tv_sec * 1000 + time->tv_usec / 1000;
}

/* A command that does not end by itself is ended, long after it has failed. */
static void run(char **command)
{
    const rlim_t most = (rlim_t) (20 * seconds);
    const struct rlimit end = { most, most };
    setrlimit(RLIMIT_CPU, &end);
    execvp(command[0], command);
    perror(command[0]);
    _exit(127);
}

int main(int argc, char **argv)
{
    struct rusage used;
    int status;
    for (int option; (option = getopt(argc, argv, "+s:m:")) != -1;)
        *(option == 's' ? &seconds : &megabytes) = strtol(optarg, NULL, 10);
    if (optind == argc)
        return 2;
    seconds *= SLOWER;
    megabytes = LARGER * megabytes + LIBRARIES;
    pid_t child = fork();
    if (child == 0)
        run(argv + optind);
    if (child < 0 || wait4(child, &status, 0, &used) != child) {
        perror("bounded");
        return OUT_OF_BOUNDS;
    }
    long took = milliseconds(&used.ru_utime) + milliseconds(&used.ru_stime);
    long held = used.ru_maxrss / 1024;
    if (took > 1000 * seconds || held > megabytes) {
        fprintf(stderr, "bounded: took %ld ms and %ld MB, expected at most %ld s and %ld MB\n",
                took, held, seconds, megabytes);
        return OUT_OF_BOUNDS;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
