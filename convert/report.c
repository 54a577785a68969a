/*
 * report.c - the table of ft-convert -n and the JSON report of --json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/report.h"

#include "runtime/base/json_build.h"
#include "runtime/cli/table.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <string.h>

/* ---- Table ---------------------------------------------------------------------------------- */

/* "F16", or "F16 from BF16". */
static const char *dtype_text(char text[FT_LISTING_TEXT], const ft_mapped_weight *weight)
{
    const char *to = ft_dtype_name(weight->dtype), *from = ft_dtype_name(weight->tensor->dtype);
    if (weight->dtype == weight->tensor->dtype)
        return to;
    snprintf(text, FT_LISTING_TEXT, "%s from %s", to, from);
    return text;
}

static void print_model(const ft_conversion *conversion, FILE *file)
{
    const ft_hf_model *hf = &conversion->hf;
    const char *model_type = hf->architecture->model_type;
    fprintf(file, "%s: ", hf->class_name != NULL ? hf->class_name : model_type);
    ft_config_write(&hf->config, file);
    fputs("\n\n", file);
}

static const ft_listing_column columns[] = { { .title = "name" },
                                             { .title = "source" },
                                             { .title = "dtype" },
                                             { .title = "shape" },
                                             { .title = "bytes", .is_number = true } };

static void fill_weight(ft_listing_cell *cell, const ft_mapped_weight *weight)
{
    cell[0].text = weight->spec.name;
    cell[1].text = weight->source;
    cell[2].text = dtype_text(cell[2].buffer, weight);
    cell[3].text = ft_shape_text(cell[3].buffer, weight->spec.ndim, weight->spec.dim);
    ft_listing_cell_format(&cell[4], "%zu", weight->bytes);
}

/* The weights, then the files that are copied. */
static void fill_row(ft_listing_cell *cell, const void *source, size_t row)
{
    const ft_conversion *conversion = source;
    if (row < conversion->n_weights) {
        fill_weight(cell, &conversion->weight[row]);
        return;
    }
    size_t file = row - conversion->n_weights;
    cell[0].text = cell[1].text = conversion->file[file].name;
    ft_listing_cell_format(&cell[4], "%zu", conversion->file[file].bytes);
}

void ft_report_table(const ft_conversion *conversion, FILE *file)
{
    const ft_listing list = { .column = columns,
                              .columns = FT_COUNT(columns),
                              .rows = conversion->n_weights + conversion->n_files,
                              .fill = fill_row,
                              .source = conversion };
    print_model(conversion, file);
    ft_listing_print(&list, file);
    fprintf(file, "\n%zu tensors of %zu bytes (%.2f MB)\n", conversion->n_weights,
            conversion->bytes, (double) conversion->bytes * 1e-6);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static json_t *shape_json(const ft_weight_spec *spec)
{
    json_t *shape = json_array();
    for (int i = 0; i < spec->ndim; i++)
        ft_json_append(&shape, json_integer(spec->dim[i]));
    return shape;
}

static json_t *weight_json(const ft_conversion *conversion, const ft_mapped_weight *weight)
{
    return json_pack("{ss ss ss ss ss ss so sI}", "name", weight->spec.name, "source",
                     weight->source, "file",
                     ft_checkpoint_file_of(conversion->checkpoint, weight->source), "role",
                     ft_role_name(weight->spec.role), "dtype", ft_dtype_name(weight->dtype),
                     "source_dtype", ft_dtype_name(weight->tensor->dtype), "shape",
                     shape_json(&weight->spec), "bytes", (json_int_t) weight->bytes);
}

static json_t *weights_json(const ft_conversion *conversion)
{
    json_t *list = json_array();
    for (size_t i = 0; i < conversion->n_weights; i++)
        ft_json_append(&list, weight_json(conversion, &conversion->weight[i]));
    return list;
}

static json_t *files_json(const ft_conversion *conversion)
{
    json_t *list = json_array();
    for (size_t i = 0; i < conversion->n_files; i++)
        ft_json_append(&list, json_pack("{ss sI}", "name", conversion->file[i].name, "bytes",
                                        (json_int_t) conversion->file[i].bytes));
    return list;
}

static json_t *unused_json(const ft_conversion *conversion)
{
    json_t *list = json_array();
    for (size_t i = 0; i < conversion->n_unused; i++)
        ft_json_append(&list, json_string(conversion->unused[i]));
    return list;
}

static json_t *notes_json(const ft_messages *notes)
{
    json_t *list = json_array();
    for (size_t i = 0; i < notes->count && i < FT_MAX_MESSAGES; i++)
        ft_json_append(&list, json_string(notes->message[i].text));
    return list;
}

json_t *ft_report_json(const ft_conversion *conversion, const char *output)
{
    const ft_hf_model *hf = &conversion->hf;
    return json_pack("{sb ss? ss ss ss? so so so sI so so}", "ok", 1, "output", output, "family",
                     hf->family->name, "model_type", hf->architecture->model_type, "architecture",
                     hf->class_name, "config", ft_config_to_json(&hf->config), "tensors",
                     weights_json(conversion), "files", files_json(conversion), "bytes",
                     (json_int_t) conversion->bytes, "unused", unused_json(conversion), "notes",
                     notes_json(&conversion->notes));
}

json_t *ft_report_failure(const ft_messages *problems)
{
    json_t *list = json_array();
    for (size_t i = 0; i < problems->count && i < FT_MAX_MESSAGES; i++)
        ft_json_append(&list,
                       json_pack("{ss ss}", "status", ft_status_name(problems->message[i].code),
                                 "text", problems->message[i].text));
    return json_pack("{sb sI so}", "ok", 0, "count", (json_int_t) problems->count, "problems",
                     list);
}
