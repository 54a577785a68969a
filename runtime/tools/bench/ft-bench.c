/*
 * ft-bench.c - benchmark a model, or a model shape with random weights, on this machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/threads/processors.h"
#include "runtime/error.h"
#include "runtime/base/json_build.h"
#include "runtime/mem.h"
#include "runtime/model/devices.h"
#include "runtime/tools/bench/options.h"
#include "runtime/cli/progress.h"

#include <stdlib.h>
#include <string.h>

/* ---- Cases -------------------------------------------------------------------------------- */

typedef struct job {
    ft_bench_request *request;
    ft_bench *bench;
    ft_synthetic synthetic;
    ft_model *model;
    ft_device_info device;
} job;

static bool on_cpu(const job *j)
{
    return strcmp(j->model->backend->name, "cpu") == 0;
}

static void set_default(ft_bench_list *list, size_t item)
{
    if (list->count == 0)
        *list = (ft_bench_list){ { item }, 1 };
}

/* The sequence length of vision models follows from the number of patches. */
static ft_status set_image_defaults(const job *j, const ft_config *config, const char *name,
                                    ft_error *err)
{
    ft_bench_request *r = j->request;
    if (r->lengths.count > 0 || j->bench->fill < 1.0 || r->decode.count > 0)
        return ft_fail(
            err, FT_EARG,
            "--length, --fill and --decode apply to text models, but %s is a vision model", name);
    set_default(&r->lengths, (size_t) config->positions);
    return FT_OK;
}

static ft_status set_load_defaults(const job *j, const ft_config *config, const char *name,
                                   ft_error *err)
{
    ft_bench_request *r = j->request;
    if (config->kind != FT_KIND_DECODER)
        return ft_fail(err, FT_EARG, "--request-rate: %s is not a decoder", name);
    set_default(&r->sequences, 64);
    set_default(&r->lengths, 128);
    set_default(&r->decode, 128);
    if (r->duration == 0.0)
        r->duration = 30.0;
    return FT_OK;
}

/* The engine decides how many sequences run at the same time, unless that is given. */
static ft_status set_throughput_defaults(const job *j, const ft_config *config, const char *name,
                                         ft_error *err)
{
    if (config->kind != FT_KIND_DECODER)
        return ft_fail(err, FT_EARG, "--throughput: %s is not a decoder", name);
    if (j->request->sequences.count == 0)
        j->request->sequences = (ft_bench_list){ { 0 }, 1 };
    return FT_OK;
}

/* Defaults that depend on the type of the model. */
static ft_status set_defaults(const job *j, const ft_config *config, const char *name,
                              ft_error *err)
{
    ft_bench_request *r = j->request;
    if (r->rates.count > 0)
        return set_load_defaults(j, config, name, err);
    if (r->throughput.count > 0)
        return set_throughput_defaults(j, config, name, err);
    if (r->sequences.count == 0)
        r->sequences = (ft_bench_list){ { 1, 8, 32 }, 3 };
    bool is_encoder_decoder = ft_config_is_encoder_decoder(config);
    if (r->beams.count > 0 && !is_encoder_decoder)
        return ft_fail(err, FT_EARG, "--beams: %s is not an encoder-decoder", name);
    if (j->bench->top_p > 0.0 && is_encoder_decoder)
        return ft_fail(err, FT_EARG, "--top-p: %s is timed with beam search, which does not sample",
                       name);
    if (ft_config_is_vision(config))
        return set_image_defaults(j, config, name, err);
    set_default(&r->lengths, is_encoder_decoder ? 32 : 128);
    if (is_encoder_decoder) {
        set_default(&r->decode, 32);
        set_default(&r->beams, 4);
    }
    return FT_OK;
}

static size_t list_max(const ft_bench_list *list)
{
    size_t max = 0;
    for (size_t i = 0; i < list->count; i++)
        max = list->item[i] > max ? list->item[i] : max;
    return max;
}

