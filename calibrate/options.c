/*
 * options.c - the command line of ft-calibrate.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/options.h"

#include "calibrate/output_paths.h"
#include "calibrate/shards/shard_file.h"
#include "kernels/threads/processors.h"
#include "runtime/cli/image_options.h"
#include "runtime/cli/text_options.h"
#include "runtime/mem.h"
#include "runtime/model/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PERCENTILE = FT_LONG_ONLY,
    RESIDUAL,
    TARGET,
    BUDGET,
    TIMES,
    BEST_EFFORT,
    SCHEME,
    TENSOR,
    EXCLUDE,
    GROUP,
    ASYM,
    GROUP_PAD,
    CLIP,
    SCALE,
    ROUND,
    MEMORY,
    HEAD,
    SAMPLES,
    EVAL,
    SAVE,
    SHARD,
    SAVE_STATS,
    RESUME,
    MERGE,
    AMAX,
    REPORT,
    SMOOTH,
    NO_SELFTEST,
};

#define FT_METHOD(NAME, name, help) #name ": " help "\n"
static const char method_help[] =
#include "calibrate/ranges/methods.def"
    "default auto";
#undef FT_METHOD

/* "auto|percentile|...", behind a bar. */
#define FT_METHOD(NAME, name, help) "|" #name
static const char method_names[] =
#include "calibrate/ranges/methods.def"
    ;
#undef FT_METHOD

