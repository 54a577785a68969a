/*
 * requests.h - what a text may become, and all that can be wrong with a request for it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GENERATE_REQUESTS_H
#define FT_RUNTIME_GENERATE_REQUESTS_H

#include "runtime/model/session.h"

/* The most new tokens that there can be; the prompt is shorter than the context. */
size_t ft_request_room(const ft_request *request, size_t context);

/* The most tokens that the cache must hold at once. */
size_t ft_request_cached(const ft_request *request, size_t context);

/* Refuse, before any work, what cannot be generated in this session; `index` is for the error. */
FT_MUST_USE ft_status ft_request_check(const ft_session *session, const ft_request *request,
                                       size_t index, bool has_tokenizer, ft_error *err);
FT_MUST_USE ft_status ft_requests_check(const ft_session *session, const ft_request *requests,
                                        size_t count, bool has_tokenizer, ft_error *err);

#endif
