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

enum { MAX_CPUS = 1 << 20 };

/* CPUs in the affinity mask; the kernel returns EINVAL if its own mask is larger than ours. */
static int affinity_cpus(void)
{
    for (size_t cpus = 1024; cpus <= MAX_CPUS; cpus *= 2) {
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
    return online > 0 && online <= MAX_CPUS ? (int) online : 1;
}

static int cached_count;

static void detect(void)
{
    double quota = ft_cgroup_cpu_quota("");
    cached_count = affinity_cpus();
    if (quota > 0.0 && ceil(quota) < cached_count)
        cached_count = (int) ceil(quota);
}

int ft_num_processors(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, detect);
    return cached_count;
}