/* Extend the positions of a shape to the longest sequence of all cases. */
static void extend_positions(ft_bench_request *r)
{
    size_t length = list_max(&r->lengths), decoded = list_max(&r->decode) + 1;
    size_t longest = r->rates.count > 0 ? length + decoded : ft_max_size(length, decoded);
    const ft_bench_lengths_list *t = &r->throughput;
    for (size_t i = 0; i < t->count; i++)
        longest = ft_max_size(longest, t->length[i] + t->new_tokens[i]);
    int32_t max = (int32_t) longest + r->config.position_offset;
    if (r->config.positions < max)
        r->config.positions = max;
}

/* On a GPU every layer has its own copy, so layers may share host memory. */
static ft_status make_synthetic(job *j, ft_error *err)
{
    const ft_bench_request *r = j->request;
    ft_synthetic_options options = { .scheme = r->scheme,
                                     .group = r->group,
                                     .share_layers = strncmp(r->model.device, "cpu", 3) != 0,
                                     .threads = j->bench->threads };
    FT_TRY(ft_device_open(&options.backend, &options.device, r->model.device, err));
    ft_status status = ft_synthetic_make(&j->synthetic, &r->config, &options, err);
    options.backend->close(options.device);
    return status;
}

static ft_status open_model(job *j, ft_error *err)
{
    ft_bench_request *r = j->request;
    if (r->input != NULL) {
        FT_TRY(ft_model_open(&j->model, r->input, &r->model, err));
        return set_defaults(j, &j->model->config, r->input, err);
    }
    FT_TRY(set_defaults(j, &r->config, r->shape, err));
    extend_positions(r);
    FT_TRY(make_synthetic(j, err));
    return ft_synthetic_open(&j->model, &j->synthetic, r->shape, &r->model, err);
}

/* The ft_devices() entry of the open device; "cuda" means "cuda:0". */
static ft_device_info describe_device(const char *name)
{
    ft_device_info info[64];
    size_t count = ft_devices(info, FT_COUNT(info));
    for (size_t i = 0; i < count && i < FT_COUNT(info); i++)
        if (strncmp(info[i].name, name, strlen(name)) == 0)
            return info[i];
    return (ft_device_info){ "", "", false };
}

static const char *scheme_of(const job *j)
{
    if (j->request->shape != NULL)
        return ft_synthetic_scheme_name(j->request->scheme);
    if (j->model->quant.mode != FT_MODE_INT8)
        return ft_model_get_info(j->model).precision; /* "float", "groupwise" */
    if (j->model->quant.dynamic)
        return ft_synthetic_scheme_name(FT_SYNTHETIC_W8A8_DYNAMIC);
    return ft_synthetic_scheme_name(j->model->quant.int8_residual ? FT_SYNTHETIC_INT8_RESIDUAL
                                                                  : FT_SYNTHETIC_INT8);
}

static ft_status prepare(job *j, ft_error *err)
{
    ft_bench *bench = j->bench;
    const char *device = j->request->model.device;
    FT_TRY(open_model(j, err));
    if (bench->view != FT_BENCH_TUNE)
        ft_tool_warn(&ft_bench_tool, j->model->tuning_note);
    if (bench->verbose)
        FT_TRY(ft_model_write_plan(j->model, stderr, err));
    j->device = describe_device(device);
    bench->model = j->model;
    bench->name = j->request->shape != NULL ? j->request->shape : j->request->input;
    bench->scheme = scheme_of(j);
    bench->device = j->device.name;
    if (bench->roofline.read > 0.0 || bench->view == FT_BENCH_TUNE) /* they were given */
        return FT_OK;
    return ft_roofline_measure(&bench->roofline, &j->model->plan, device, bench->threads, err);
}

/* Mixed-radix decomposition of a case number: take the next digit off *index. */
static size_t next_value(const ft_bench_list *list, size_t *index)
{
    size_t item = list->item[*index % list->count];
    *index /= list->count;
    return item;
}

