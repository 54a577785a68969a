/*
 * labels.c - what a classifier has on top, and how many classes there are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config_reader.h"

#include "convert/json.h"
#include "runtime/mem.h"

#include <string.h>

/* Classes are numbered from 0 without a gap. */
static bool names_all(const json_t *names)
{
    char key[24];
    for (size_t i = 0; i < json_object_size(names); i++) {
        snprintf(key, sizeof key, "%zu", i);
        if (json_object_get(names, key) == NULL)
            return false;
    }
    return json_object_size(names) > 0;
}

/* id2label says how many there are, else num_labels, else there are two. */
static void read_labels(const ft_config_reader *r)
{
    int32_t low, high;
    ft_config_bounds(offsetof(ft_config, labels), &low, &high);
    const json_t *names = ft_config_value(r, "id2label");
    const json_t *number = ft_config_value(r, "num_labels");
    json_int_t n = number == NULL ? 2 : json_integer_value(number);
    if (number != NULL && (n < 1 || n > high)) {
        ft_config_wrong(r, "num_labels", number, "a positive whole number");
        return;
    }
    if (names != NULL && !names_all(names)) {
        ft_config_wrong(r, "id2label", names, "names of the classes \"0\", \"1\", ...");
        return;
    }
    json_int_t named = names == NULL ? n : (json_int_t) json_object_size(names);
    if (named > high || (number != NULL && named != n)) {
        ft_message(r->problems, FT_EFORMAT,
                   "%s: id2label has %" JSON_INTEGER_FORMAT
                   " names, but num_labels is %" JSON_INTEGER_FORMAT,
                   r->label, named, n);
        return;
    }
    r->out->config.labels = (int32_t) named;
}

static bool is_classifier(const ft_origin *origin)
{
    static const char *const suffix[] = { "ForSequenceClassification", "ForImageClassification" };
    for (size_t i = 0; origin->architecture != NULL && i < FT_COUNT(suffix); i++) {
        const char *found = strstr(origin->architecture, suffix[i]);
        if (found != NULL && strlen(found) == strlen(suffix[i]))
            return true;
    }
    return false;
}

void ft_config_read_head(const ft_config_reader *reader)
{
    if (!is_classifier(reader->out))
        return;
    reader->out->config.head = reader->dialect->head;
    reader->out->config.pooler = reader->dialect->head == FT_HEAD_POOLED;
    read_labels(reader);
}
