/*
 * sequences.c - the text so far of each sequence, by correlation id.
 *
 * A call takes the text out of the list and puts it back when it ends, so that of two requests at
 * the same time one finds none.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/serving/serving.h"

#include <inttypes.h>
#include <stdio.h>

/* The text so far, out of the list; NULL: there is none. */
static json_t *take(ft_serving_model *m, const char *id)
{
    pthread_mutex_lock(&m->lock);
    json_t *text = json_incref(json_object_get(m->sequences, id));
    json_object_del(m->sequences, id);
    pthread_mutex_unlock(&m->lock);
    return text;
}

ft_status ft_serving_sequence_begin(ft_serving_call *call, const json_t *text, ft_error *err)
{
    ft_serving_model *m = call->instance->shared;
    const bool starts = call->starts_sequence;
    json_t *before = call->sequence[0] == '\0' ? NULL : take(m, call->sequence);
    if (call->sequence[0] != '\0' && !starts && before == NULL) {
        ft_status status = ft_fail(
            err, FT_EARG,
            "sequence %s: found none, expected sequence_start: it has ended, its last request runs "
            "or has failed at the start, %" PRId64
            " others were used since, or the server has been restarted",
            call->sequence, m->options.max_sequence_ids);
        call->sequence[0] = '\0';
        return status;
    }
    ft_status status = FT_OK;
    if (!starts)
        status = ft_serving_append(&call->said, json_string_value(before),
                                   json_string_length(before), err);
    call->said_before = call->said.bytes;
    json_decref(before);
    return status == FT_OK ? ft_serving_append(&call->said, json_string_value(text),
                                               json_string_length(text), err)
                           : status;
}

void ft_serving_sequence_end(ft_serving_call *call)
{
    ft_serving_model *m = call->instance->shared;
    const bool failed = call->failure.code != FT_OK;
    if (call->sequence[0] == '\0' || call->ends_sequence || (failed && call->said_before == 0))
        return;
    pthread_mutex_lock(&m->lock);
    json_object_set_new(
        m->sequences, call->sequence,
        json_stringn(call->said.data, failed ? call->said_before : call->said.bytes));
    if ((int64_t) json_object_size(m->sequences) > m->options.max_sequence_ids)
        json_object_del(m->sequences, json_object_iter_key(json_object_iter(m->sequences)));
    pthread_mutex_unlock(&m->lock);
}
