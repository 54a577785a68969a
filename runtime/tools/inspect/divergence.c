/*
 * divergence.c - where two artifacts diverge on samples, and which scale may be the reason.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect/inspect.h"

#include "kernels/threads/processors.h"
#include "runtime/cli/json_stream.h"
#include "runtime/cli/table.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tools/inspect/suspects.h"
#include "runtime/tools/inspect/value_errors.h"

#include <math.h>
#include <string.h>

/* Below this SQNR a value counts as diverged: its noise is a tenth of its magnitude. */
static const double diverged_db = 20.0;

enum { LISTED_SUSPECTS = 5 };

typedef struct divergence {
    const ft_inspection *inspection;
    ft_model *model[2];
    ft_dataset data;
    size_t samples;
    ft_value_errors values;
    bool has_suspects; /* exactly one of the artifacts is float */
    ft_suspects suspects;
} divergence;

/* ---- Measuring ----------------------------------------------------------------------------- */

static bool is_float(const ft_artifact *artifact)
{
    return ft_artifact_get_header(artifact)->state == FT_ARTIFACT_FLOAT;
}

static ft_status measure(divergence *d, ft_error *err)
{
    const ft_inspection *in = d->inspection;
    for (int k = 0; k < 2; k++)
        FT_TRY(ft_model_open(&d->model[k], in->path[k], NULL, err));
    FT_TRY(ft_dataset_read(&d->data, in->samples_path, d->model[0], err));
    d->samples = ft_min_size(in->samples, d->data.rows);
    const ft_model *const both[] = { d->model[0], d->model[1] };
    FT_TRY(
        ft_value_errors_measure(&d->values, both, &d->data, d->samples, ft_num_processors(), err));
    bool first = is_float(in->artifact[0]);
    d->has_suspects = first != is_float(in->artifact[1]);
    return d->has_suspects ? ft_suspects_find(&d->suspects, in->path[!first], d->model[first],
                                              &d->data, d->samples, err)
                           : FT_OK;
}

static const ft_value_error *first_diverged(const ft_value_errors *errors)
{
    for (size_t i = 0; i < errors->count; i++)
        if (!(ft_value_sqnr_db(&errors->value[i]) >= diverged_db))
            return &errors->value[i];
    return NULL;
}

/* NaN is worse than every number. */
static const ft_value_error *worst(const ft_value_errors *errors)
{
    const ft_value_error *found = &errors->value[0];
    for (size_t i = 1; i < errors->count && !isnan(ft_value_sqnr_db(found)); i++)
        if (!(ft_value_sqnr_db(&errors->value[i]) >= ft_value_sqnr_db(found)))
            found = &errors->value[i];
    return found;
}

/* ---- Text ---------------------------------------------------------------------------------- */

static const ft_listing_column suspect_columns[] = {
    { .title = "suspect" },
    { .title = "lost dB", .is_number = true },
    { .title = "SQNR dB", .is_number = true },
    { .title = "best dB", .is_number = true },
    { .title = "found", .shrinks = true },
};

static void fill_suspect(ft_listing_cell *cell, const void *source, size_t row)
{
    const ft_suspect *s = &((const ft_suspects *) source)->suspect[row];
    cell[0].text = s->name;
    ft_listing_cell_format(&cell[1], "%.2f", ft_suspect_loss_db(s));
    ft_listing_cell_format(&cell[2], "%.2f", s->sqnr_db);
    ft_listing_cell_format(&cell[3], "%.2f", s->best_db);
    ft_suspect_describe(cell[4].buffer, s);
    cell[4].text = cell[4].buffer;
}

static void print_suspects(const divergence *d)
{
    const ft_suspects *suspects = &d->suspects;
    if (!d->has_suspects) {
        printf("scales can be judged if one of the artifacts is float\n\n");
        return;
    }
    printf("scales that lose most beyond their format, of %zu\n\n", suspects->count);
    ft_listing_print(&(ft_listing){ .column = suspect_columns,
                                    .columns = FT_COUNT(suspect_columns),
                                    .rows = ft_min_size(LISTED_SUSPECTS, suspects->count),
                                    .fill = fill_suspect,
                                    .source = suspects },
                     stdout);
}

static const ft_listing_column value_columns[] = {
    { .title = "value", .shrinks = true },
    { .title = "in the second", .shrinks = true },
    { .title = "SQNR dB", .is_number = true },
};

