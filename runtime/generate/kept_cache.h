/*
 * kept_cache.h - the KV cache of a conversation: what the next prompt has in common with the last
 * sequence is not computed again.
 *
 * Keys and values depend on the tokens before them alone, and every row adds in an order that
 * depends only on its position.  A sequence that continues from a kept cache therefore has the bits
 * of one that starts anew.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GENERATE_KEPT_CACHE_H
#define FT_RUNTIME_GENERATE_KEPT_CACHE_H

#include "runtime/model/session.h"

/*
 * Start a request with the first tokens of its prompt in the cache of slot 0, as many as *reused
 * tells; with none of them the caller clears the page table.  A prompt is never reused completely,
 * because its last row gives the first new token; nor with penalties, which count tokens in the
 * passes that read them.
 * FT_EARG: more than one request or sequence slot, or an encoder-decoder.
 */
FT_MUST_USE ft_status ft_kept_cache_begin(ft_session *session, const ft_request *request,
                                          size_t count, size_t *reused, ft_error *err);

/* A new token of the sequence, in order. */
void ft_kept_cache_add(ft_session *session, int32_t id);

/* The sequence has ended, and the first `cached` of its tokens are in the cache. */
void ft_kept_cache_end(ft_session *session, size_t cached);

#endif
