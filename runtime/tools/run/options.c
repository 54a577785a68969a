/*
 * options.c - the command line of ft-run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/date.h"
#include "runtime/mem.h"
#include "runtime/tools/run/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    KEEP = FT_LONG_ONLY,
    TEXT,
    WHOLE_FILE,
    TRUNCATE,
    PAIRS,
    FIELDS,
    MAX_LENGTH,
    JSONL,
    AGGREGATION,
    TOP_MASKS,
    EMBED,
    PROMPT_NAME,
    DIM,
    FAKE,
    NO_FUSE,
    OUTPUTS,
    ALL_LOGITS,
    TOKENS,
    MAX_NEW,
    MIN_NEW,
    TEMPERATURE,
    TOP_K,
    TOP_P,
    MIN_P,
    REPETITION,
    PRESENCE,
    FREQUENCY,
    NGRAM,
    SEED,
    STOP,
    STOP_ID,
    IGNORE_END,
    CHAT,
    SYSTEM,
    DATE,
    LOGPROBS,
    CTX,
    CHUNK,
    BATCH,
    BEAMS,
    N_BEST,
    LENGTH_PENALTY,
    EARLY_STOPPING,
    BEAM_GROUPS,
    DIVERSITY,
    FORCED_BOS,
    SOURCE_LANGUAGE,
    TARGET_LANGUAGE,
};

static const ft_option options[] = {
    { 'i', "input", "FILE", "the artifact" },
    { 'd', "data", "FILE",
      "safetensors with input_ids [N, S], and optionally\n"
      "attention_mask, lengths [N], token_type_ids,\n"
      "labels [N]; of images pixel_values [N, C, H, W]" },
    { TEXT, "text", "FILE", "read one text per line; - is standard input" },
    FT_IMAGE_OPTION,
    { WHOLE_FILE, "whole", NULL, "the whole file is one text" },
    { 'o', "output", "FILE", "write the results to this safetensors file" },
    { 'f', "force", NULL, "replace the output file" },
    { PAIRS, "pairs", NULL, "each line is a pair of texts parted by a tab" },
    { FIELDS, "fields", "NAMES",
      "read JSON Lines: the member with the text, or the\n"
      "two with a pair, separated by a comma" },
    FT_JSON_OPTION,
    { JSONL, "jsonl", NULL, "print one JSON object a line: JSON Lines" },
    FT_THREADS_OPTION,
    FT_DEVICE_OPTION,
    FT_VERIFY_OPTION,
    { FAKE, "fake", NULL, "fake-quantize: compute an int8 artifact in float" },
    { NO_FUSE, "no-fuse", NULL, "disable operator fusion" },
    FT_VERBOSE_OPTION,

    /* Encoders, and single forward passes of decoders. */
    { TRUNCATE, "truncate", NULL, "truncate texts to the model's maximum length" },
    { MAX_LENGTH, "max-length", "N", "truncate texts to N tokens" },
    { AGGREGATION, "aggregation", "simple|first",
      "label each entity by all of its tokens: simple\n"
      "(default); or by the first of each word: first" },
    { TOP_MASKS, "top", "N", "words for each mask; default 5" },
    { EMBED, "embed", NULL, "decoders: embed the texts instead of continuing them" },
    { PROMPT_NAME, "prompt-name", "NAME",
      "the prompt before each text to embed; default: that\nof the model" },
    { DIM, "dim", "N", "the first N values of embeddings" },
    { OUTPUTS, "outputs", "NAMES", "collect only these outputs, separated by commas" },
    { KEEP, "keep", "NAME", "also collect this intermediate value; may be repeated" },
    { ALL_LOGITS, "every-logits", NULL, "decoders: logits of all tokens, not only the last" },
    { TOKENS, "max-tokens", "N", "tokens per forward pass; default 4096" },

    /* Text generation. */
    { MAX_NEW, "max-new-tokens", "N", "per text; default up to the context length" },
    { MIN_NEW, "min-new-tokens", "N", "suppress stop tokens before" },
    { TEMPERATURE, "temperature", "T", "sampling temperature; default 0: greedy decoding" },
    { TOP_K, "top-k", "K", "sample from the K most likely tokens" },
    { TOP_P, "top-p", "P", "nucleus sampling with cumulative probability P" },
    { MIN_P, "min-p", "P", "minimum probability relative to the most likely" },
    { REPETITION, "repetition-penalty", "R", "penalize tokens of prompt and output" },
    { PRESENCE, "presence-penalty", "X", "subtracted from logits of generated tokens" },
    { FREQUENCY, "frequency-penalty", "X", "the same, times the number of occurrences" },
    { NGRAM, "no-repeat-ngram-size", "N", "no n-gram of N tokens occurs twice" },
    { SEED, "seed", "S", "random seed; default 0" },
    { STOP, "stop", "TEXT", "stop string; may be repeated" },
    { STOP_ID, "stop-id", "ID", "additional stop token; may be repeated" },
    { IGNORE_END, "ignore-end", NULL, "ignore the model's eos_token_id" },
    { CHAT, "chat", NULL,
      "apply the chat template; without texts, read one\n"
      "message per line from standard input" },
    { SYSTEM, "system", "TEXT", "system message of the chat" },
    { DATE, "date", "WHEN", "YYYY-MM-DD[THH:MM] for the chat template; default now" },
    { LOGPROBS, "logprobs", NULL, "output log-probabilities of the new tokens" },
    { CTX, "ctx", "N", "context length: prompt and new tokens" },
    { CHUNK, "chunk", "N", "prompt tokens per forward pass; default 512" },
    { BATCH, "batch", "N", "concurrent sequences; default 64" },
    FT_KV_OPTION,
    FT_TUNING_OPTION,

    /* Translation. */
    { SOURCE_LANGUAGE, "source-lang", "NAME", "the language of the texts" },
    { TARGET_LANGUAGE, "target-lang", "NAME", "the language to translate into" },
    { FORCED_BOS, "forced-bos", "ID", "the first new token; instead of --target-lang" },

    /* Beam search. */
    { BEAMS, "beams", "K", "beam search with K beams, at most 64" },
    { N_BEST, "n-best", "N", "hypotheses per source; default 1" },
    { LENGTH_PENALTY, "length-penalty", "A",
      "scores are divided by the length to the power of A;\n"
      "default 1" },
    { EARLY_STOPPING, "early-stopping", "true|false|never",
      "stop with K hypotheses: true, at once; false (default),\n"
      "when a better one is unlikely; never, when a better\n"
      "one is impossible" },
    { BEAM_GROUPS, "beam-groups", "G", "diverse beam search with G groups" },
    { DIVERSITY, "diversity-penalty", "X", "penalty for tokens selected by an earlier group" },
    { 0, NULL, NULL, NULL },
};

