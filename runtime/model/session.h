/*
 * session.h - the session structure; internal to the library, its tools and tests.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_SESSION_H
#define FT_RUNTIME_MODEL_SESSION_H

#include "runtime/model/model.h"
#include "runtime/model/padded_batch.h"
#include "runtime/model/prefill_chunks.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* As many as a thread pool has. */
enum { FT_MAX_THREADS = 1024 };

enum { FT_PADDED_INPUT, FT_PADDED_ENCODER = FT_PADDED_INPUT, FT_PADDED_DECODER, FT_NUM_PADDED };

struct ft_session {
    const ft_model *model;
    ft_plan plan; /* copy of the model's, laid out for the limits */
    ft_limits limits;
    ft_exec *exec;

    /* Padded inputs: one set, or of encoder-decoders one for the encoder and one for the decoder.
     */
    ft_padded_batch text[FT_NUM_PADDED];
    int texts;
    int pixels_value; /* plan value of the images; text[0] then counts their rows; -1: none */

    ft_chunk_batch *chunks; /* decoders: the batch builder; NULL: no KV cache */
    size_t context;         /* tokens of one sequence */
    bool all_logits;

    ft_batch batch, encoder_batch; /* of the last pass; of the last encoder pass */
    /* [tokens] each, checked: ft_batch.input; NULL: the plan does not read it.  Where there are
     * chunks, the ids are theirs. */
    int32_t *packed[FT_NUM_BATCH_INPUTS];
    bool ran;
};

/*
 * ft_session_run() with one set of counters per value for the OBSERVE operations.  A device may
 * count in its own memory, so the counters are complete only after ft_session_collect_counts().
 */
FT_MUST_USE ft_status ft_session_run_observed(ft_session *session, ft_counts *const *counts,
                                              ft_error *err);
FT_MUST_USE ft_status ft_session_collect_counts(ft_session *session, ft_counts *const *counts,
                                                ft_error *err);

/* Pack the inputs that are set into session->batch, without running it; not for encoder-decoders.
 */
FT_MUST_USE ft_status ft_session_prepare_batch(ft_session *session, ft_error *err);

/*
 * Run the batch built in session->chunks: an encoder pass, or prefill chunks and decode steps.
 * Results are read by plan value; ft_session_get() does not apply, since the inputs set by
 * ft_session_set() were not used.
 */
FT_MUST_USE ft_status ft_session_run_chunks(ft_session *session, ft_error *err);

/* ft_session_get() for rows that start at `first` of a dataset: errors name first + row. */
FT_MUST_USE ft_status ft_session_get_rows(const ft_session *session, const char *name, size_t first,
                                          ft_tensor *out, ft_error *err);

/* Whether the rows of a value are encoder tokens of an encoder-decoder. */
bool ft_session_has_encoder_rows(const ft_session *session, int value);

/* Whether an output has a row for each position of the caller's padded inputs. */
bool ft_session_is_padded_output(const ft_session *session, const char *name);

/* Read the first `rows` rows of a value as F32; quantized values are dequantized. */
FT_MUST_USE ft_status ft_session_read_f32(const ft_session *session, int value, float *out,
                                          size_t rows, ft_error *err);

#pragma GCC visibility pop

#endif
