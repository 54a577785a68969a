/*
 * knapsack.h - the multiple-choice knapsack problem: one choice for each item, so that the total
 * cost is within a capacity and the total loss is least.
 *
 * Solved by dynamic programming over the cost beyond the cheapest choices, which is counted in at
 * most FT_KNAPSACK_STEPS steps.  The steps of a choice are rounded up, so a solution never exceeds
 * the capacity, and is the best of those that leave one step for each item.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_BUDGET_KNAPSACK_H
#define FT_CALIBRATE_BUDGET_KNAPSACK_H

#include "runtime/error.h"

enum { FT_KNAPSACK_STEPS = 1 << 16 };

typedef struct ft_knapsack_choice {
    uint64_t cost;
    double loss; /* finite */
} ft_knapsack_choice;

typedef struct ft_knapsack {
    const ft_knapsack_choice *choice; /* [items, choices]; sums of costs do not overflow */
    size_t items, choices;            /* choices: 1 to 255 */
} ft_knapsack;

/* The smallest capacity that has a solution: the cheapest choice of each item. */
uint64_t ft_knapsack_smallest(const ft_knapsack *knapsack);

/*
 * The choice of each item, [items].  Of equal losses the cheaper choice of the later item is taken,
 * and of equal choices the first: equal inputs give equal solutions.
 *
 * Errors: FT_EARG if the capacity is below the smallest; FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_knapsack_solve(uint8_t *solution, const ft_knapsack *knapsack,
                                        uint64_t capacity, ft_error *err);

/*
 * The same for items of which at least one must have a choice that `counts`.  If the solution has
 * none, the one change that adds least loss within the capacity is made.  FT_EARG, too, if there is
 * none.
 */
FT_MUST_USE ft_status ft_knapsack_solve_with_one(
    uint8_t *solution, const ft_knapsack *knapsack, uint64_t capacity,
    bool (*counts)(const void *user, size_t item, uint8_t choice), const void *user, ft_error *err);

#endif
