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

enum { PLACES = 16 }; /* a tool writes at most three files at once */

/* A thread sets a slot to BUSY while it accesses the other members. */
enum { FREE, BUSY, LISTED };

static struct {
    atomic_int state;
    int folder;
    char name[NAME_MAX + 1];
} place[PLACES];

static _Bool turn(int i, int from, int to)
{
    return atomic_compare_exchange_strong(&place[i].state, &from, to);
}

int ft_unfinished_add(int folder, const char *name)
{
    for (int i = 0; i < PLACES; i++)
        if (turn(i, FREE, BUSY)) {
            place[i].folder = folder;
            strncpy(place[i].name, name, NAME_MAX);
            atomic_store(&place[i].state, LISTED);
            return i;
        }
    return -1;
}

/* A slot that the handler has set to BUSY stays BUSY. */
void ft_unfinished_drop(int i)
{
    if (i >= 0)
        turn(i, LISTED, FREE);
}

void ft_unfinished_remove(void)
{
    for (int i = 0; i < PLACES; i++)
        if (turn(i, LISTED, BUSY))
            unlinkat(place[i].folder, place[i].name, 0);
}