const ft_tool ft_run_tool = {
    .name = "ft-run",
    .usage = "-i FILE -d FILE [-o FILE] [OPTION]...\n"
             "-i FILE --text FILE [OPTION]...\n"
             "-i FILE [OPTION]... TEXT...\n"
             "-i FILE [OPTION]... --image FILE...\n"
             "-i FILE --chat [OPTION]...",
    .about = "Run a model on token ids, texts or images: encoders classify or embed, decoders\n"
             "generate text, encoder-decoders translate.",
    .option = options,
};

/* ---- Values ------------------------------------------------------------------------------- */

static int parse_int(int option, const char *text, int low)
{
    return ft_tool_int(&ft_run_tool, option, text, low);
}

static float parse_float(int option, const char *text, double low, double high)
{
    return (float) ft_tool_double(&ft_run_tool, option, text, low, high);
}

static uint64_t parse_seed(const char *text)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || strchr(text, '-') != NULL)
        ft_tool_usage_error(&ft_run_tool, "--seed: \"%s\" is not an integer below 2^64", text);
    return number;
}

/* ---- Options ------------------------------------------------------------------------------ */

/* Sampling. */
static bool set_sampling_option(ft_run *r, int option, const char *value)
{
    const double any = 1e6;
    ft_request *sampling = &r->sampling;
    switch (option) {
    case TEMPERATURE:
        sampling->temperature = parse_float(option, value, 0.0, any);
        return true;
    case TOP_K:
        sampling->top_k = parse_int(option, value, 0);
        return true;
    case TOP_P:
        sampling->top_p = parse_float(option, value, 0.0, 1.0);
        return true;
    case MIN_P:
        sampling->min_p = parse_float(option, value, 0.0, 1.0);
        return true;
    case REPETITION:
        sampling->repetition_penalty = parse_float(option, value, 1e-6, any);
        return true;
    case PRESENCE:
        sampling->presence_penalty = parse_float(option, value, -any, any);
        return true;
    case FREQUENCY:
        sampling->frequency_penalty = parse_float(option, value, -any, any);
        return true;
    case NGRAM:
        sampling->no_repeat_ngram = parse_int(option, value, 0);
        return true;
    case SEED:
        sampling->seed = parse_seed(value);
        return true;
    default:
        return false;
    }
}

