/*
 * counters.c - sets of counters: which samples they cover, and when two can be merged.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/ranges/counters.h"

#include "runtime/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* Names must be unique. */
static ft_status check_names(const char *const *names, size_t count, const char *who, ft_error *err)
{
    if (count > FT_COUNTER_POINTS)
        return ft_fail(err, FT_ELIMIT, "%s: %zu calibration points, at most %d are supported", who,
                       count, FT_COUNTER_POINTS);
    const char **sorted = ft_calloc(count, sizeof *sorted);
    if (sorted == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu names", who, count);
    for (size_t i = 0; i < count; i++)
        sorted[i] = names[i];
    qsort(sorted, count, sizeof *sorted, by_name);

    ft_status rc = FT_OK;
    for (size_t i = 0; i < count && rc == FT_OK; i++) {
        if (sorted[i][0] == '\0')
            rc = ft_fail(err, FT_EARG, "%s: calibration point without a name", who);
        else if (strlen(sorted[i]) > FT_COUNTER_NAME)
            rc = ft_fail(err, FT_ELIMIT, "%s: %.64s...: name longer than %d bytes", who, sorted[i],
                         FT_COUNTER_NAME);
        else if (i > 0 && strcmp(sorted[i], sorted[i - 1]) == 0)
            rc = ft_fail(err, FT_EARG, "%s: %s: two calibration points have this name", who,
                         sorted[i]);
    }
    free(sorted);
    return rc;
}

ft_status ft_counter_set_new(ft_counter_set **out, const uint8_t model[FT_FINGERPRINT],
                             const char *const *names, size_t count, const char *who, ft_error *err)
{
    *out = NULL;
    FT_TRY(check_names(names, count, who, err));
    ft_counter_set *set = calloc(1, sizeof *set);
    if (set == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for a set of counters", who);
    memcpy(set->model, model, FT_FINGERPRINT);
    set->point = ft_calloc(count, sizeof *set->point);
    for (; set->point != NULL && set->count < count; set->count++) {
        ft_counters *point = &set->point[set->count];
        point->name = ft_strdup(names[set->count]);
        if (point->name == NULL || !ft_counts_init(&point->counts)) {
            free(point->name);
            break;
        }
    }
    if (set->point == NULL || set->count < count) {
        ft_counter_set_free(set);
        return ft_fail(err, FT_ENOMEM, "%s: no memory for the counters of %zu points", who, count);
    }
    *out = set;
    return FT_OK;
}

void ft_counter_set_free(ft_counter_set *set)
{
    if (set == NULL)
        return;
    for (size_t i = 0; i < set->count; i++) {
        free(set->point[i].name);
        ft_counts_fini(&set->point[i].counts);
    }
    free(set->point);
    free(set->range);
    free(set);
}

ft_counters *ft_counter_set_find(const ft_counter_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->point[i].name, name) == 0)
            return &set->point[i];
    return NULL;
}

static int compare_data(const ft_sample_range *a, const ft_sample_range *b)
{
    return memcmp(a->data, b->data, FT_FINGERPRINT);
}

static bool overlap(const ft_sample_range *a, const ft_sample_range *b)
{
    return compare_data(a, b) == 0 && a->first < b->last && b->first < a->last;
}

static bool is_adjacent(const ft_sample_range *a, const ft_sample_range *b)
{
    return compare_data(a, b) == 0 && b->first == a->last;
}

static bool precedes(const ft_sample_range *a, const ft_sample_range *b)
{
    int order = compare_data(a, b);
    return order < 0 || (order == 0 && a->first < b->first);
}

static ft_status check_not_counted(const ft_counter_set *set, ft_sample_range range,
                                   const char *who, ft_error *err)
{
    for (size_t i = 0; i < set->range_count; i++)
        if (overlap(&range, &set->range[i]))
            return ft_fail(err, FT_EARG,
                           "%s: samples %" PRIu64 " to %" PRIu64 " overlap samples %" PRIu64
                           " to %" PRIu64 ", which are counted already",
                           who, range.first, range.last - 1, set->range[i].first,
                           set->range[i].last - 1);
    return FT_OK;
}

/* Merges adjacent ranges. */
static void coalesce(ft_counter_set *set)
{
    size_t n_kept = 0;
    for (size_t i = 1; i < set->range_count; i++) {
        if (is_adjacent(&set->range[n_kept], &set->range[i]))
            set->range[n_kept].last = set->range[i].last;
        else
            set->range[++n_kept] = set->range[i];
    }
    set->range_count = n_kept + 1;
}

ft_status ft_counter_set_add_range(ft_counter_set *set, ft_sample_range range, const char *who,
                                   ft_error *err)
{
    if (range.first >= range.last)
        return ft_fail(err, FT_EARG, "%s: no samples in the range %" PRIu64 " to %" PRIu64, who,
                       range.first, range.last);
    FT_TRY(check_not_counted(set, range, who, err));
    if (set->range_count >= FT_COUNTER_RANGES)
        return ft_fail(err, FT_ELIMIT, "%s: more than %d separate ranges of samples", who,
                       FT_COUNTER_RANGES);
    ft_sample_range *ranges = realloc(set->range, (set->range_count + 1) * sizeof *ranges);
    if (ranges == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu ranges", who, set->range_count + 1);
    set->range = ranges;

    size_t index = set->range_count++;
    for (; index > 0 && precedes(&range, &ranges[index - 1]); index--)
        ranges[index] = ranges[index - 1];
    ranges[index] = range;
    coalesce(set);
    return FT_OK;
}

uint64_t ft_counter_set_samples(const ft_counter_set *set)
{
    uint64_t samples = 0;
    for (size_t i = 0; i < set->range_count; i++)
        samples += set->range[i].last - set->range[i].first;
    return samples;
}

/* Sets can be merged only if they count the same points of the same model on different samples. */
static ft_status check_mergeable(const ft_counter_set *set, const ft_counter_set *from,
                                 const char *who, ft_error *err)
{
    if (memcmp(set->model, from->model, FT_FINGERPRINT) != 0)
        return ft_fail(err, FT_EARG, "%s: counted on another model", who);
    for (size_t i = 0; i < set->count && i < from->count; i++)
        if (strcmp(set->point[i].name, from->point[i].name) != 0)
            return ft_fail(err, FT_EARG, "%s: calibration point %zu is %s, expected %s", who, i + 1,
                           from->point[i].name, set->point[i].name);
    if (set->count != from->count)
        return ft_fail(err, FT_EARG, "%s: %zu calibration points, expected %zu", who, from->count,
                       set->count);
    for (size_t i = 0; i < from->range_count; i++)
        FT_TRY(check_not_counted(set, from->range[i], who, err));
    return FT_OK;
}

ft_status ft_counter_set_merge(ft_counter_set *set, ft_counter_set *from, const char *who,
                               ft_error *err)
{
    FT_TRY(check_mergeable(set, from, who, err));
    for (size_t i = 0; i < from->range_count; i++)
        FT_TRY(ft_counter_set_add_range(set, from->range[i], who, err));
    ft_counter_set_finalize(from);
    for (size_t i = 0; i < set->count; i++)
        ft_counts_merge(&set->point[i].counts, &from->point[i].counts);
    return FT_OK;
}

void ft_counter_set_finalize(ft_counter_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        ft_counts_finalize(&set->point[i].counts);
}
