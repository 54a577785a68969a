/*
 * processors.c - see processors.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/threads/processors.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <unistd.h>

enum { MOST_CPUS = 1 << 20 };

/* CPUs in the affinity mask; the kernel returns EINVAL if its own mask is larger than ours. */
static int affine(void)
{
    for (size_t cpus = 1024; cpus <= MOST_CPUS; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (set == NULL)
            break;
        size_t size = CPU_ALLOC_SIZE(cpus);
        int status = sched_getaffinity(0, size, set), error = errno;
        int count = status == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return count;
        if (error != EINVAL)
            break;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online <= MOST_CPUS ? (int) online : 1;
}

static int found;

static void find(void)
{
    double quota = ft_cgroup_cpus("");
    found = affine();
    if (quota > 0.0 && ceil(quota) < found)
        found = (int) ceil(quota);
}

int ft_processors(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find);
    return found;
}