static void fill_value(ft_listing_cell *cell, const void *source, size_t row)
{
    const ft_value_error *v = &((const ft_value_errors *) source)->value[row];
    cell[0].text = v->name[0];
    if (strcmp(v->name[0], v->name[1]) != 0)
        cell[1].text = v->name[1];
    ft_listing_cell_format(&cell[2], "%.2f", ft_value_sqnr_db(v));
}

static void print_values(const divergence *d)
{
    const ft_value_error *first = first_diverged(&d->values), *last = worst(&d->values);
    printf("\n%zu samples, %zu values of both plans\n\n", d->samples, d->values.count);
    ft_listing_print(&(ft_listing){ .column = value_columns,
                                    .columns = FT_COUNT(value_columns),
                                    .rows = d->values.count,
                                    .fill = fill_value,
                                    .source = &d->values },
                     stdout);
    if (first != NULL)
        printf("\nfirst below %.0f dB: %s, %.2f dB\n", diverged_db, first->name[0],
               ft_value_sqnr_db(first));
    else
        printf("\nno value is below %.0f dB\n", diverged_db);
    printf("worst: %s, %.2f dB\n", last->name[0], ft_value_sqnr_db(last));
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void put_suspect(ft_json_stream *json, const ft_suspect *s)
{
    char found[FT_SUSPECT_TEXT];
    ft_suspect_describe(found, s);
    ft_json_stream_begin(json, NULL, '{');
    ft_json_stream_string(json, "name", s->name);
    ft_json_stream_string(json, "kind", s->is_range ? "range" : "matrix");
    ft_json_stream_double(json, "lost_db", ft_suspect_loss_db(s));
    ft_json_stream_double(json, "sqnr_db", s->sqnr_db);
    ft_json_stream_double(json, "best_db", s->best_db);
    ft_json_stream_string(json, "found", found);
    ft_json_stream_end(json, '{');
}

static void put_value(ft_json_stream *json, const ft_value_error *v)
{
    ft_json_stream_begin(json, NULL, '{');
    ft_json_stream_string(json, "name", v->name[0]);
    ft_json_stream_string(json, "name_in_second", v->name[1]);
    ft_json_stream_double(json, "sqnr_db", ft_value_sqnr_db(v));
    ft_json_stream_end(json, '{');
}

/* The suspects, the most suspicious first, and the values in the order of the plan. */
static void print_json(const divergence *d)
{
    ft_json_stream json = { .file = stdout, .digits = 6 };
    const ft_value_error *first = first_diverged(&d->values);
    ft_json_stream_begin(&json, NULL, '{');
    ft_json_stream_int(&json, "samples", (int64_t) d->samples);
    ft_json_stream_begin(&json, "suspects", '[');
    for (size_t i = 0; i < d->suspects.count; i++)
        put_suspect(&json, &d->suspects.suspect[i]);
    ft_json_stream_end(&json, '[');
    ft_json_stream_begin(&json, "values", '[');
    for (size_t i = 0; i < d->values.count; i++)
        put_value(&json, &d->values.value[i]);
    ft_json_stream_end(&json, '[');
    if (first != NULL)
        ft_json_stream_string(&json, "first_diverged", first->name[0]);
    else
        ft_json_stream_null(&json, "first_diverged");
    ft_json_stream_string(&json, "worst", worst(&d->values)->name[0]);
    ft_json_stream_end(&json, '{');
}

/* -------------------------------------------------------------------------------------------- */

static bool any_difference(const ft_value_errors *errors)
{
    for (size_t i = 0; i < errors->count; i++)
        if (!(errors->value[i].noise <= 0.0))
            return true;
    return false;
}

ft_status ft_inspect_divergence(ft_inspection *inspection, ft_error *err)
{
    divergence d = { .inspection = inspection };
    ft_status status = measure(&d, err);
    if (status == FT_OK) {
        inspection->different = any_difference(&d.values);
        if (inspection->json)
            print_json(&d);
        else {
            print_suspects(&d);
            print_values(&d);
        }
    }
    ft_suspects_fini(&d.suspects);
    ft_value_errors_fini(&d.values);
    ft_dataset_fini(&d.data);
    for (int k = 0; k < 2; k++)
        ft_model_close(d.model[k]);
    return status;
}