/* Length, stop criteria and output of generation. */
static bool set_generation_option(ft_run *r, int option, const char *value)
{
    switch (option) {
    case MAX_NEW:
        r->sampling.max_new_tokens = parse_int(option, value, 1);
        return true;
    case MIN_NEW:
        r->sampling.min_new_tokens = parse_int(option, value, 0);
        return true;
    case STOP:
        if (*value == '\0')
            ft_tool_usage_error(&ft_run_tool, "--stop: a stop string cannot be empty");
        r->stop[r->num_stop++] = value;
        return true;
    case STOP_ID:
        r->stop_id[r->num_run_stop_ids++] = parse_int(option, value, 0);
        return true;
    case IGNORE_END:
        r->ignore_end = true;
        return true;
    case CHAT:
        r->chat = true;
        return true;
    case SYSTEM:
        r->system = value;
        return true;
    case DATE:
        if (!ft_date_parse(value, &r->date))
            ft_tool_usage_error(&ft_run_tool, "--date: \"%s\" is not a date like 2026-11-20T12:00",
                                value);
        return true;
    case LOGPROBS:
        r->logprobs = true;
        return true;
    case CHUNK:
        r->chunk = parse_int(option, value, 1);
        return true;
    case BATCH:
        r->batch = parse_int(option, value, 1);
        return true;
    case FORCED_BOS:
        r->forced_bos = parse_int(option, value, 0);
        r->has_forced_bos = true;
        return true;
    case SOURCE_LANGUAGE:
        r->languages.source = value;
        return true;
    case TARGET_LANGUAGE:
        r->languages.target = value;
        return true;
    default:
        return false;
    }
}

/* Beam search. */
static bool set_search_option(ft_run *r, int option, const char *value)
{
    static const char *const early_stopping[] = { [FT_EARLY_STOPPING_FALSE] = "false",
                                                  [FT_EARLY_STOPPING_TRUE] = "true",
                                                  [FT_EARLY_STOPPING_NEVER] = "never",
                                                  NULL };
    ft_beam_search_options *search = &r->search;
    switch (option) {
    case BEAMS:
        search->beams = parse_int(option, value, 1);
        return true;
    case N_BEST:
        search->n_best = parse_int(option, value, 1);
        return true;
    case LENGTH_PENALTY:
        search->length_penalty = ft_tool_double(&ft_run_tool, option, value, -8.0, 8.0);
        search->no_length_normalization = search->length_penalty == 0.0;
        return true;
    case EARLY_STOPPING:
        search->early_stopping =
            (ft_early_stopping) ft_tool_word(&ft_run_tool, option, value, early_stopping);
        return true;
    case BEAM_GROUPS:
        search->beam_groups = parse_int(option, value, 1);
        return true;
    case DIVERSITY:
        search->diversity_penalty = parse_float(option, value, 0.0, 1e6);
        return true;
    default:
        return false;
    }
}

