/*
 * observe.h - run the float model over sample data and count what passes every point.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_OBSERVE_H
#define FT_CALIBRATE_OBSERVE_H

#include "calibrate/ranges/counters.h"
#include "runtime/container/artifact.h"
#include "runtime/data/dataset.h"
#include "runtime/model/model.h"

/* An empty set of counters for a model opened to observe, with the fingerprint of its tensors. */
FT_MUST_USE ft_status ft_observe_new(ft_counter_set **out, const ft_model *model, ft_error *err);

/*
 * Count samples first .. last - 1 of the data into the set.
 *
 * Each sample is a run of its own on one thread, so its float results, and with them the counters,
 * depend neither on the number of threads nor on which samples stand beside it.
 */
FT_MUST_USE ft_status ft_observe(ft_counter_set *set, const ft_model *model, const ft_dataset *data,
                                 uint64_t first, uint64_t last, int threads, ft_progress progress,
                                 void *user, ft_error *err);

#endif