static ft_status run_load(const job *j, size_t index, ft_error *err)
{
    const ft_bench_request *r = j->request;
    ft_bench_load_shape load = { .rate = r->rates.item[index % r->rates.count],
                                 .seconds = r->duration };
    index /= r->rates.count;
    load.sequences = next_value(&r->sequences, &index);
    load.length = next_value(&r->lengths, &index);
    load.new_tokens = next_value(&r->decode, &index);
    return ft_bench_load(j->bench, &load, err);
}

static ft_status run_throughput(const job *j, size_t index, ft_error *err)
{
    const ft_bench_request *r = j->request;
    const ft_bench_lengths_list *t = &r->throughput;
    size_t at = index % t->count;
    index /= t->count;
    return ft_bench_throughput(j->bench,
                               &(ft_bench_throughput_shape){
                                   .sequences = next_value(&r->sequences, &index),
                                   .length = t->length[at],
                                   .new_tokens = t->new_tokens[at],
                                   .requests = r->requests,
                                   .cache_tokens = r->cache_tokens,
                                   .chunk = r->chunk,
                               },
                               err);
}

/* Run case number `index` of the Cartesian product of the lists. */
static ft_status run_case(const job *j, size_t index, ft_error *err)
{
    const ft_bench_request *r = j->request;
    if (r->rates.count > 0)
        return run_load(j, index, err);
    if (r->throughput.count > 0)
        return run_throughput(j, index, err);
    size_t sequences = next_value(&r->sequences, &index);
    if (ft_config_is_encoder_decoder(&j->model->config)) {
        ft_bench_beam_search_shape texts = { .sources = sequences };
        texts.length = next_value(&r->lengths, &index);
        texts.beams = next_value(&r->beams, &index);
        texts.new_tokens = next_value(&r->decode, &index);
        return ft_bench_beam_search(j->bench, &texts, err);
    }
    if (r->decode.count > 0)
        return ft_bench_decode(j->bench, sequences, next_value(&r->decode, &index), err);
    return ft_bench_forward(j->bench, sequences, next_value(&r->lengths, &index), err);
}

static size_t count_cases(const job *j)
{
    const ft_bench_request *r = j->request;
    size_t count = r->sequences.count;
    if (r->rates.count > 0)
        return count * r->rates.count * r->lengths.count * r->decode.count;
    if (r->throughput.count > 0)
        return count * r->throughput.count;
    if (ft_config_is_encoder_decoder(&j->model->config))
        return count * r->lengths.count * r->beams.count * r->decode.count;
    return count * (r->decode.count > 0 ? r->decode.count : r->lengths.count);
}

static ft_status run_cases(job *j, ft_error *err)
{
    size_t total = count_cases(j);
    bool prints_table = j->request->format != FT_TABLE_JSON;
    ft_progress_line line;
    ft_progress_begin(&line, "timing", "cases", j->request->quiet || prints_table);
    ft_status status = FT_OK;
    for (size_t i = 0; i < total && status == FT_OK; i++) {
        status = run_case(j, i, err);
        ft_progress_update(&line, i + 1, total);
    }
    ft_progress_end(&line);
    return status;
}

/* ---- All schemes -------------------------------------------------------------------------- */

/*
 * A float artifact whose operations are timed for another program is timed in all schemes that
 * ft-calibrate could give it.  Beam search has no pass whose operations add up to its time.
 */
static bool times_schemes(const job *j)
{
    const ft_bench_request *r = j->request;
    return r->input != NULL && r->format == FT_TABLE_JSON && j->bench->view == FT_BENCH_OPS &&
           j->model->quant.mode == FT_MODE_FLOAT &&
           strcmp(j->bench->scheme, ft_synthetic_scheme_name(FT_SYNTHETIC_FLOAT)) == 0 &&
           !ft_config_is_encoder_decoder(&j->model->config);
}

