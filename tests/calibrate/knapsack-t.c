/*
 * knapsack-t.c - the knapsack of weight precisions against all solutions, units of matrices, and
 * the texts of budgets.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/budget/budget.h"
#include "calibrate/budget/knapsack.h"
#include "calibrate/budget/weight_units.h"
#include "runtime/mem.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHOICES = 3, ITEMS = 7, LARGE_ITEMS = 64 };

static ft_error err;

static void must(ft_status status)
{
    if (status != FT_OK)
        bail_out("%s", err.text);
}

/* ---- Knapsack ------------------------------------------------------------------------------ */

typedef struct total {
    uint64_t cost;
    double loss;
} total;

static total total_of(const ft_knapsack *k, const uint8_t *solution)
{
    total t = { 0, 0.0 };
    for (size_t i = 0; i < k->items; i++) {
        t.cost += k->choice[i * k->choices + solution[i]].cost;
        t.loss += k->choice[i * k->choices + solution[i]].loss;
    }
    return t;
}

/* The least loss within the capacity, of all 3^items solutions. */
static double best_loss(const ft_knapsack *k, uint64_t capacity)
{
    uint8_t solution[ITEMS];
    double best = (double) INFINITY;
    for (int code = 0; code < 2187; code++) {
        int rest = code;
        for (size_t i = 0; i < k->items; i++, rest /= CHOICES)
            solution[i] = (uint8_t) (rest % CHOICES);
        total t = total_of(k, solution);
        best = t.cost <= capacity ? fmin(best, t.loss) : best;
    }
    return best;
}

/* Sizes from 1 to 50; 4, 8 and 16 bits, of which fewer lose more. */
static void make_items(ft_knapsack_choice *choice, size_t items, uint64_t unit, rng *r)
{
    for (size_t i = 0; i < items; i++) {
        uint64_t size = 1 + rng_below(r, 50);
        double loss = rng_uniform(r, 0.0, 1.0);
        choice[i * CHOICES] = (ft_knapsack_choice){ 4 * size * unit, loss };
        choice[i * CHOICES + 1] = (ft_knapsack_choice){ 8 * size * unit, loss / 200.0 };
        choice[i * CHOICES + 2] = (ft_knapsack_choice){ 16 * size * unit, 0.0 };
    }
}

static void test_small(void)
{
    rng r = { 3 };
    ft_knapsack_choice choice[ITEMS * CHOICES];
    uint8_t solution[ITEMS];
    int failed = 0, exceeded = 0, worse = 0;
    for (int i = 0; i < 200; i++) {
        make_items(choice, ITEMS, 1, &r);
        const ft_knapsack k = { choice, ITEMS, CHOICES };
        uint64_t capacity = ft_knapsack_smallest(&k) + rng_below(&r, 500);
        failed += ft_knapsack_solve(solution, &k, capacity, &err) != FT_OK;
        exceeded += total_of(&k, solution).cost > capacity;
        worse += total_of(&k, solution).loss > best_loss(&k, capacity) + 1e-12;
    }
    is_int(failed, 0, "200 random knapsacks have solutions");
    is_int(exceeded, 0, "no solution exceeds the capacity");
    is_int(worse, 0, "no choice of all 2187 loses less than the solution");
}

static void test_large(void)
{
    rng r = { 4 };
    ft_knapsack_choice choice[LARGE_ITEMS * CHOICES];
    uint8_t solution[LARGE_ITEMS], less[LARGE_ITEMS];
    make_items(choice, LARGE_ITEMS, 1000003, &r);
    const ft_knapsack k = { choice, LARGE_ITEMS, CHOICES };
    uint64_t smallest = ft_knapsack_smallest(&k), extra = smallest / 8;
    uint64_t step = extra / FT_KNAPSACK_STEPS + 1;
    ok(ft_knapsack_solve(solution, &k, smallest + extra, &err) == FT_OK &&
           total_of(&k, solution).cost <= smallest + extra,
       "costs of thousands of millions stay within the capacity");
    ok(ft_knapsack_solve(less, &k, smallest + extra - LARGE_ITEMS * step, &err) == FT_OK &&
           total_of(&k, solution).loss <= total_of(&k, less).loss,
       "rounding costs to steps loses no more than a step for each item");
    ok(ft_knapsack_solve(less, &k, UINT64_MAX / 2, &err) == FT_OK && total_of(&k, less).loss == 0.0,
       "a capacity for everything takes the choices that lose nothing");
}

static void test_limits(void)
{
    rng r = { 5 };
    ft_knapsack_choice choice[ITEMS * CHOICES];
    uint8_t solution[ITEMS];
    char expected[64];
    make_items(choice, ITEMS, 1, &r);
    const ft_knapsack k = { choice, ITEMS, CHOICES };
    uint64_t smallest = ft_knapsack_smallest(&k);
    ok(ft_knapsack_solve(solution, &k, smallest, &err) == FT_OK &&
           total_of(&k, solution).cost == smallest,
       "the smallest capacity has the cheapest choices as its solution");
    is_int(ft_knapsack_solve(solution, &k, smallest - 1, &err), FT_EARG,
           "a smaller capacity is refused");
    snprintf(expected, sizeof expected, "the smallest possible is %llu",
             (unsigned long long) smallest);
    has(err.text, expected, "the error names the smallest possible capacity");
    for (size_t i = 0; i < FT_COUNT(choice); i++)
        choice[i].loss = 0.5;
    ok(ft_knapsack_solve(solution, &k, 10 * smallest, &err) == FT_OK &&
           total_of(&k, solution).cost == smallest,
       "of equal losses the first choice is taken");
}

