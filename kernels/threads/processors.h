/*
 * processors.h - how many threads this process can run at the same time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_THREADS_PROCESSORS_H
#define FT_KERNELS_THREADS_PROCESSORS_H

/*
 * The processors of the affinity mask, or fewer where a control group has a CPU quota, rounded up: a
 * container with 1.5 CPUs of 64 has 2.  At least 1.  Found once, at the first call.
 */
int ft_processors(void);

/*
 * The least CPU quota among the control groups of this process and those above them, in CPUs; 0
 * where none has one.  Reads proc/self/cgroup and proc/self/mountinfo below `root`, and the groups'
 * files where these say, below `root` too: "" is this system.
 * Source: Linux, Documentation/admin-guide/cgroup-v2.rst (cpu.max) and scheduler/sched-bwc.rst
 * (cpu.cfs_quota_us and cpu.cfs_period_us).
 */
double ft_cgroup_cpus(const char *root);

#endif