static const ft_option options[] = {
    { 'i', "input", "FILE", "the float artifact" },
    { 'o', "output", "FILE", "the artifact to write" },
    { 'd', "data", "FILE",
      "calibration samples: safetensors with input_ids [N, S]\n"
      "and optionally attention_mask, token_type_ids, labels" },
    FT_TEXT_OPTIONS,
    FT_IMAGE_OPTION,
    { 'm', "method", &method_names[1], method_help },
    { PERCENTILE, "percentile", "P",
      "percentile, 0 < P <= 100; implies -m percentile;\n"
      "default 99.99" },
    { RESIDUAL, "residual", "float|int8",
      "dtype of the residual stream; default float\n"
      "(FasterTransformer's int8_mode 1 and 2)" },
    { TARGET, "target", "none|NAME=X",
      "the mean cosine of embeddings (cosine=X), the KL\n"
      "divergence of logits (kl=X), the rise of perplexity\n"
      "(ppl=X%) or the loss of accuracy (accuracy=Xpt) that the\n"
      "model must reach.\n"
      "w8a8, w8a8-dynamic: activations get scales per token,\n"
      "matrices become w8a8-block and then float, until it\n"
      "does; default cosine=0.998, kl=0.01, for w8a8-dynamic\n"
      "kl=0.002; none: the scheme alone.  w4a16: matrices get\n"
      "8 bits, or return to float, until it does" },
    { BUDGET, "budget", "bits=X|ms=X",
      "bits=X, of w4a16: at most X bits a weight, with\n"
      "scales; the matrices that cost the output most get 8\n"
      "bits, or return to float; ms=X, also of w8a8 and\n"
      "w8a8-dynamic: least loss of the plans that take at\n"
      "most X milliseconds with the times of --times" },
    { TIMES, "times", "FILE",
      "times of the float artifact on the target machine,\n"
      "from ft-bench --ops --json, for --budget ms=X and\n"
      "instead of fixed costs for --target" },
    { BEST_EFFORT, "best-effort", NULL, "a --target that is missed is no error" },
    { SCHEME, "scheme", "w8a8|w8a8-dynamic|w4a16|w8a16|w8a8-block|float",
      "quantization scheme of the linear layers:\n"
      "w8a8 (default): int8, static activation scales;\n"
      "w8a8-dynamic: int8, dynamic scales per token;\n"
      "w4a16, w8a16: 4 or 8 bits, group-wise, float\n"
      "activations; w8a8-block: 8 bits, group-wise,\n"
      "int8 activations with dynamic scales per group;\n"
      "float: not quantized.  Only w8a8 needs data; with\n"
      "data, w8a8-dynamic has int8 attention in encoders" },
    { TENSOR, "tensor", "REGEX=SCHEME",
      "scheme of the matrices whose names match the extended\n"
      "regular expression; may be repeated, the first match\n"
      "decides" },
    { EXCLUDE, "exclude", "REGEX", "the same as --tensor REGEX=float" },
    { GROUP, "group", "32|64|128|0",
      "group size, the columns that share a scale; default\n"
      "32; 0: the entire row" },
    { ASYM, "asym", NULL, "asymmetric: a zero point per group" },
    { GROUP_PAD, "group-pad", NULL,
      "the last group of a row may be shorter; by default the\n"
      "group size must divide the number of columns" },
    { SMOOTH, "smooth", "auto|search|none|ALPHA",
      "SmoothQuant of int8 matrices: scale columns of inputs\n"
      "and weights, and fold the scales into the producers;\n"
      "search: the best alpha for each input; 0 <= ALPHA <= 1:\n"
      "the same for all; auto (default): search for decoders\n"
      "with at least 32 samples in -d" },
    { CLIP, "clip", "none|mse|imatrix",
      "range of a group: none (default): its extremes; mse:\n"
      "clip to the least square error; imatrix: the same,\n"
      "weighted by the mean square of the inputs in -d" },
    { SCALE, "scale", "none|awq",
      "awq: scale weight columns by the magnitude of their\n"
      "inputs in -d, and fold the inverse into the producer" },
    { ROUND, "round", "nearest|gptq|gptaq",
      "rounding of group-wise weights; gptq: later columns\n"
      "compensate rounding errors, on the inputs in -d; gptaq:\n"
      "also those of earlier matrices; takes much longer" },
    { MEMORY, "memory", "MIB",
      "memory for the statistics of imatrix, awq, gptq, gptaq;\n"
      "less memory, more passes; default half of what is free" },
    { HEAD, "head", "float|int8",
      "dtype of the LM head (decoders); default float,\n"
      "unchanged from the input artifact" },
    { SAMPLES, "samples", "N|FIRST:END",
      "observe the first N samples, or FIRST to END - 1;\n"
      "default all" },
    { EVAL, "eval", "FILE",
      "held-out samples for the float vs. quantized evaluation;\n"
      "default samples of -d that were not observed, else\n"
      "observed ones; texts or images, if the others are" },
    FT_THREADS_OPTION,
    FT_DEVICE_OPTION,
    { SAVE, "save-counters", "FILE", "write the counters, for a later --merge" },
    { SHARD, "shard", "I/N",
      "run the samples of part I of N alone, 1 <= I <= N, and\n"
      "write what they contribute to --save-stats" },
    { SAVE_STATS, "save-stats", "FILE", "write the counters or statistics of the shard" },
    { RESUME, "resume", NULL, "of --shard: keep the file if it is finished already" },
    { MERGE, "merge", "FILE...",
      "use these counters, or the statistics of all shards,\n"
      "instead of observing; may be repeated, and operands are\n"
      "such files too" },
    { AMAX, "amax", "FILE",
      "take the ranges from a file instead of observing:\n"
      "amax.tsv, an artifact, a safetensors checkpoint with\n"
      "the _amax tensors of ModelOpt or pytorch-quantization,\n"
      "or FasterTransformer's amaxList; samples are then\n"
      "optional and only evaluate" },
    { REPORT, "report", "FILE",
      "write the report: as a page for browsers if the name\n"
      "ends in .html or .htm, else as JSON" },
    FT_REPORT_JSON_OPTION,
    { NO_SELFTEST, "no-selftest", NULL,
      "store no self-test: samples and their outputs, which\n"
      "ft-inspect --selftest compares on another machine" },
    { 'f', "force", NULL, "replace existing files" },
    { 'n', "dry-run", NULL, "observe and report, but write no artifact" },
    { 'q', "quiet", NULL, "print warnings and errors only" },
    { 0, NULL, NULL, NULL },
};

const ft_tool ft_calibrate_tool = {
    .name = "ft-calibrate",
    .usage = "-i FILE -o FILE -d FILE [OPTION]...\n"
             "-i FILE -o FILE --text FILE [OPTION]...\n"
             "-i FILE -o FILE [OPTION]... --image FILE...\n"
             "-i FILE -d FILE --save-counters FILE [OPTION]...\n"
             "-i FILE -o FILE --merge FILE... [OPTION]...\n"
             "-i FILE -d FILE --shard I/N --save-stats FILE [OPTION]...\n"
             "-i FILE -o FILE -d FILE --merge FILE... [OPTION]...\n"
             "-i FILE -o FILE --amax FILE [OPTION]...\n"
             "-i FILE -o FILE --scheme NAME [OPTION]...",
    .about =
        "Quantize a float artifact: to int8 with calibrated ranges, or from its weights alone.",
    .option = options,
};

