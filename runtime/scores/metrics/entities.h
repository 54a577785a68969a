/*
 * entities.h - entity-level precision, recall and F1 of tag sequences, as seqeval computes them in
 * its default mode: an entity counts as right if its type, its start and its end are right.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_METRICS_ENTITIES_H
#define FT_RUNTIME_SCORES_METRICS_ENTITIES_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* An entity: tags [start, end) of a sequence, and its type, a part of the first tag's name. */
typedef struct ft_entity {
    size_t start, end;
    const char *type;
} ft_entity;

/*
 * Find the entities of a sequence of tags: B-, I-, E- and S- before a type, or O. Writes at most
 * one entity per tag and returns their number.
 */
size_t ft_entities_find(const char *const *tags, size_t count, ft_entity *out);

/* Sums over all sequences. Zero-initialize it. */
typedef struct ft_entity_counts {
    size_t predicted, expected, right;
} ft_entity_counts;

/* Add a sequence of `count` tags; false when out of memory. */
FT_MUST_USE bool ft_entity_counts_add(ft_entity_counts *counts, const char *const *predicted,
                                      const char *const *expected, size_t count);

/* Micro averages, 0 to 1; 0 where nothing was predicted or expected. */
double ft_entity_precision(const ft_entity_counts *counts);
double ft_entity_recall(const ft_entity_counts *counts);
double ft_entity_f1(const ft_entity_counts *counts);

#pragma GCC visibility pop

#endif
