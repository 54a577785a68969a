/*
 * knapsack.c - the multiple-choice knapsack problem, by dynamic programming.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/budget/knapsack.h"

#include "runtime/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* The table: the least loss of the items so far within each number of steps. */
typedef struct table {
    const ft_knapsack *knapsack;
    uint64_t step;   /* cost of one step */
    size_t steps;    /* that the capacity has beyond the cheapest choices */
    double *loss;    /* [steps + 1] */
    double *before;  /* [steps + 1]: without the last item */
    uint8_t *choice; /* [items, steps + 1] */
} table;

static const ft_knapsack_choice *choices_of(const ft_knapsack *k, size_t item)
{
    return &k->choice[item * k->choices];
}

static uint64_t cheapest(const ft_knapsack *k, size_t item)
{
    uint64_t cost = choices_of(k, item)[0].cost;
    for (size_t i = 1; i < k->choices; i++)
        cost = choices_of(k, item)[i].cost < cost ? choices_of(k, item)[i].cost : cost;
    return cost;
}

uint64_t ft_knapsack_smallest(const ft_knapsack *k)
{
    uint64_t cost = 0;
    for (size_t i = 0; i < k->items; i++)
        cost += cheapest(k, i);
    return cost;
}

/* The steps that a choice takes beyond the cheapest one, rounded up. */
static uint64_t steps_of(const table *t, size_t item, size_t choice)
{
    uint64_t cost = choices_of(t->knapsack, item)[choice].cost - cheapest(t->knapsack, item);
    return cost / t->step + (cost % t->step != 0);
}

static void add_choice(table *t, size_t item, size_t choice)
{
    uint8_t *chosen = &t->choice[item * (t->steps + 1)];
    uint64_t taken = steps_of(t, item, choice);
    double loss = choices_of(t->knapsack, item)[choice].loss;
    for (size_t i = (size_t) taken; taken <= t->steps && i <= t->steps; i++)
        if (t->before[i - taken] + loss < t->loss[i]) {
            t->loss[i] = t->before[i - taken] + loss;
            chosen[i] = (uint8_t) choice;
        }
}

static void fill(table *t)
{
    for (size_t item = 0; item < t->knapsack->items; item++) {
        double *before = t->before;
        t->before = t->loss;
        t->loss = before;
        for (size_t i = 0; i <= t->steps; i++)
            t->loss[i] = (double) INFINITY;
        for (size_t choice = 0; choice < t->knapsack->choices; choice++)
            add_choice(t, item, choice);
    }
}

/* From the last item to the first. */
static void read_solution(uint8_t *solution, const table *t)
{
    size_t left = t->steps;
    for (size_t item = t->knapsack->items; item-- > 0;) {
        solution[item] = t->choice[item * (t->steps + 1) + left];
        left -= (size_t) steps_of(t, item, solution[item]);
    }
}

static ft_status solve(uint8_t *solution, table *t, ft_error *err)
{
    t->loss = ft_calloc(t->steps + 1, sizeof *t->loss);
    t->before = ft_calloc(t->steps + 1, sizeof *t->before);
    t->choice = ft_calloc(t->knapsack->items, t->steps + 1);
    if (t->loss == NULL || t->before == NULL || t->choice == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to choose for %zu items", t->knapsack->items);
    fill(t);
    read_solution(solution, t);
    return FT_OK;
}

ft_status ft_knapsack_solve(uint8_t *solution, const ft_knapsack *knapsack, uint64_t capacity,
                            ft_error *err)
{
    uint64_t smallest = ft_knapsack_smallest(knapsack);
    if (capacity < smallest)
        return ft_fail(err, FT_EARG,
                       "a capacity of %" PRIu64 " is too small, the smallest possible is %" PRIu64,
                       capacity, smallest);
    table t = { .knapsack = knapsack, .step = (capacity - smallest) / FT_KNAPSACK_STEPS + 1 };
    t.steps = (size_t) ((capacity - smallest) / t.step);
    ft_status status = solve(solution, &t, err);
    free(t.loss);
    free(t.before);
    free(t.choice);
    return status;
}

/* ---- One that counts ----------------------------------------------------------------------- */

static uint64_t cost_of(const ft_knapsack *k, const uint8_t *solution)
{
    uint64_t cost = 0;
    for (size_t i = 0; i < k->items; i++)
        cost += choices_of(k, i)[solution[i]].cost;
    return cost;
}

/* The loss that a change adds; infinite if it does not fit. */
static double added_loss(const ft_knapsack *k, const uint8_t *solution, uint64_t left, size_t item,
                         uint8_t choice)
{
    const ft_knapsack_choice *from = &choices_of(k, item)[solution[item]],
                             *to = &choices_of(k, item)[choice];
    return to->cost <= from->cost + left ? to->loss - from->loss : (double) INFINITY;
}

ft_status ft_knapsack_solve_with_one(uint8_t *solution, const ft_knapsack *k, uint64_t capacity,
                                     bool (*counts)(const void *user, size_t item, uint8_t choice),
                                     const void *user, ft_error *err)
{
    size_t item = 0;
    uint8_t choice = 0;
    double least = (double) INFINITY;
    FT_TRY(ft_knapsack_solve(solution, k, capacity, err));
    for (size_t i = 0; i < k->items; i++)
        if (counts(user, i, solution[i]))
            return FT_OK;
    const uint64_t left = capacity - cost_of(k, solution);
    for (size_t i = 0; i < k->items; i++)
        for (uint8_t c = 0; c < k->choices; c++) {
            double added = added_loss(k, solution, left, i, c);
            if (!counts(user, i, c) || !(added < least))
                continue;
            least = added;
            item = i;
            choice = c;
        }
    if (isinf(least))
        return ft_fail(err, FT_EARG,
                       "a capacity of %" PRIu64 " is too small for a choice that "
                       "one item must have",
                       capacity);
    solution[item] = choice;
    return FT_OK;
}
