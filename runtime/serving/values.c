/*
 * values.c - growing bytes, and members of structures that JSON sets by their names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/serving/serving.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Bytes --------------------------------------------------------------------------------- */

ft_status ft_serving_append(ft_serving_buffer *buffer, const void *data, size_t bytes,
                            ft_error *err)
{
    size_t needed = buffer->bytes + bytes;
    if (needed >= buffer->capacity) {
        size_t capacity = 2 * needed + 1;
        char *larger = realloc(buffer->data, capacity);
        if (larger == NULL)
            return ft_fail(err, FT_ENOMEM, "no memory for %zu bytes", capacity);
        buffer->data = larger;
        buffer->capacity = capacity;
    }
    if (bytes > 0)
        memcpy(buffer->data + buffer->bytes, data, bytes);
    buffer->bytes = needed;
    return FT_OK;
}

ft_status ft_serving_append_text(ft_serving_buffer *buffer, const char *text, size_t bytes,
                                 ft_error *err)
{
    const uint32_t length = (uint32_t) bytes;
    FT_TRY(ft_serving_append(buffer, &length, sizeof length, err));
    return ft_serving_append(buffer, text, bytes, err);
}

/* ---- Members ------------------------------------------------------------------------------- */

/* What a member of this type expects; NULL: `value` is stored. */
static const char *store(void *to, char type, const json_t *value)
{
    json_int_t integer = json_integer_value(value);
    float narrow = (float) json_number_value(value);
    switch (type) {
    case 'i':
        *(int32_t *) to = (int32_t) integer;
        return json_is_integer(value) && integer == (int32_t) integer ? NULL : "a 32-bit integer";
    case 'I':
        *(int64_t *) to = integer;
        return json_is_integer(value) ? NULL : "an integer";
    case 'f':
        *(float *) to = narrow;
        return json_is_number(value) && isfinite(narrow) ? NULL : "a number";
    case 'F':
        *(double *) to = json_number_value(value);
        return json_is_number(value) ? NULL : "a number";
    case 'b':
        *(bool *) to = json_is_true(value);
        return json_is_boolean(value) ? NULL : "true or false";
    case 'a':
        *(const json_t **) to = value;
        return json_is_string(value) || json_is_array(value) ? NULL : "texts";
    default:
        value = json_array_size(value) == 1 ? json_array_get(value, 0) : value;
        *(const char **) to = json_string_value(value);
        return json_is_string(value) ? NULL : "a text";
    }
}

ft_status ft_serving_set(void *object, const ft_serving_member *members, const json_t *values,
                         ft_error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *) (uintptr_t) values, name, value)
    {
        char names[500] = "";
        const ft_serving_member *m = members;
        for (; m->name != NULL && strcmp(m->name, name) != 0; m++)
            snprintf(names + strlen(names), sizeof names - strlen(names), " %s", m->name);
        if (m->name == NULL)
            return ft_fail(err, FT_EARG, "%.80s: unknown, expected one of:%s", name, names);
        const char *expected = store((char *) object + m->offset, m->type, value);
        char *found = expected == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY);
        if (expected != NULL)
            (void) ft_fail(err, FT_EARG, "%s: found %.80s, expected %s", name,
                           found != NULL ? found : "", expected);
        free(found);
        if (expected != NULL)
            return FT_EARG;
    }
    return FT_OK;
}

int ft_serving_find(const json_t *list, const char *name)
{
    size_t i;
    json_t *io;
    json_array_foreach(list, i, io) if (strcmp(json_string_value(json_object_get(io, "name")),
                                               name) == 0) return (int) i;
    return -1;
}