/* ---- Command line ------------------------------------------------------------------------- */

/* "N" or "FIRST:END". */
static void parse_samples(ft_calibration_options *job, const char *text)
{
    char *end;
    errno = 0;
    job->first = 0;
    job->last = strtoull(text, &end, 10);
    bool valid = end != text && text[0] != '-';
    if (valid && *end == ':') {
        const char *second = end + 1;
        job->first = job->last;
        job->last = strtoull(second, &end, 10);
        valid = end != second && *second != '-';
    }
    valid = valid && *end == '\0';
    if (valid && errno == ERANGE)
        ft_tool_usage_error(&ft_calibrate_tool,
                            "--samples: \"%s\" contains a number that is too large", text);
    if (!valid || job->first >= job->last)
        ft_tool_usage_error(&ft_calibrate_tool,
                            "--samples: \"%s\" is neither a count nor FIRST:END", text);
}

/* "I/N", counted from 1. */
static void parse_shard(ft_calibration_options *job, const char *text)
{
    char *end = NULL;
    unsigned long long index = strtoull(text, &end, 10), count = 0;
    bool valid = end != text && *end == '/' && strspn(text, "0123456789/") == strlen(text);
    if (valid) {
        const char *second = end + 1;
        count = strtoull(second, &end, 10);
        valid = end != second && *end == '\0';
    }
    if (!valid || index < 1 || index > count || count > FT_MAX_SHARDS)
        ft_tool_usage_error(&ft_calibrate_tool, "--shard: \"%s\" is not I/N with 1 <= I <= N <= %d",
                            text, FT_MAX_SHARDS);
    job->shard = (ft_shard){ .index = (uint32_t) index - 1, .count = (uint32_t) count };
}

/* Whether `text` is the second of the two values that an option takes. */
static bool parse_second(int option, const char *text, const char *first, const char *second)
{
    return ft_tool_word(&ft_calibrate_tool, option, text,
                        (const char *[]){ first, second, NULL }) == 1;
}

static void parse_scheme(ft_recipe *recipe, const char *text)
{
    ft_error err;
    if (ft_scheme_parse(text, &recipe->scheme, &err) != FT_OK)
        ft_tool_usage_error(&ft_calibrate_tool, "--scheme: %s", err.text);
}

static void parse_target(ft_calibration_options *job, const char *text)
{
    if (!ft_accuracy_target_parse(&job->target, text))
        ft_tool_usage_error(
            &ft_calibrate_tool,
            "--target: \"%s\" is neither none, cosine=X with X between 0 and 1, kl=X, ppl=X%% nor "
            "accuracy=Xpt with X above 0",
            text);
}

static void parse_budget(ft_calibration_options *job, const char *text)
{
    if (!ft_budget_parse(&job->budget, text))
        ft_tool_usage_error(&ft_calibrate_tool,
                            "--budget: \"%s\" is neither bits=X with X above 0 and at most 32 nor "
                            "ms=X with X above 0 and at most 1000000",
                            text);
}

static bool has_budget(const ft_calibration_options *job)
{
    return job->budget.bits > 0.0 || job->budget.ms > 0.0;
}

/* Which schemes a budget is for. */
static void check_budget_scheme(const ft_calibration_options *job, ft_scheme scheme)
{
    if (job->budget.bits > 0.0 && scheme != FT_SCHEME_W4A16)
        ft_tool_usage_error(&ft_calibrate_tool, "--budget bits=X is for --scheme w4a16, not for %s",
                            ft_scheme_name(scheme));
    if (job->budget.ms > 0.0 && scheme != FT_SCHEME_W4A16 && scheme != FT_SCHEME_W8A8 &&
        scheme != FT_SCHEME_W8A8_DYNAMIC)
        ft_tool_usage_error(&ft_calibrate_tool,
                            "--budget ms=X is for --scheme w8a8, w8a8-dynamic and w4a16, not for "
                            "%s",
                            ft_scheme_name(scheme));
}

