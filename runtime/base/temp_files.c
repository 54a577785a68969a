/*
 * temp_files.c - a lock-free list, because a signal handler may interrupt a thread that holds a
 * lock.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/temp_files.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { N_SLOTS = 16 }; /* a tool writes at most three files at once */

/* A thread sets a slot to BUSY while it accesses the other members. */
enum { FREE, BUSY, LISTED };

static struct {
    atomic_int state;
    int folder;
    char name[NAME_MAX + 1];
} slots[N_SLOTS];

static _Bool transition(int i, int from, int to)
{
    return atomic_compare_exchange_strong(&slots[i].state, &from, to);
}

int ft_temp_file_register(int folder, const char *name)
{
    for (int i = 0; i < N_SLOTS; i++)
        if (transition(i, FREE, BUSY)) {
            slots[i].folder = folder;
            strncpy(slots[i].name, name, NAME_MAX);
            atomic_store(&slots[i].state, LISTED);
            return i;
        }
    return -1;
}

/* A slot that the handler has set to BUSY stays BUSY. */
void ft_temp_file_unregister(int i)
{
    if (i >= 0)
        transition(i, LISTED, FREE);
}

void ft_temp_files_delete(void)
{
    for (int i = 0; i < N_SLOTS; i++)
        if (transition(i, LISTED, BUSY))
            unlinkat(slots[i].folder, slots[i].name, 0);
}
