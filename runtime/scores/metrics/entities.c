/*
 * entities.c - an entity ends where its type changes or its tag says so, however inconsistent the
 * tags are: the rules of the CoNLL script.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/metrics/entities.h"

#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* "B-PER" as its letter and its type. A tag without a type, such as "B", has the type "_". */
typedef struct {
    char letter;
    const char *type;
} tag;

static tag read_tag(const char *text)
{
    const char *type = text[0] == '\0' ? text : text + 1, *hyphen = strchr(type, '-');
    if (hyphen != NULL)
        type = hyphen + 1;
    return (tag){ text[0] == '\0' ? 'O' : text[0], *type == '\0' ? "_" : type };
}

static bool is_outside(char letter)
{
    return letter == 'O' || letter == '.';
}

static bool is_one_of(char letter, const char *letters)
{
    return letter != '\0' && strchr(letters, letter) != NULL;
}

static bool ends_between(const tag *previous, const tag *next)
{
    if (is_one_of(previous->letter, "ES"))
        return true;
    if (is_one_of(previous->letter, "BI") && is_one_of(next->letter, "BSO"))
        return true;
    return !is_outside(previous->letter) && strcmp(previous->type, next->type) != 0;
}

static bool starts_between(const tag *previous, const tag *next)
{
    if (is_one_of(next->letter, "BS"))
        return true;
    if (is_one_of(previous->letter, "ESO") && is_one_of(next->letter, "EI"))
        return true;
    return !is_outside(next->letter) && strcmp(previous->type, next->type) != 0;
}

size_t ft_entities_find(const char *const *tags, size_t count, ft_entity *out)
{
    tag previous = { 'O', "" };
    size_t found = 0, start = 0;
    for (size_t i = 0; i <= count; i++) {
        tag next = read_tag(i < count ? tags[i] : "O");
        if (ends_between(&previous, &next))
            out[found++] = (ft_entity){ start, i, previous.type };
        if (starts_between(&previous, &next))
            start = i;
        previous = next;
    }
    return found;
}

/* Both lists are in the order of their starts, and no two entities of a list start together. */
static size_t count_equal(const ft_entity *a, size_t n, const ft_entity *b, size_t m)
{
    size_t i = 0, j = 0, equal = 0;
    while (i < n && j < m) {
        equal +=
            a[i].start == b[j].start && a[i].end == b[j].end && strcmp(a[i].type, b[j].type) == 0;
        size_t x = a[i].start, y = b[j].start;
        i += x <= y;
        j += y <= x;
    }
    return equal;
}

bool ft_entity_counts_add(ft_entity_counts *counts, const char *const *predicted,
                          const char *const *expected, size_t count)
{
    ft_entity *a = ft_calloc(count + 1, sizeof *a), *b = ft_calloc(count + 1, sizeof *b);
    bool ok = a != NULL && b != NULL;
    if (ok) {
        size_t n = ft_entities_find(predicted, count, a), m = ft_entities_find(expected, count, b);
        counts->predicted += n;
        counts->expected += m;
        counts->right += count_equal(a, n, b, m);
    }
    free(a);
    free(b);
    return ok;
}

static double ratio(size_t part, size_t whole)
{
    return whole == 0 ? 0.0 : (double) part / (double) whole;
}

double ft_entity_precision(const ft_entity_counts *counts)
{
    return ratio(counts->right, counts->predicted);
}

double ft_entity_recall(const ft_entity_counts *counts)
{
    return ratio(counts->right, counts->expected);
}

double ft_entity_f1(const ft_entity_counts *counts)
{
    double precision = ft_entity_precision(counts), recall = ft_entity_recall(counts);
    return precision + recall == 0.0 ? 0.0 : 2.0 * precision * recall / (precision + recall);
}
