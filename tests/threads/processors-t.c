/*
 * processors-t.c - the CPU quota of the control group, in containers and services.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/threads/processors.h"
#include "tests/tap/tap.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[] = "/tmp/ft-processors-XXXXXX";

/* Write a file below the root, and the folders that it is in. */
static void put(const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = strchr(path + sizeof root, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
        bail_out("cannot write %s", path);
}

static void clear(void)
{
    char command[4096];
    snprintf(command, sizeof command, "rm -rf '%s'/*", root);
    if (system(command) != 0)
        bail_out("cannot empty %s", root);
}

#define SECOND                                                                                     \
    "29 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"

static void quota_is(double expected, const char *what)
{
    double found = ft_cgroup_cpu_quota(root);
    ok(found > expected - 1e-9 && found < expected + 1e-9, "%s: %g CPUs expected, %g found", what,
       expected, found);
    clear();
}

static void test_second_version(void)
{
    put("proc/self/cgroup", "0::/\n");
    put("proc/self/mountinfo", SECOND);
    put("sys/fs/cgroup/cpu.max", "150000 100000\n");
    quota_is(1.5, "a container in its own namespace has the quota of the root group");

    put("proc/self/cgroup", "0::/system.slice/app\n");
    put("proc/self/mountinfo", SECOND);
    put("sys/fs/cgroup/system.slice/cpu.max", "max 100000\n");
    put("sys/fs/cgroup/system.slice/app/cpu.max", "50000 100000\n");
    quota_is(0.5, "a service has the quota of its group");

    put("proc/self/cgroup", "0::/system.slice/app\n");
    put("proc/self/mountinfo", SECOND);
    put("sys/fs/cgroup/system.slice/cpu.max", "200000 100000\n");
    put("sys/fs/cgroup/system.slice/app/cpu.max", "400000 100000\n");
    quota_is(2.0, "a lower quota of a parent group takes precedence");

    put("proc/self/cgroup", "0::/app\n");
    put("proc/self/mountinfo", SECOND);
    put("sys/fs/cgroup/app/cpu.max", "max 100000\n");
    quota_is(0.0, "\"max\" means no quota");

    put("proc/self/cgroup", "0::/../other\n");
    put("proc/self/mountinfo", SECOND);
    quota_is(0.0, "a group that is not mounted has no quota");
}

#define FIRST                                                                                      \
    "31 29 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"                            \
    "33 29 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n"           \
    "34 29 0:30 / /sys/fs/cgroup/cpuset rw,nosuid - cgroup cgroup rw,cpuset\n"

static void test_first_version(void)
{
    put("proc/self/cgroup",
        "9:memory:/other\n4:cpuset:/set\n3:cpu,cpuacct:/app\n1:name=systemd:/x\n");
    put("proc/self/mountinfo", FIRST);
    put("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "250000\n");
    put("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us", "100000\n");
    quota_is(2.5, "version 1 stores the quota and the period in two files");

    put("proc/self/cgroup", "3:cpu,cpuacct:/app\n");
    put("proc/self/mountinfo", FIRST);
    put("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us", "100000\n");
    quota_is(0.0, "-1 means no quota");

    put("proc/self/cgroup", "3:cpu,cpuacct:/docker/0123\n");
    put("proc/self/mountinfo",
        "33 29 0:29 /docker/0123 /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n");
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n");
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    quota_is(1.5, "a container sees its own group as the mount's root");
}

static void test_strange_files(void)
{
    quota_is(0.0, "missing files mean no quota");

    put("proc/self/cgroup", "\n:\n::\n0::\nx\n");
    put("proc/self/mountinfo", "\n - \n1 2 3 - cgroup2\n29 23 0:26 / /m rw - cgroup2 cgroup2 rw\n");
    put("m/cpu.max", "1 0\n");
    quota_is(0.0, "incomplete lines are skipped, and a period of 0 means no quota");

    put("proc/self/cgroup", "0::/\n");
    put("proc/self/mountinfo", SECOND);
    put("sys/fs/cgroup/cpu.max", "many\n");
    quota_is(0.0, "a quota that is not a number means no quota");
}

/* In a child process, because the number is determined once per process. */
static void test_affinity(void)
{
    cpu_set_t all, one;
    size_t cpu = 0;
    int status = -1;
    if (sched_getaffinity(0, sizeof all, &all) != 0) {
        skip(1, "sched_getaffinity() fails here");
        return;
    }
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pid_t child = fork();
    if (child == 0)
        _exit(sched_setaffinity(0, sizeof one, &one) == 0 && ft_num_processors() == 1 ? 0 : 1);
    ok(child > 0 && waitpid(child, &status, 0) == child && status == 0,
       "ft_num_processors() is 1 in a process that is bound to one processor");
    ok(ft_num_processors() >= 1 && ft_num_processors() <= CPU_COUNT(&all),
       "ft_num_processors() is at least 1 and at most the size of the affinity mask: %d of %d",
       ft_num_processors(), CPU_COUNT(&all));
}

int main(void)
{
    if (mkdtemp(root) == NULL)
        bail_out("cannot make a folder in /tmp");
    test_second_version();
    test_first_version();
    test_strange_files();
    test_affinity();
    rmdir(root);
    return done_testing();
}
