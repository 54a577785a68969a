/*
 * session_sizes.h - how large a session must be for generation requests.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GENERATE_SESSION_SIZES_H
#define FT_RUNTIME_GENERATE_SESSION_SIZES_H

#include "runtime/model/session.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* What runs at the same time; 0: the default. */
typedef struct ft_generation_limits {
    int64_t batch; /* sequences, or sources of a beam search; default 64 sequences */
    int64_t chunk; /* tokens per forward pass; default 512, and at least the longest source */
} ft_generation_limits;

/*
 * Set max_sequences, max_tokens, cache_tokens, source_tokens and, unless it is given, context of a
 * session for these requests, at least one, which have the same max_new_tokens. Without
 * max_new_tokens the context is 4096 tokens, or the model's positions if these are fewer or a
 * prompt is longer.
 */
FT_MUST_USE ft_status ft_session_sizes_for_generation(ft_session_options *options,
                                                      const ft_model *model,
                                                      const ft_request *requests, size_t count,
                                                      const ft_generation_limits *limits,
                                                      ft_error *err);

/* The same for a beam search, where all beams of a source may reach the context. */
void ft_session_sizes_for_beam_search(ft_session_options *options, const ft_model *model,
                                      const ft_request *requests, size_t count, size_t beams,
                                      const ft_generation_limits *limits);

#pragma GCC visibility pop

#endif
