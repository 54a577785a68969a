/*
 * divergence.c - where two artifacts diverge on samples, and which scale may be the reason.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect/inspect.h"

#include "kernels/threads/processors.h"
#include "runtime/base/atomic_file.h"
#include "runtime/cli/json_stream.h"
#include "runtime/cli/table.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tools/inspect/divergence.h"

#include <math.h>
#include <string.h>

enum { LISTED_SUSPECTS = 5 };

/* The comparison, and what it is made from. */
typedef struct comparison {
    const ft_inspection *inspection;
    ft_model *model[2];
    ft_dataset data;
    ft_divergence result;
} comparison;

/* ---- Measuring ----------------------------------------------------------------------------- */

static bool is_float(const ft_artifact *artifact)
{
    return ft_artifact_get_header(artifact)->state == FT_ARTIFACT_FLOAT;
}

/* A rotation mixes the columns of most values. */
static ft_status check_rotations(const comparison *c, ft_error *err)
{
    const char *const *path = c->inspection->path;
    bool first = c->model[0]->config.rotated;
    if (first == c->model[1]->config.rotated)
        return FT_OK;
    return ft_fail(
        err, FT_EARG,
        "%s is rotated and %s is not, so their values cannot be compared; make the float "
        "artifact of both by ft-convert with --rotate, or of neither",
        path[!first], path[first]);
}

static ft_status measure(comparison *c, ft_error *err)
{
    const ft_inspection *in = c->inspection;
    ft_divergence *d = &c->result;
    for (int k = 0; k < 2; k++) {
        FT_TRY(ft_model_open(&c->model[k], in->path[k], NULL, err));
        d->path[k] = in->path[k];
    }
    FT_TRY(check_rotations(c, err));
    FT_TRY(ft_dataset_read(&c->data, in->samples_path, c->model[0], err));
    d->samples = ft_min_size(in->samples, c->data.rows);
    const ft_model *const both[] = { c->model[0], c->model[1] };
    FT_TRY(
        ft_value_errors_measure(&d->values, both, &c->data, d->samples, ft_num_processors(), err));
    bool first = is_float(in->artifact[0]);
    d->has_suspects = first != is_float(in->artifact[1]);
    return d->has_suspects ? ft_suspects_find(&d->suspects, in->path[!first], c->model[first],
                                              &c->data, d->samples, err)
                           : FT_OK;
}

/* ---- Text ---------------------------------------------------------------------------------- */

static const ft_listing_column suspect_columns[] = {
    { .title = "suspect" },
    { .title = "lost dB", .is_number = true },
    { .title = "SQNR dB", .is_number = true },
    { .title = "best dB", .is_number = true },
    { .title = "found", .shrinks = true },
};

static void print_suspects(const ft_divergence *d)
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
                                    .fill = ft_suspects_fill_row,
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

static void print_values(const ft_divergence *d)
{
    const ft_value_error *first = ft_value_errors_first_below(&d->values, FT_DIVERGED),
                         *last = ft_value_errors_worst(&d->values);
    printf("\n%zu samples, %zu values of both plans\n\n", d->samples, d->values.count);
    ft_listing_print(&(ft_listing){ .column = value_columns,
                                    .columns = FT_COUNT(value_columns),
                                    .rows = d->values.count,
                                    .fill = fill_value,
                                    .source = &d->values },
                     stdout);
    if (first != NULL)
        printf("\nfirst below %d dB: %s, %.2f dB\n", FT_DIVERGED, first->name[0],
               ft_value_sqnr_db(first));
    else
        printf("\nno value is below %d dB\n", FT_DIVERGED);
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
static void print_json(const ft_divergence *d)
{
    ft_json_stream json = { .file = stdout, .digits = 6 };
    const ft_value_error *first = ft_value_errors_first_below(&d->values, FT_DIVERGED);
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
    ft_json_stream_string(&json, "worst", ft_value_errors_worst(&d->values)->name[0]);
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

static ft_status write_page(const comparison *c, ft_error *err)
{
    const ft_inspection *in = c->inspection;
    const char *const inputs[] = { in->path[0], in->path[1], in->samples_path };
    ft_atomic_file *page;
    for (size_t i = 0; i < FT_COUNT(inputs); i++)
        FT_TRY(ft_path_check_not_input(in->page_path, inputs[i], err));
    FT_TRY(ft_atomic_file_open(&page, in->page_path, in->force, err));
    FILE *file = ft_atomic_file_stream(page);
    ft_status status = file != NULL ? ft_divergence_write_html(&c->result, file, err)
                                    : ft_fail_errno(err, "%s: cannot write", in->page_path);
    if (status == FT_OK)
        status = ft_atomic_file_commit(page, err);
    ft_atomic_file_close(page);
    return status;
}

static void print_text(const ft_divergence *d)
{
    print_suspects(d);
    print_values(d);
}

ft_status ft_inspect_divergence(ft_inspection *inspection, ft_error *err)
{
    comparison c = { .inspection = inspection };
    ft_status status = measure(&c, err);
    if (status == FT_OK && inspection->page_path != NULL)
        status = write_page(&c, err);
    if (status == FT_OK) {
        inspection->different = any_difference(&c.result.values);
        (inspection->json ? print_json : print_text)(&c.result);
    }
    ft_suspects_fini(&c.result.suspects);
    ft_value_errors_fini(&c.result.values);
    ft_dataset_fini(&c.data);
    for (int k = 0; k < 2; k++)
        ft_model_close(c.model[k]);
    return status;
}
