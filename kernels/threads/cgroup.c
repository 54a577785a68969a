/*
 * cgroup.c - CPU quotas of control groups, versions 1 and 2: see processors.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/threads/processors.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = PATH_MAX + 512 };

/* One control-group hierarchy: where it is mounted, and the group of this process in it. */
typedef struct hierarchy {
    bool is_v2;            /* version 2: a single hierarchy, with the file cpu.max */
    char mount[PATH_MAX];  /* directory of the group `top` */
    char top[PATH_MAX];    /* "/" unless only a subtree of the hierarchy is mounted */
    char member[PATH_MAX]; /* group of this process; "" if there is none */
} hierarchy;

static FILE *open_below(const char *root, const char *folder, const char *name)
{
    char path[2 * PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
    return length >= 0 && (size_t) length < sizeof path ? fopen(path, "re") : NULL;
}

static bool copy_path(char to[PATH_MAX], const char *from)
{
    int length = snprintf(to, PATH_MAX, "%s", from);
    return length >= 0 && length < PATH_MAX;
}

/* Whether a comma-separated list such as "cpu,cpuacct" contains the word. */
static bool list_has(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == ',') && (at[length] == '\0' || at[length] == ','))
            return true;
    return false;
}

/* A line "4:cpu,cpuacct:/group", or "0::/group" of version 2. */
static void read_member(hierarchy *h, char *line)
{
    char *controllers = strchr(line, ':'), *path;
    if (controllers == NULL || (path = strchr(controllers + 1, ':')) == NULL)
        return;
    *controllers++ = '\0';
    *path++ = '\0';
    bool match =
        h->is_v2 ? strcmp(line, "0") == 0 && *controllers == '\0' : list_has(controllers, "cpu");
    if (match && !copy_path(h->member, path))
        h->member[0] = '\0';
}

/*
 * A line "31 23 0:26 /top /mount rw,nosuid shared:9 - cgroup2 cgroup2 rw". After the dash come the
 * file system type, the source and the mount options, which name the controllers of version 1.
 */
static void read_mount(hierarchy *h, char *line)
{
    char *separator = strstr(line, " - "), *rest, *field[5];
    int count = 0;
    if (separator == NULL)
        return;
    *separator = '\0';
    for (char *word = strtok_r(line, " ", &rest); word != NULL && count < 5;
         word = strtok_r(NULL, " ", &rest))
        field[count++] = word;
    char *type = strtok_r(separator + 3, " ", &rest), *source = strtok_r(NULL, " ", &rest);
    char *options = strtok_r(NULL, " ", &rest);
    if (count < 5 || source == NULL || options == NULL)
        return;
    bool match = h->is_v2 ? strcmp(type, "cgroup2") == 0
                          : strcmp(type, "cgroup") == 0 && list_has(options, "cpu");
    if (match && (!copy_path(h->top, field[3]) || !copy_path(h->mount, field[4])))
        h->mount[0] = '\0';
}

static void read_lines(hierarchy *h, const char *root, const char *name,
                       void (*read)(hierarchy *, char *))
{
    char line[LINE];
    FILE *file = open_below(root, "/proc/self", name);
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        read(h, line);
    }
    fclose(file);
}

/* Reads one or two numbers from a file; returns how many there were. */
static int read_numbers(const char *root, const char *folder, const char *name, double number[2])
{
    FILE *file = open_below(root, folder, name);
    if (file == NULL)
        return 0;
    int found = fscanf(file, "%lf %lf", &number[0], &number[1]);
    fclose(file);
    return found < 0 ? 0 : found;
}

/* CPU quota of one group; 0: none ("max" is not a number, and version 1 writes -1). */
static double group_quota(const hierarchy *h, const char *root, const char *folder)
{
    double number[2] = { 0.0, 0.0 }, period[2];
    bool found = h->is_v2 ? read_numbers(root, folder, "cpu.max", number) == 2
                          : read_numbers(root, folder, "cpu.cfs_quota_us", &number[0]) >= 1 &&
                                read_numbers(root, folder, "cpu.cfs_period_us", period) >= 1;
    if (found && !h->is_v2)
        number[1] = period[0];
    return found && number[0] > 0.0 && number[1] > 0.0 ? number[0] / number[1] : 0.0;
}

static double min_quota(double quota, double other)
{
    return quota == 0.0 || (other > 0.0 && other < quota) ? other : quota;
}

/* The lowest quota of the process's group and of its mounted ancestors. */
static double lowest_quota(const hierarchy *h, const char *root)
{
    char folder[2 * PATH_MAX];
    size_t top = strcmp(h->top, "/") == 0 ? 0 : strlen(h->top), mount = strlen(h->mount);
    const char *below = strncmp(h->member, h->top, top) == 0 ? h->member + top : "";
    int length = snprintf(folder, sizeof folder, "%s%s", h->mount, below);
    if (length < 0 || (size_t) length >= sizeof folder)
        return 0.0;
    double lowest = 0.0;
    for (char *slash; strlen(folder) >= mount; *slash = '\0') {
        lowest = min_quota(lowest, group_quota(h, root, folder));
        slash = strrchr(folder, '/');
        if (slash == NULL)
            break;
    }
    return lowest;
}

double ft_cgroup_cpu_quota(const char *root)
{
    double lowest = 0.0;
    for (int version = 1; version <= 2; version++) {
        hierarchy h = { .is_v2 = version == 2 };
        read_lines(&h, root, "cgroup", read_member);
        read_lines(&h, root, "mountinfo", read_mount);
        if (h.mount[0] != '\0' && h.member[0] != '\0')
            lowest = min_quota(lowest, lowest_quota(&h, root));
    }
    return lowest;
}