/* ---- Units --------------------------------------------------------------------------------- */

enum { LAYERS = 40, PLACES = 7 };

static bool is_not_down(const void *user, const ft_quantized_weight *matrix)
{
    (void) user;
    return strstr(matrix->weights.name, "down") == NULL;
}

static void test_units(size_t layers)
{
    static const char *const place[PLACES] = { "attn.q",   "attn.k", "attn.v",  "attn.out",
                                               "ffn.gate", "ffn.up", "ffn.down" };
    static char name[LAYERS * PLACES][48];
    static ft_quantized_weight matrix[LAYERS * PLACES];
    size_t count = layers * PLACES, wrong = 0;
    for (size_t i = 0; i < count; i++) {
        snprintf(name[i], sizeof name[i], "layer.%zu.%s.weight", i / PLACES, place[i % PLACES]);
        matrix[i].weights.name = name[i];
    }
    ft_weight_units units;
    if (ft_weight_units_init(&units, matrix, count, is_not_down, NULL, &err) != FT_OK)
        bail_out("%s", err.text);
    if (layers * (PLACES - 1) <= FT_MAX_WEIGHT_UNITS)
        is_int((long long) units.units, (long long) layers * (PLACES - 1),
               "each matrix of %zu layers is a unit of its own", layers);
    else
        ok(units.units <= FT_MAX_WEIGHT_UNITS && units.units > FT_MAX_WEIGHT_UNITS / 2,
           "%zu layers have %zu units, at most %d", layers, units.units, FT_MAX_WEIGHT_UNITS);
    for (size_t i = 0; i < count; i++) {
        bool is_down = i % PLACES == PLACES - 1;
        wrong += is_down != (units.of[i] == FT_NO_UNIT);
        wrong += !is_down &&
                 (units.first[units.of[i]] % PLACES != i % PLACES || units.first[units.of[i]] > i);
        wrong += i >= 2 * PLACES && !is_down && units.of[i] == units.of[i - 2 * PLACES] &&
                 units.of[i] != units.of[i - PLACES];
    }
    is_int((long long) wrong, 0,
           "a unit of %zu layers has one place of neighbouring layers, and no fixed matrix",
           layers);
    size_t placed = 0;
    for (size_t i = 0; i < units.units; i++)
        placed += ft_weight_unit_size(&units, i);
    is_int((long long) placed, (long long) (layers * (PLACES - 1)),
           "each free matrix of %zu layers is in one unit", layers);
    ft_weight_units_fini(&units);
}

/* ---- Budgets ------------------------------------------------------------------------------- */

static bool is_not_last(const void *unused, size_t item, uint8_t choice)
{
    (void) unused;
    (void) item;
    return choice < 2;
}

/* Float is faster than both widths for the first item, and loses nothing. */
static void test_one_that_counts(void)
{
    static const ft_knapsack_choice choice[] = { { 9, 2.0 }, { 8, 1.0 }, { 3, 0.0 },
                                                 { 2, 3.0 }, { 4, 1.5 }, { 5, 0.0 } };
    const ft_knapsack knapsack = { choice, 2, 3 };
    uint8_t solution[2];
    must(ft_knapsack_solve(solution, &knapsack, 8, &err));
    ok(solution[0] == 2 && solution[1] == 2, "where the last choices are best, all are taken");
    must(ft_knapsack_solve_with_one(solution, &knapsack, 20, is_not_last, NULL, &err));
    ok(solution[0] == 1 && solution[1] == 2,
       "if one item must have another choice, the one that adds least loss is changed");
    must(ft_knapsack_solve_with_one(solution, &knapsack, 8, is_not_last, NULL, &err));
    ok(solution[0] == 2 && solution[1] == 1, "a change that exceeds the capacity is not made");
    must(ft_knapsack_solve_with_one(solution, &knapsack, 5, is_not_last, NULL, &err));
    ok(solution[0] == 2 && solution[1] == 0, "a solution that has such a choice stays");
    static const ft_knapsack_choice fast[] = { { 9, 2.0 }, { 8, 1.0 }, { 3, 0.0 } };
    const ft_knapsack one = { fast, 1, 3 };
    is_int(ft_knapsack_solve_with_one(solution, &one, 7, is_not_last, NULL, &err), FT_EARG,
           "a capacity without such a choice is refused");
}

static void test_budgets(void)
{
    static const char *const bad[] = { "",        "bits",    "bits=",  "bits=0",     "bits=-1",
                                       "bits=33", "bits=5x", "5",      "bits=nan",   "bits=inf",
                                       "ms=",     " bits=5", "BITS=5", "bits=0x1p9", "ms=0",
                                       "ms=-1",   "ms=nan",  "ms=inf", "ms=5s",      "ms=1e7" };
    ft_budget budget;
    ok(ft_budget_parse(&budget, "bits=4.75") && budget.bits == 4.75, "bits=4.75 is a budget");
    ok(ft_budget_parse(&budget, "bits=32"), "bits=32 is a budget");
    ok(ft_budget_parse(&budget, "ms=2.5") && budget.ms == 2.5 && budget.bits == 0.0,
       "ms=2.5 is a budget of time, and replaces one of bits");
    for (size_t i = 0; i < FT_COUNT(bad); i++)
        ok(!ft_budget_parse(&budget, bad[i]), "\"%s\" is refused as a budget", bad[i]);
}

int main(void)
{
    test_small();
    test_large();
    test_limits();
    test_units(6);
    test_units(LAYERS);
    test_one_that_counts();
    test_budgets();
    return done_testing();
}
