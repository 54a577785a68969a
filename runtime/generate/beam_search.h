/*
 * beam_search.h - validation and defaults of beam search options and requests.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GENERATE_BEAM_SEARCH_H
#define FT_RUNTIME_GENERATE_BEAM_SEARCH_H

#include "runtime/model/session.h"
#include "runtime/text/stop_ids.h"

/* The configuration shared by all searches of a call, with defaults filled in. */
typedef struct ft_beam_search_config {
    const ft_session *session;
    ft_beam_search_options options;
    int32_t forced_bos; /* -1: none */
    ft_stop_ids stops;  /* eos_token_id of the model */
} ft_beam_search_config;

/* Fill in defaults and validate the options: FT_EUNSUPPORTED, FT_EARG or FT_ELIMIT. */
FT_MUST_USE ft_status ft_beam_search_configure(ft_beam_search_config *out,
                                               const ft_session *session,
                                               const ft_beam_search_options *options,
                                               ft_error *err);

/* Validate all requests before the search starts: FT_EARG or FT_ELIMIT. */
FT_MUST_USE ft_status ft_beam_search_check(const ft_beam_search_config *plan,
                                           const ft_request *requests, size_t count, ft_error *err);

/* The decoder prefix of a request [*tokens]. */
const int32_t *ft_beam_search_prompt(const ft_beam_search_config *plan, const ft_request *request,
                                     size_t *tokens);

/* Maximum length of a hypothesis in tokens, including the prefix. */
size_t ft_beam_search_max_tokens(const ft_beam_search_config *plan, const ft_request *request);

/* Maximum number of sources that are searched concurrently. */
size_t ft_beam_search_max_sources(const ft_beam_search_config *plan);

/* ---- Step by step -------------------------------------------------------------------------- */

typedef struct ft_beam_searches ft_beam_searches;

/*
 * Check requests as ft_beam_search() does, and begin to search in a session that does nothing else
 * until ft_beam_searches_close(), which accepts NULL.  The requests outlive it.
 */
FT_MUST_USE ft_status ft_beam_searches_open(ft_beam_searches **out, ft_session *session,
                                            const ft_request *requests, size_t count,
                                            const ft_beam_search_options *options,
                                            ft_on_hypothesis on_hypothesis, void *user,
                                            ft_error *err);
void ft_beam_searches_close(ft_beam_searches *searches);

/* Take a decode step, after the prefill of sources that start; *done: no search is left. */
FT_MUST_USE ft_status ft_beam_searches_step(ft_beam_searches *searches, bool *done, ft_error *err);

/* Give up a search that is not finished; not from the callback. */
void ft_beam_searches_cancel(ft_beam_searches *searches, size_t index);

const ft_generate_stats *ft_beam_searches_stats(const ft_beam_searches *searches);

#endif
