/*
 * sequence-t.c - the order in which waiting sequences start.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/generate/sequence.h"
#include "tests/tap/tap.h"

enum { MANY = 200 };

static ft_sequence sequence[MANY];

/* The position of a sequence in the list. */
static int position_of(const ft_sequence_list *list, const ft_sequence *wanted)
{
    int position = 0;
    for (const ft_sequence *q = list->first; q != wanted; q = q->next)
        position++;
    return position;
}

static void add(ft_sequence_list *list, int index, int32_t priority)
{
    sequence[index] = (ft_sequence){ .priority = priority };
    ft_sequence_list_insert(list, &sequence[index]);
}

static void test_order(void)
{
    ft_sequence_list list = { .first = NULL };
    const int32_t priority[5] = { 0, 2, 0, 1, 2 };
    for (int i = 0; i < 5; i++)
        add(&list, i, priority[i]);
    ok(list.first == &sequence[1] && sequence[1].next == &sequence[4] &&
           sequence[4].next == &sequence[3] && sequence[3].next == &sequence[0] &&
           sequence[0].next == &sequence[2] && list.last == &sequence[2],
       "sequences wait in the order of their priorities, and then of their arrival");
    ft_sequence_list_remove(&list, &sequence[3]);
    ft_sequence_list_remove(&list, &sequence[1]);
    ft_sequence_list_remove(&list, &sequence[2]);
    ok(list.first == &sequence[4] && list.last == &sequence[0] &&
           sequence[4].next == &sequence[0] && sequence[0].previous == &sequence[4],
       "the first, the last and one between them can be removed");
}

static void test_starvation(void)
{
    ft_sequence_list list = { .first = NULL };
    add(&list, 0, 0);
    for (int i = 1; i < MANY; i++)
        add(&list, i, 1 + i % 2);
    is_int(position_of(&list, &sequence[0]), FT_SEQUENCE_OVERTAKEN_MAX,
           "a sequence is overtaken by %d others and no more", FT_SEQUENCE_OVERTAKEN_MAX);
}

int main(void)
{
    test_order();
    test_starvation();
    return done_testing();
}
