/*
 * observe.h - runs the float model over calibration data and counts the values of every point.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_OBSERVE_H
#define FT_CALIBRATE_OBSERVE_H

#include "calibrate/ranges/counters.h"
#include "runtime/container/artifact.h"
#include "runtime/data/dataset.h"
#include "runtime/model/model.h"

/*
 * An empty set of counters for a model opened in observe mode, with the fingerprint of its tensors.
 */
FT_MUST_USE ft_status ft_observe_new(ft_counter_set **out, const ft_model *model, ft_error *err);

/* The SHA-256 of what the values of a model depend on: its configuration and tensors. */
FT_MUST_USE ft_status ft_model_fingerprint(const ft_model *model, uint8_t out[FT_FINGERPRINT],
                                           ft_error *err);

/* The SHA-256 of all samples of the data: ids, masks and types, or pixels. */
FT_MUST_USE ft_status ft_data_fingerprint(const ft_dataset *data, uint8_t out[FT_FINGERPRINT],
                                          ft_error *err);

/*
 * Adds samples first .. last - 1 of the data to the counters; of no samples, nothing.
 *
 * Each sample is a separate forward pass on one thread, so its float results, and with them the
 * counters, depend neither on the number of threads nor on the other samples.
 */
FT_MUST_USE ft_status ft_observe(ft_counter_set *set, const ft_model *model, const ft_dataset *data,
                                 uint64_t first, uint64_t last, int threads,
                                 ft_progress_callback progress, void *user, ft_error *err);

#endif