/* Checks of what chooses precisions by bits or time. */
static void check_budget(const ft_calibrate_request *r)
{
    const ft_calibration_options *job = &r->job;
    bool has_target = ft_accuracy_target_is_set(&job->target);
    if (has_budget(job) && has_target)
        ft_tool_usage_error(&ft_calibrate_tool,
                            "--budget limits the bits or the time and --target the loss: give one "
                            "of them");
    check_budget_scheme(job, r->recipe.scheme);
    if (has_budget(job) && (job->data == NULL || job->n_merge > 0))
        ft_tool_usage_error(&ft_calibrate_tool,
                            "--budget needs sample data: use -d FILE, --text FILE or --image FILE");
    if (job->budget.ms > 0.0 && job->times == NULL)
        ft_tool_usage_error(&ft_calibrate_tool,
                            "--budget ms=X needs times of the target machine: use --times FILE, "
                            "which ft-bench --ops --json writes there");
    if (job->times != NULL && job->budget.ms <= 0.0 &&
        (!has_target || r->recipe.scheme == FT_SCHEME_W4A16))
        ft_tool_usage_error(&ft_calibrate_tool,
                            "--times is for --budget ms=X, and for --target of w8a8 and "
                            "w8a8-dynamic");
}

static void parse_method(ft_calibration_options *job, const char *text)
{
    static const char known_methods[] =
#define FT_METHOD(NAME, name, help) ", " #name
#include "calibrate/ranges/methods.def"
#undef FT_METHOD
        ;
    if (!ft_method_parse(text, &job->method))
        ft_tool_usage_error(&ft_calibrate_tool,
                            "--method: unknown method \"%s\", expected one of %s", text,
                            known_methods + 2);
}

static void parse_clip(ft_recipe *recipe, const char *text)
{
    if (!ft_clip_parse(text, &recipe->clip))
        ft_tool_usage_error(&ft_calibrate_tool, "--clip: \"%s\" is neither none, mse nor imatrix",
                            text);
}

static void parse_rounding(ft_recipe *recipe, const char *text)
{
    if (!ft_rounding_parse(text, &recipe->round))
        ft_tool_usage_error(&ft_calibrate_tool,
                            "--round: \"%s\" is neither nearest, gptq nor gptaq", text);
}

static void parse_smooth(ft_calibration_options *job, const char *text)
{
    char *end;
    job->smooth = strcmp(text, "auto") == 0     ? FT_SMOOTH_AUTO
                  : strcmp(text, "search") == 0 ? FT_SMOOTH_SEARCH
                  : strcmp(text, "none") == 0   ? FT_SMOOTH_NONE
                                                : FT_SMOOTH_ALPHA;
    if (job->smooth != FT_SMOOTH_ALPHA)
        return;
    job->smooth_alpha = strtod(text, &end);
    if (end == text || *end != '\0' || !(job->smooth_alpha >= 0.0 && job->smooth_alpha <= 1.0))
        ft_tool_usage_error(
            &ft_calibrate_tool,
            "--smooth: \"%s\" is neither auto, search, none nor a number from 0 to 1", text);
}

static size_t memory(const char *text)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (end == text || *end != '\0' || text[0] == '-' || value < 1)
        ft_tool_usage_error(&ft_calibrate_tool, "--memory: \"%s\" is not a number of MiB", text);
    if (value > SIZE_MAX >> 20)
        ft_tool_usage_error(&ft_calibrate_tool, "--memory: %s is too large, expected at most %zu",
                            text, SIZE_MAX >> 20);
    return (size_t) value << 20;
}

static void parse_rule(ft_recipe *recipe, const char *text)
{
    ft_error err;
    if (ft_recipe_add_text(recipe, text, &err) != FT_OK)
        ft_tool_usage_error(&ft_calibrate_tool, "--tensor: %s", err.text);
}

static void parse_exclusion(ft_recipe *recipe, const char *text)
{
    ft_error err;
    if (ft_recipe_add(recipe, text, FT_SCHEME_FLOAT, &err) != FT_OK)
        ft_tool_usage_error(&ft_calibrate_tool, "--exclude: %s", err.text);
}