static const char *const aggregations[] = { "simple", "first", NULL };

/* Single forward passes. */
static bool set_single_run_option(ft_run *r, int option, const char *value)
{
    switch (option) {
    case TRUNCATE:
        r->truncate = true;
        return true;
    case MAX_LENGTH:
        r->max_length = parse_int(option, value, 1);
        return true;
    case AGGREGATION:
        r->task.by_word = ft_tool_word(&ft_run_tool, option, value, aggregations) == 1;
        return true;
    case TOP_MASKS:
        r->task.top = ft_tool_int_range(&ft_run_tool, option, value, 1, 100);
        return true;
    case EMBED:
        r->embed = true;
        return true;
    case PROMPT_NAME:
        r->prompt_name = value;
        return true;
    case DIM:
        r->dim = (size_t) parse_int(option, value, 1);
        return true;
    case OUTPUTS:
        r->outputs = value;
        return true;
    case KEEP:
        r->keep[r->num_keep++] = value;
        return true;
    case ALL_LOGITS:
        r->session.all_logits = true;
        return true;
    case TOKENS:
        r->session.max_tokens = parse_int(option, value, 1);
        return true;
    default:
        return false;
    }
}

/* KV cache, also in single forward passes. */
static bool set_cache_option(ft_run *r, int option, const char *value)
{
    switch (option) {
    case CTX:
        r->session.context = parse_int(option, value, 1);
        return true;
    case FT_OPTION_KV:
        return ft_tool_model_option(&ft_run_tool, &r->model, option, value);
    default:
        return false;
    }
}

static void set_common_option(ft_run *r, int option, const char *value)
{
    switch (option) {
    case 'i':
        r->input = value;
        break;
    case 'd':
        r->data = value;
        break;
    case 'o':
        r->output = value;
        break;
    case 'f':
        r->force = true;
        break;
    case 't':
        r->session.threads = ft_tool_threads(&ft_run_tool, option, value);
        break;
    case TEXT:
        r->text = value;
        break;
    case PAIRS:
        r->texts.pairs = true;
        break;
    case FIELDS:
        r->texts.fields = value;
        break;
    case JSONL:
        r->jsonl = true;
        break;
    case WHOLE_FILE:
        r->texts.whole_file = true;
        break;
    case FT_OPTION_JSON:
        r->json = true;
        break;
    case FAKE:
        r->model.fake = true;
        break;
    case NO_FUSE:
        r->model.no_fuse = true;
        break;
    case 'v':
        r->verbose = true;
        break;
    default:
        ft_tool_model_option(&ft_run_tool, &r->model, option, value);
    }
}

/* ---- All ---------------------------------------------------------------------------------- */

static void refuse_overwrite(const char *output, const char *input)
{
    ft_error err;
    if (output != NULL && input != NULL && ft_path_check_not_input(output, input, &err) != FT_OK)
        ft_tool_usage_error(&ft_run_tool, "%s", err.text);
}

/* "-" is standard input, not a file. */
static void refuse_overwriting_inputs(const ft_run *r)
{
    refuse_overwrite(r->output, r->input);
    refuse_overwrite(r->output, r->data);
    if (r->text != NULL && strcmp(r->text, "-") != 0)
        refuse_overwrite(r->output, r->text);
    for (size_t i = 0; i < r->images.count; i++)
        refuse_overwrite(r->output, r->images.path[i]);
}