/* Run all cases with random weights of a scheme; only the times of all schemes receive results. */
static ft_status run_synthetic_cases(job *j, ft_error *err)
{
    ft_bench *bench = j->bench;
    ft_table *const tables[] = { &bench->cases, &bench->ops, &bench->kinds };
    FT_TRY(ft_synthetic_open(&j->model, &j->synthetic, bench->name, &j->request->model, err));
    bench->model = j->model;
    for (size_t i = 0; i < FT_COUNT(tables); i++)
        ft_table_init(tables[i], FT_TABLE_JSON);
    ft_status status = run_cases(j, err);
    for (size_t i = 0; i < FT_COUNT(tables); i++)
        ft_table_fini(tables[i]);
    return status;
}

static ft_status time_scheme(const job *j, ft_synthetic_scheme scheme, ft_error *err)
{
    ft_bench bench = *j->bench;
    job other = { .request = j->request, .bench = &bench };
    ft_synthetic_options options = { .family = j->model->family,
                                     .scheme = scheme,
                                     .group = j->request->group,
                                     .share_layers = !on_cpu(j),
                                     .threads = bench.threads };
    bench.scheme = ft_synthetic_scheme_name(scheme);
    FT_TRY(ft_device_open(&options.backend, &options.device, j->request->model.device, err));
    ft_status status = ft_synthetic_make(&other.synthetic, &j->model->config, &options, err);
    options.backend->close(options.device);
    if (status == FT_OK)
        status = run_synthetic_cases(&other, err);
    ft_model_close(other.model);
    ft_synthetic_fini(&other.synthetic);
    j->bench->times = bench.times;
    return status;
}

static ft_status time_other_schemes(const job *j, ft_error *err)
{
    static const ft_synthetic_scheme schemes[] = { FT_SYNTHETIC_INT8, FT_SYNTHETIC_W8A8_DYNAMIC,
                                                   FT_SYNTHETIC_W8A8_BLOCK, FT_SYNTHETIC_W8A16,
                                                   FT_SYNTHETIC_W4A16 };
    for (size_t i = 0; i < FT_COUNT(schemes); i++)
        FT_TRY(time_scheme(j, schemes[i], err));
    return FT_OK;
}

static void want_scheme_times(const job *j)
{
    if (times_schemes(j))
        j->bench->times = (ft_bench_scheme_times){ true, json_array(), json_array() };
}

/* ---- Reporting ---------------------------------------------------------------------------- */

static void print_heading(const job *j)
{
    const ft_bench *b = j->bench;
    printf("%s, %s, %.1f MB of weights\n%s: %s", b->name, b->scheme,
           (double) ft_model_get_info(j->model).weight_bytes / 1e6, b->device, j->device.detail);
    if (on_cpu(j))
        printf("; %d thread%s", b->threads, b->threads > 1 ? "s" : "");
    if (b->view == FT_BENCH_TUNE) {
        printf("\n\n");
        fflush(stdout);
        return;
    }
    printf("\nroofline: ");
    if (b->roofline.int8_ops > 0.0)
        printf("%.3f TOPS in int8 GEMMs, ", 1e-12 * b->roofline.int8_ops);
    if (b->roofline.float_flops > 0.0)
        printf("%.3f TFLOPS in float GEMMs, ", 1e-12 * b->roofline.float_flops);
    printf("copy %.1f GB/s, read %.1f GB/s\n\n", 1e-9 * b->roofline.copy, 1e-9 * b->roofline.read);
    fflush(stdout);
}

static json_t *json_of_model(const job *j)
{
    const ft_config *c = &j->model->config;
    return json_pack("{ss, ss, si, si, si, si, sI}", "name", j->bench->name, "scheme",
                     j->bench->scheme, "layers", c->layers, "hidden", c->hidden, "heads", c->heads,
                     "ffn", c->ffn, "weight_bytes",
                     (json_int_t) ft_model_get_info(j->model).weight_bytes);
}