static void add_merge_file(ft_calibrate_request *r, const char *file)
{
    if (r->job.n_merge == FT_MAX_MERGE)
        ft_tool_usage_error(&ft_calibrate_tool, "--merge: at most %d files", FT_MAX_MERGE);
    r->merge[r->job.n_merge++] = file;
}

static void apply_option(ft_calibrate_request *r, int option, const char *value)
{
    ft_calibration_options *job = &r->job;
    switch (option) {
    case 'i':
        job->input = value;
        break;
    case 'o':
        job->output = value;
        break;
    case 'd':
        job->data = value;
        break;
    case 'f':
        job->force = true;
        break;
    case 'n':
        job->dry_run = true;
        break;
    case 'q':
        r->quiet = true;
        break;
    case 't':
        job->threads = ft_tool_threads(&ft_calibrate_tool, option, value);
        break;
    case FT_OPTION_DEVICE:
        job->device = ft_tool_device(&ft_calibrate_tool, option, value);
        break;
    case 'm':
        parse_method(job, value);
        r->method = true;
        break;
    case PERCENTILE:
        job->percentile = ft_tool_positive(&ft_calibrate_tool, option, value, 100.0);
        break;
    case RESIDUAL:
        job->int8_residual = parse_second(option, value, "float", "int8");
        break;
    case TARGET:
        parse_target(job, value);
        break;
    case BUDGET:
        parse_budget(job, value);
        break;
    case TIMES:
        job->times = value;
        break;
    case BEST_EFFORT:
        job->best_effort = true;
        break;
    case SCHEME:
        parse_scheme(&r->recipe, value);
        break;
    case TENSOR:
        parse_rule(&r->recipe, value);
        break;
    case EXCLUDE:
        parse_exclusion(&r->recipe, value);
        break;
    case GROUP:
        r->recipe.group = ft_tool_group(&ft_calibrate_tool, option, value);
        r->has_groupwise_option = true;
        break;
    case ASYM:
        r->recipe.asymmetric = r->has_groupwise_option = true;
        break;
    case GROUP_PAD:
        r->recipe.group_pad = r->has_groupwise_option = true;
        break;
    case CLIP:
        parse_clip(&r->recipe, value);
        r->has_groupwise_option = true;
        break;
    case SCALE:
        r->recipe.awq = parse_second(option, value, "none", "awq");
        r->has_groupwise_option = true;
        break;
    case ROUND:
        parse_rounding(&r->recipe, value);
        r->has_groupwise_option = true;
        break;
    case MEMORY:
        job->memory = memory(value);
        break;
    case HEAD:
        r->recipe.quantized_head = parse_second(option, value, "float", "int8");
        break;
    case SAMPLES:
        parse_samples(job, value);
        break;
    case EVAL:
        job->eval = value;
        break;
    case SAVE:
        job->save = value;
        break;
    case SHARD:
        parse_shard(job, value);
        break;
    case SAVE_STATS:
        job->save_stats = value;
        break;
    case RESUME:
        job->resume = true;
        break;
    case MERGE:
        add_merge_file(r, value);
        break;
    case SMOOTH:
        parse_smooth(job, value);
        break;
    case AMAX:
        job->amax = value;
        break;
    case NO_SELFTEST:
        job->no_selftest = true;
        break;
    case REPORT:
        job->report = value;
        break;
    case FT_OPTION_JSON:
        job->json = true;
        break;
    default:
        (void) ft_tool_text_option(&ft_calibrate_tool, &job->texts, option, value);
    }
}

/* Samples are either tensors, texts or images. */
static void check_samples(ft_calibration_options *job)
{
    bool has_texts = job->texts.path != NULL, has_images = job->images.count > 0;
    ft_tool_check_text_options(&ft_calibrate_tool, &job->texts);
    if ((job->data != NULL) + has_texts + has_images > 1)
        ft_tool_usage_error(&ft_calibrate_tool, "give either -d FILE, --text FILE or --image FILE");
    if (has_texts)
        job->data = job->texts.path;
    if (has_images)
        job->data = job->images.path[0];
}