static void check(const ft_run *r)
{
    int inputs =
        (r->data != NULL) + (r->text != NULL) + (r->num_operands > 0) + (r->images.count > 0);
    if (r->input == NULL)
        ft_tool_usage_error(&ft_run_tool, "no artifact given: use -i FILE");
    if (inputs > 1 || (inputs == 0 && !r->chat))
        ft_tool_usage_error(&ft_run_tool,
                            "give either -d FILE, --text FILE, --image FILE or texts");
    if (r->chat && (r->data != NULL || r->images.count > 0))
        ft_tool_usage_error(&ft_run_tool, "--chat applies to texts, not to %s",
                            r->data != NULL ? "-d" : "--image");
    if (r->chat && inputs == 0 && (r->json || r->output != NULL))
        ft_tool_usage_error(&ft_run_tool, "an interactive chat supports neither -o nor --json");
    if ((r->system != NULL || r->date != 0) && !r->chat)
        ft_tool_usage_error(&ft_run_tool, "--%s requires --chat",
                            r->system != NULL ? "system" : "date");
    if (r->search_option != NULL && r->search.beams == 0)
        ft_tool_usage_error(&ft_run_tool, "--%s requires --beams", r->search_option);
    if ((r->texts.whole_file || r->texts.fields != NULL) && r->text == NULL)
        ft_tool_usage_error(&ft_run_tool, "--%s requires --text",
                            r->texts.whole_file ? "whole" : "fields");
    if (r->texts.whole_file && (r->texts.pairs || r->texts.fields != NULL))
        ft_tool_usage_error(&ft_run_tool, "--whole reads one text: --%s does not apply",
                            r->texts.pairs ? "pairs" : "fields");
    if (r->has_forced_bos && r->languages.target != NULL)
        ft_tool_usage_error(&ft_run_tool, "give either --target-lang or --forced-bos");
    if (r->prompt_name != NULL && (r->data != NULL || r->images.count > 0))
        ft_tool_usage_error(&ft_run_tool, "--prompt-name applies to texts, not to %s",
                            r->data != NULL ? "-d" : "--image");
    if (r->embed && r->chat)
        ft_tool_usage_error(&ft_run_tool, "give either --embed or --chat");
    if (r->json && r->jsonl)
        ft_tool_usage_error(&ft_run_tool, "give either --json or --jsonl");
    refuse_overwriting_inputs(r);
}

/* --date comes before SOURCE_DATE_EPOCH. */
static void read_environment(ft_run *r)
{
    if (r->chat && r->date == 0 && !ft_date_of_environment(&r->date))
        ft_tool_usage_error(&ft_run_tool, "SOURCE_DATE_EPOCH: expected seconds since 1970");
}

void ft_run_parse(ft_run *run, int argc, char **argv)
{
    size_t capacity = (size_t) argc;
    *run = (ft_run){ .keep = ft_calloc(capacity, sizeof *run->keep),
                     .stop = ft_calloc(capacity, sizeof *run->stop),
                     .stop_id = ft_calloc(capacity, sizeof *run->stop_id),
                     .task = { .top = 5 } };
    if (run->keep == NULL || run->stop == NULL || run->stop_id == NULL) {
        ft_run_free(run);
        exit(ft_tool_error(&ft_run_tool, "no memory"));
    }
    const char *value;
    for (int option; (option = ft_options_next(&ft_run_tool, argc, argv, &value)) != -1;) {
        if (set_search_option(run, option, value))
            run->generation_option = run->search_option = ft_tool_option_name(&ft_run_tool, option);
        else if (set_sampling_option(run, option, value) ||
                 set_generation_option(run, option, value))
            run->generation_option = ft_tool_option_name(&ft_run_tool, option);
        else if (set_single_run_option(run, option, value))
            run->single_run_option = ft_tool_option_name(&ft_run_tool, option);
        else if (set_cache_option(run, option, value))
            run->cache_option = ft_tool_option_name(&ft_run_tool, option);
        else if (option == FT_OPTION_IMAGE)
            ft_tool_image_option(&ft_run_tool, &run->images, value, argc);
        else
            set_common_option(run, option, value);
    }
    ft_tool_image_operands(&ft_run_tool, &run->images, argc, argv);
    run->operand = argv + optind;
    run->num_operands = (size_t) (argc - optind);
    run->session.keep = run->keep;
    run->languages.requires_target = run->data == NULL && !run->has_forced_bos;
    check(run);
    read_environment(run);
}

void ft_run_free(ft_run *run)
{
    free(run->keep);
    ft_image_paths_free(&run->images);
    free(run->stop);
    free(run->stop_id);
}