static json_t *json_of_roofline(const ft_roofline *c)
{
    json_t *object = json_object();
    if (c->int8_ops > 0.0)
        ft_json_set(&object, "int8_tops", json_real(1e-12 * c->int8_ops));
    if (c->float_flops > 0.0)
        ft_json_set(&object, "float_tflops", json_real(1e-12 * c->float_flops));
    if (c->copy > 0.0)
        ft_json_set(&object, "copy_gb_per_s", json_real(1e-9 * c->copy));
    if (c->read > 0.0)
        ft_json_set(&object, "read_gb_per_s", json_real(1e-9 * c->read));
    return object;
}

/* Omit empty tables. */
static void add_table(json_t **root, const char *name, const ft_table *table)
{
    if (table->rows == NULL || json_array_size(table->rows) > 0)
        ft_json_set(root, name, json_incref(table->rows));
}

static ft_status print_json(const job *j, ft_error *err)
{
    ft_bench *b = j->bench;
    json_t *root = json_pack("{ss, ss, so, s{ss, ss}, si, sf, so}", "tool", ft_bench_tool.name,
                             "version", ft_version(), "model", json_of_model(j), "device", "name",
                             b->device, "detail", j->device.detail, "runs", b->runs, "fill",
                             b->fill, "roofline", json_of_roofline(&b->roofline));
    if (on_cpu(j))
        ft_json_set(&root, "threads", json_integer(b->threads));
    add_table(&root, "cases", &b->cases);
    add_table(&root, "ops", &b->ops);
    add_table(&root, "op_kinds", &b->kinds);
    add_table(&root, "gemms", &b->gemms);
    if (b->times.is_wanted)
        ft_json_set(&root, "scheme_times",
                    ft_bench_scheme_times_json(&b->times, j->request->group));
    const size_t options = JSON_INDENT(1) | JSON_REAL_PRECISION(9);
    bool fine = root != NULL && json_dumpf(root, stdout, options) == 0;
    putchar('\n');
    json_decref(root);
    if (fine || ferror(stdout)) /* reported by ft_tool_exit_status() */
        return FT_OK;
    return ft_fail(err, FT_ENOMEM, "no memory for the results");
}

/* ------------------------------------------------------------------------------------------- */

static ft_status run(job *j, ft_error *err)
{
    FT_TRY(prepare(j, err));
    if (j->request->format == FT_TABLE_TEXT)
        print_heading(j);
    want_scheme_times(j);
    FT_TRY(j->bench->view == FT_BENCH_TUNE ? ft_bench_tune(j->bench, j->request->model.tuning, err)
                                           : run_cases(j, err));
    if (j->bench->times.is_wanted)
        FT_TRY(time_other_schemes(j, err));
    return j->request->format == FT_TABLE_JSON ? print_json(j, err) : FT_OK;
}

int main(int argc, char **argv)
{
    ft_bench_request r = { .model.device = "cpu", .scheme = FT_SYNTHETIC_INT8, .group = 32 };
    ft_bench bench = { .threads = ft_num_processors(), .runs = 30, .fill = 1.0 };
    ft_bench_parse(&r, &bench, argc, argv);
    ft_table *const tables[] = { &bench.cases, &bench.ops, &bench.kinds, &bench.gemms };
    for (size_t i = 0; i < FT_COUNT(tables); i++)
        ft_table_init(tables[i], r.format);
    job j = { .request = &r, .bench = &bench };
    ft_error err;
    int status = run(&j, &err) == FT_OK ? 0 : ft_tool_error(&ft_bench_tool, err.text);
    for (size_t i = 0; i < FT_COUNT(tables); i++)
        ft_table_fini(tables[i]);
    ft_bench_scheme_times_fini(&bench.times);
    ft_model_close(j.model);
    ft_synthetic_fini(&j.synthetic);
    return ft_tool_exit_status(&ft_bench_tool, status);
}
