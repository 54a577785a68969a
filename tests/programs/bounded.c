/*
 * bounded.c - run a command within limits of CPU time and memory.
 *
 *     bounded [-s SECONDS] [-m MB] COMMAND...
 *
 * Exits with the status of the command, or with 99 and a message if the command used more than
 * 1 s of CPU time or 256 MB of memory.  Builds with sanitizers get more of both, builds with CUDA
 * more memory.  CPU time does not depend on the load of the machine.
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

/* MB of CUDA's libraries, whose mapped pages count as memory of each program. */
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

/* A command that exceeds the limit by far is killed. */
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