/* Files of shards if any is one: the others are then refused by what reads them. */
static void sort_merge_files(ft_calibrate_request *r)
{
    ft_calibration_options *job = &r->job;
    bool has_shards = false;
    for (size_t i = 0; i < job->n_merge; i++)
        has_shards = has_shards || ft_is_shard_file(r->merge[i]);
    if (has_shards) {
        job->stats = r->merge;
        job->n_stats = job->n_merge;
        job->n_merge = 0;
    } else {
        job->merge = r->merge;
    }
}

/* Operands are counters files after --merge, else images after --image. */
static void take_operands(ft_calibrate_request *r, int argc, char **argv)
{
    if (r->job.n_merge == 0)
        ft_tool_image_operands(&ft_calibrate_tool, &r->job.images, argc, argv);
    if (optind < argc && r->job.n_merge == 0)
        ft_tool_usage_error(&ft_calibrate_tool,
                            "\"%s\": operands are counters files, after --merge, or images, after "
                            "--image",
                            argv[optind]);
    while (optind < argc)
        add_merge_file(r, argv[optind++]);
    sort_merge_files(r);
}

/* Shards write their statistics and nothing else. */
static void check_shards(const ft_calibration_options *job)
{
    bool runs = job->shard.count > 0;
    if (runs != (job->save_stats != NULL))
        ft_tool_usage_error(&ft_calibrate_tool, runs ? "--shard needs --save-stats FILE"
                                                     : "--save-stats needs --shard I/N");
    if (job->resume && !runs)
        ft_tool_usage_error(&ft_calibrate_tool, "--resume is for --shard");
    if (runs && (job->output != NULL || job->report != NULL || job->json || job->dry_run ||
                 job->save != NULL || job->n_merge > 0))
        ft_tool_usage_error(&ft_calibrate_tool,
                            "--shard writes --save-stats alone: it excludes -o, --report, --json, "
                            "--dry-run, --save-counters and --merge of counters");
    if (job->n_stats > 0 && job->data == NULL)
        ft_tool_usage_error(&ft_calibrate_tool,
                            "--merge of statistics needs the samples of the shards, too: use -d "
                            "FILE, --text FILE or --image FILE");
}

/* --percentile implies the method of that name and excludes all others. */
static void check_method(ft_calibrate_request *r)
{
    ft_calibration_options *job = &r->job;
    if (job->percentile == 0.0)
        return;
    if (r->method && job->method != FT_METHOD_PERCENTILE)
        ft_tool_usage_error(&ft_calibrate_tool,
                            "--percentile is for --method percentile, not for %s",
                            ft_method_name(job->method));
    job->method = FT_METHOD_PERCENTILE;
}

/* Checks that need only the command line. */
static void check_recipe(const ft_calibrate_request *r)
{
    const ft_recipe *recipe = &r->recipe;
    bool uses_counters = ft_recipe_uses(recipe, FT_SCHEME_W8A8);
    if (!uses_counters && (r->job.n_merge > 0 || r->job.save != NULL))
        ft_tool_usage_error(&ft_calibrate_tool, "--scheme %s has no counters to save or merge",
                            ft_scheme_name(recipe->scheme));
    if (uses_counters && r->job.data == NULL && r->job.n_merge == 0 && r->job.amax == NULL)
        ft_tool_usage_error(&ft_calibrate_tool,
                            "no sample data given: use -d FILE, --text FILE or --image FILE");
    if (r->has_groupwise_option && !ft_recipe_uses_groupwise(recipe))
        ft_tool_usage_error(
            &ft_calibrate_tool,
            "--group, --asym, --group-pad, --clip, --scale and --round are for group-wise "
            "schemes");
    if (ft_recipe_needs_data(recipe) && r->job.data == NULL)
        ft_tool_usage_error(
            &ft_calibrate_tool,
            "--clip imatrix, --scale awq, --round gptq and gptaq need sample data: use "
            "-d FILE, --text FILE or --image FILE");
    if (ft_recipe_needs_data(recipe) && r->job.n_merge > 0)
        ft_tool_usage_error(
            &ft_calibrate_tool,
            "--clip imatrix, --scale awq, --round gptq and gptaq need samples: they cannot "
            "be combined with --merge");
    bool is_int8 =
        ft_recipe_uses(recipe, FT_SCHEME_W8A8) || ft_recipe_uses(recipe, FT_SCHEME_W8A8_DYNAMIC);
    bool smooths = r->job.smooth == FT_SMOOTH_SEARCH || r->job.smooth == FT_SMOOTH_ALPHA;
    if (smooths && !is_int8)
        ft_tool_usage_error(&ft_calibrate_tool, "--smooth is for int8 schemes, not for %s",
                            ft_scheme_name(recipe->scheme));
    if (smooths && (r->job.data == NULL || r->job.n_merge > 0 || r->job.save != NULL))
        ft_tool_usage_error(&ft_calibrate_tool,
                            "--smooth needs sample data, and cannot be combined with "
                            "--save-counters and --merge");
    if (r->job.memory > 0 && !ft_recipe_needs_data(recipe))
        ft_tool_usage_error(&ft_calibrate_tool,
                            "--memory is for --clip imatrix, --scale awq, --round gptq and gptaq");
    if (recipe->quantized_head && !ft_scheme_is_int8(recipe->scheme))
        ft_tool_usage_error(&ft_calibrate_tool,
                            "--head int8 is for int8 schemes: use --tensor '^head=%s'",
                            ft_scheme_name(recipe->scheme));
}

