/*
 * processors.h - how many threads this process can run at the same time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_THREADS_PROCESSORS_H
#define FT_KERNELS_THREADS_PROCESSORS_H

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/*
 * The number of CPUs in the affinity mask, limited by the CPU quota of the control group rounded
 * up: a container with a quota of 1.5 of 64 CPUs has 2. At least 1. Determined once, on the first
 * call.
 */
int ft_num_processors(void);

/*
 * The lowest CPU quota of this process's control groups and their ancestors, in CPUs; 0 if none has
 * a quota. Reads proc/self/cgroup and proc/self/mountinfo below `root`, and the control-group files
 * they name, also below `root`; "" is the running system.
 *
 * Source: Linux, Documentation/admin-guide/cgroup-v2.rst (cpu.max) and scheduler/sched-bwc.rst
 * (cpu.cfs_quota_us and cpu.cfs_period_us).
 */
double ft_cgroup_cpu_quota(const char *root);

#pragma GCC visibility pop

#endif
