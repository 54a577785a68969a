/*
 * beam_search.h - what a beam search needs to know of its requests, and what can be wrong with them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GENERATE_BEAM_SEARCH_H
#define FT_RUNTIME_GENERATE_BEAM_SEARCH_H

#include "runtime/model/session.h"
#include "runtime/text/stop_ids.h"

/* What all searches of a call have in common: options whose defaults have been put in. */
typedef struct ft_search_plan {
    const ft_session *session;
    ft_search_options options;
    int32_t forced_bos; /* -1: none */
    ft_stop_ids stops;  /* the model's */
} ft_search_plan;

/* Put defaults in, and refuse options that no search of this session can have. */
FT_MUST_USE ft_status ft_search_plan_make(ft_search_plan *out, const ft_session *session,
                                          const ft_search_options *options, ft_error *err);

/* Refuse, before any work, what cannot be searched for. */
FT_MUST_USE ft_status ft_search_check(const ft_search_plan *plan, const ft_request *requests,
                                      size_t count, ft_error *err);

/* How the texts of a request begin. */
const int32_t *ft_search_prompt(const ft_search_plan *plan, const ft_request *request,
                                size_t *tokens);

/* The most tokens that a text may have, its beginning included. */
size_t ft_search_longest(const ft_search_plan *plan, const ft_request *request);

/* Sources that can be searched for at a time. */
size_t ft_search_groups(const ft_search_plan *plan);

#endif