/* Given ranges replace observing and everything that depends on it. */
static void check_amax(const ft_calibrate_request *r)
{
    const ft_calibration_options *job = &r->job;
    if (job->amax == NULL)
        return;
    if (!ft_recipe_uses(&r->recipe, FT_SCHEME_W8A8) &&
        !ft_recipe_uses(&r->recipe, FT_SCHEME_W8A8_DYNAMIC))
        ft_tool_usage_error(&ft_calibrate_tool, "--amax is for w8a8 and w8a8-dynamic, not for %s",
                            ft_scheme_name(r->recipe.scheme));
    if (job->n_merge > 0 || job->save != NULL)
        ft_tool_usage_error(&ft_calibrate_tool, "--amax gives the ranges, so there are no counters "
                                                "to save or merge");
    if (r->method || job->percentile > 0.0)
        ft_tool_usage_error(&ft_calibrate_tool,
                            "--amax gives the ranges, so --method and --percentile have no effect");
    if (job->last > 0 && !ft_recipe_needs_data(&r->recipe))
        ft_tool_usage_error(&ft_calibrate_tool, "--samples and --amax exclude each other");
    if (ft_accuracy_target_is_set(&job->target) || job->budget.ms > 0.0 ||
        job->smooth == FT_SMOOTH_SEARCH || job->smooth == FT_SMOOTH_ALPHA)
        ft_tool_usage_error(
            &ft_calibrate_tool,
            "--amax gives the ranges, so --target, --budget ms=X and --smooth have no effect");
}

void ft_calibrate_parse(ft_calibrate_request *r, int argc, char **argv)
{
    const char *value;
    r->job.method = FT_METHOD_AUTO;
    r->job.threads = ft_num_processors();
    r->job.recipe = &r->recipe;
    r->recipe.group = 32;
    for (int option; (option = ft_options_next(&ft_calibrate_tool, argc, argv, &value)) != -1;)
        if (option == FT_OPTION_IMAGE)
            ft_tool_image_option(&ft_calibrate_tool, &r->job.images, value, argc);
        else
            apply_option(r, option, value);
    take_operands(r, argc, argv);
    if (r->job.input == NULL)
        ft_tool_usage_error(&ft_calibrate_tool, "no float artifact given: use -i FILE");
    check_samples(&r->job);
    check_method(r);
    check_recipe(r);
    check_budget(r);
    check_amax(r);
    check_shards(&r->job);
    if (r->job.output == NULL && r->job.save == NULL && r->job.save_stats == NULL &&
        !r->job.dry_run)
        ft_tool_usage_error(
            &ft_calibrate_tool,
            "nothing to do: give -o FILE, --save-counters FILE, --save-stats FILE or -n");
    if (r->job.output == NULL && r->job.json)
        r->job.dry_run = true; /* a report is requested */
    if (r->job.n_merge > 0 && r->job.last > 0)
        ft_tool_usage_error(&ft_calibrate_tool, "--samples and --merge exclude each other");
    ft_error err;
    if (ft_calibration_check_paths(&r->job, &err) != FT_OK)
        ft_tool_usage_error(&ft_calibrate_tool, "%s", err.text);
}
