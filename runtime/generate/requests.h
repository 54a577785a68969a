/*
 * requests.h - length limits and validation of generation requests.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GENERATE_REQUESTS_H
#define FT_RUNTIME_GENERATE_REQUESTS_H

#include "runtime/model/session.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* FT_EUNSUPPORTED: the model does not generate text. */
FT_MUST_USE ft_status ft_request_check_model(const ft_model *model, ft_error *err);

/* The most new tokens that there can be; the prompt is shorter than the context. */
size_t ft_request_max_new_tokens(const ft_request *request, size_t context);

/* Maximum number of tokens in the KV cache. */
size_t ft_request_max_cached(const ft_request *request, size_t context);

/* Validate a request against the session: FT_EARG or FT_ELIMIT; `index` is for the error message.
 */
FT_MUST_USE ft_status ft_request_check(const ft_session *session, const ft_request *request,
                                       size_t index, bool has_tokenizer, ft_error *err);

#pragma GCC visibility pop

#endif
