/*
 * model_config.c - sizes derived from a configuration, names of its enums, consistency checks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/model_config_members.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- Sizes ---------------------------------------------------------------------------------- */

static int32_t resolve_head_size(int32_t explicit_size, int32_t hidden, int32_t heads)
{
    return explicit_size > 0 || heads < 1 ? explicit_size : hidden / heads;
}

int32_t ft_config_head_size(const ft_config *config)
{
    return resolve_head_size(config->head_size, config->hidden, config->heads);
}

int32_t ft_config_encoder_head_size(const ft_config *config)
{
    return resolve_head_size(config->encoder_head_size, config->hidden, config->encoder_heads);
}

static const struct {
    const char *name;
    size_t field;
} int_factors[] = {
    { "layers", offsetof(ft_config, layers) },
    { "hidden", offsetof(ft_config, hidden) },
    { "heads", offsetof(ft_config, heads) },
    { "ffn", offsetof(ft_config, ffn) },
    { "vocabulary", offsetof(ft_config, vocabulary) },
    { "positions", offsetof(ft_config, positions) },
    { "types", offsetof(ft_config, types) },
    { "labels", offsetof(ft_config, labels) },
    { "kv_heads", offsetof(ft_config, kv_heads) },
    { "encoder_layers", offsetof(ft_config, encoder_layers) },
    { "encoder_heads", offsetof(ft_config, encoder_heads) },
    { "encoder_ffn", offsetof(ft_config, encoder_ffn) },
    { "channels", offsetof(ft_config, channels) },
    { "patch_height", offsetof(ft_config, patch_height) },
    { "patch_width", offsetof(ft_config, patch_width) },
};

static const struct {
    const char *name;
    size_t field;
} bool_factors[] = {
    { "pooler", offsetof(ft_config, pooler) },       { "qkv_bias", offsetof(ft_config, qkv_bias) },
    { "out_bias", offsetof(ft_config, out_bias) },   { "ffn_bias", offsetof(ft_config, ffn_bias) },
    { "head_bias", offsetof(ft_config, head_bias) }, { "qk_norm", offsetof(ft_config, qk_norm) },
    { "tied", offsetof(ft_config, tied) },
};

/* Factors that are not a plain member. */
static int64_t derived_size(const ft_config *config, const char *name)
{
    if (strcmp(name, "head_size") == 0)
        return ft_config_head_size(config);
    if (strcmp(name, "encoder_head_size") == 0)
        return ft_config_encoder_head_size(config);
    if (strcmp(name, "untied") == 0) /* a decoder with an embedding has no LM head */
        return !config->tied && config->embedding == FT_EMBEDDING_NONE;
    if (strcmp(name, "dense_head") == 0)
        return config->head == FT_HEAD_DENSE || config->head == FT_HEAD_RELU;
    if (strcmp(name, "class_head") == 0)
        return ft_head_is_classifier(config->head);
    if (strcmp(name, "token_head") == 0)
        return config->head == FT_HEAD_TOKENS;
    if (strcmp(name, "span_head") == 0)
        return config->head == FT_HEAD_SPAN;
    if (strcmp(name, "lm_head") == 0)
        return config->head == FT_HEAD_LM;
    if (strcmp(name, "lm_untied") == 0)
        return config->head == FT_HEAD_LM && !config->tied;
    if (strcmp(name, "distillation") == 0)
        return config->prefix_tokens == 2;
    return ft_config_dense_factor(config, name);
}

static int64_t named_size(const ft_config *config, const char *name)
{
    const char *base = (const char *) config;
    for (size_t i = 0; i < FT_COUNT(int_factors); i++)
        if (strcmp(int_factors[i].name, name) == 0)
            return *(const int32_t *) (const void *) (base + int_factors[i].field);
    for (size_t i = 0; i < FT_COUNT(bool_factors); i++)
        if (strcmp(bool_factors[i].name, name) == 0)
            return *(const bool *) (const void *) (base + bool_factors[i].field);
    return derived_size(config, name);
}

/* The value of a factor, which is a number or a name; -1: unknown. */
static int64_t parse_factor(const ft_config *config, const char *text, size_t length)
{
    char name[32];
    if (length == 0 || length >= sizeof name)
        return -1;
    memcpy(name, text, length);
    name[length] = '\0';
    return name[0] >= '0' && name[0] <= '9' ? atoi(name) : named_size(config, name);
}

int64_t ft_config_size(const ft_config *config, const char *expression)
{
    int64_t size = 1;
    for (const char *at = expression;; at++) {
        at += strspn(at, " ");
        size_t length = strcspn(at, " *,/");
        int64_t factor = parse_factor(config, at, length);
        if (factor < 0)
            return -1;
        size *= factor;
        at += length;
        at += strspn(at, " ");
        if (*at != '*')
            return size;
    }
}

bool ft_config_is_vision(const ft_config *config)
{
    return config->kind == FT_KIND_VISION;
}

ft_conv ft_config_patches(const ft_config *config)
{
    return (ft_conv){ .channels = config->channels,
                      .height = config->image_height,
                      .width = config->image_width,
                      .kernel = { config->patch_height, config->patch_width },
                      .stride = { config->patch_height, config->patch_width },
                      .dilation = { 1, 1 } };
}

bool ft_config_is_encoder_decoder(const ft_config *config)
{
    return config->kind == FT_KIND_ENCODER_DECODER;
}

bool ft_config_is_decoder(const ft_config *config)
{
    return config->kind == FT_KIND_DECODER || config->kind == FT_KIND_ENCODER_DECODER;
}

/* ---- Names ---------------------------------------------------------------------------------- */

static const char *const heads[] = {
    [FT_HEAD_NONE] = "none", [FT_HEAD_POOLED] = "pooled", [FT_HEAD_DENSE] = "dense",
    [FT_HEAD_RELU] = "relu", [FT_HEAD_FIRST] = "first",   [FT_HEAD_TOKENS] = "tokens",
    [FT_HEAD_SPAN] = "span", [FT_HEAD_LM] = "lm",
};

static const char *const problems[] = {
    [FT_PROBLEM_SINGLE] = "single_label_classification",
    [FT_PROBLEM_MULTI] = "multi_label_classification",
    [FT_PROBLEM_REGRESSION] = "regression",
};

static const char *const ropes[] = {
    [FT_ROPE_NONE] = "none",     [FT_ROPE_DEFAULT] = "default", [FT_ROPE_LINEAR] = "linear",
    [FT_ROPE_LLAMA3] = "llama3", [FT_ROPE_DYNAMIC] = "dynamic",
};

static const char *const sinusoids[] = {
    [FT_SINUSOIDS_NONE] = "none",
    [FT_SINUSOIDS_M2M100] = "closed",
    [FT_SINUSOIDS_MARIAN] = "open",
};

/* Index of a name among `count` names, or -1; `name` may be NULL. */
static int index_of(const char *const *names, int count, const char *name)
{
    for (int i = 0; name != NULL && i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static const char *const kinds[] = {
    [FT_KIND_ENCODER] = "a text encoder",
    [FT_KIND_DECODER] = "a decoder",
    [FT_KIND_ENCODER_DECODER] = "an encoder-decoder",
    [FT_KIND_VISION] = "an image encoder",
};

const char *ft_kind_name(ft_kind kind)
{
    return kinds[kind];
}

const char *ft_head_name(ft_head head)
{
    return heads[head];
}

bool ft_head_parse(const char *name, ft_head *out)
{
    int found = index_of(heads, FT_COUNT(heads), name);
    *out = found < 0 ? FT_HEAD_NONE : (ft_head) found;
    return found >= 0;
}

const char *ft_problem_name(ft_problem problem)
{
    return problems[problem];
}

bool ft_problem_parse(const char *name, ft_problem *out)
{
    int found = index_of(problems, FT_COUNT(problems), name);
    *out = found < 0 ? FT_PROBLEM_SINGLE : (ft_problem) found;
    return found >= 0;
}

bool ft_head_is_classifier(ft_head head)
{
    return head >= FT_HEAD_POOLED && head <= FT_HEAD_FIRST;
}

bool ft_head_has_labels(ft_head head)
{
    return ft_head_is_classifier(head) || head == FT_HEAD_TOKENS;
}

ft_problem ft_problem_default(int32_t labels)
{
    return labels == 1 ? FT_PROBLEM_MULTI : FT_PROBLEM_SINGLE;
}

const char *ft_rope_name(ft_rope rope)
{
    return ropes[rope];
}

bool ft_rope_parse(const char *name, ft_rope *out)
{
    int found = index_of(ropes, FT_COUNT(ropes), name);
    *out = found < 0 ? FT_ROPE_NONE : (ft_rope) found;
    return found >= 0;
}

const char *ft_sinusoids_name(ft_sinusoids kind)
{
    return sinusoids[kind];
}

bool ft_sinusoids_parse(const char *name, ft_sinusoids *out)
{
    int found = index_of(sinusoids, FT_COUNT(sinusoids), name);
    *out = found < 0 ? FT_SINUSOIDS_NONE : (ft_sinusoids) found;
    return found >= 0;
}

ft_rope_use ft_rope_uses(ft_rope rope)
{
    static const ft_rope_use uses[] = {
        [FT_ROPE_LINEAR] = { .factor = true },
        [FT_ROPE_LLAMA3] = { .factor = true, .band = true, .positions = true },
        [FT_ROPE_DYNAMIC] = { .factor = true, .positions = true },
    };
    return uses[rope];
}

/* ---- Consistency checks --------------------------------------------------------------------- */

/* Columns of all heads together; the bound of `hidden`. */
enum { MAX_COLUMNS = 65536 };

/* Elements of a table of sinusoids, 1 GiB: the size of the file does not bound it. */
enum { MAX_SINUSOIDS = 1 << 28 };

/* Elements of an image; the bound keeps array sizes far from overflow. */
enum { MAX_PIXELS = 1 << 26 };

static bool has_rope_members(const ft_config *c)
{
    return c->window != 0 || c->window_first_layer != 0 || c->rope_positions != 0 ||
           c->rope_theta != 0.0 || c->rope_factor != 0.0 || c->rope_low != 0.0 ||
           c->rope_high != 0.0 || c->qkv_bias || c->out_bias || c->ffn_bias || c->qk_norm;
}

static bool has_encoder_decoder_members(const ft_config *c)
{
    return c->sinusoids != FT_SINUSOIDS_NONE || c->encoder_layers != 0 || c->encoder_heads != 0 ||
           c->encoder_ffn != 0 || c->encoder_head_size != 0 || c->decoder_start_id != 0 ||
           c->pad_id != 0 || c->forced_bos_id != 0 || c->forced_eos_id != 0 || c->num_banned != 0 ||
           c->scale_embeddings || c->head_bias;
}

static bool has_decoder_members(const ft_config *c)
{
    return has_rope_members(c) || c->rope != FT_ROPE_NONE || c->kv_heads != 0 || c->rotated ||
           c->tied;
}

/* Check `count` heads of head_size columns; 0: of hidden / count columns. */
static ft_status check_columns(int32_t count, int32_t head_size, int32_t hidden, const char *label,
                               ft_error *err)
{
    if (head_size == 0 && hidden % count != 0)
        return ft_fail(err, FT_EFORMAT, "%s: config: %d heads do not divide %d columns", label,
                       count, hidden);
    if ((int64_t) count * head_size > MAX_COLUMNS)
        return ft_fail(err, FT_EFORMAT,
                       "%s: config: %d heads of %d columns, at most %d columns in total", label,
                       count, head_size, MAX_COLUMNS);
    return FT_OK;
}

static ft_status check_heads(const ft_config *c, const char *label, ft_error *err)
{
    if (c->kv_heads == 0 || c->head_size == 0)
        return ft_fail(err, FT_EFORMAT,
                       "%s: config: %d key/value heads of %d columns, expected at least 1", label,
                       c->kv_heads, c->head_size);
    if (c->heads % c->kv_heads != 0)
        return ft_fail(err, FT_EFORMAT, "%s: config: %d key/value heads do not divide %d heads",
                       label, c->kv_heads, c->heads);
    return check_columns(c->heads, c->head_size, c->hidden, label, err);
}

static ft_status check_window(const ft_config *c, const char *label, ft_error *err)
{
    if (c->window_first_layer >= c->layers)
        return ft_fail(err, FT_EFORMAT,
                       "%s: config: window_from is %d, but there are only %d layers", label,
                       c->window_first_layer, c->layers);
    if (c->window_first_layer > 0 && c->window == 0)
        return ft_fail(err, FT_EFORMAT, "%s: config: window_from is %d, but window is 0", label,
                       c->window_first_layer);
    return FT_OK;
}

/* Fail if a member is present that this scaling does not use, or missing that it needs. */
static ft_status check_member(const ft_config *c, bool found, bool expected,
                              const char *member_name, const char *label, ft_error *err)
{
    if (found == expected)
        return FT_OK;
    return ft_fail(err, FT_EFORMAT, "%s: config: rope %s %s %s", label, ft_rope_name(c->rope),
                   expected ? "without" : "with", member_name);
}

static ft_status check_rope(const ft_config *c, const char *label, ft_error *err)
{
    ft_rope_use use = ft_rope_uses(c->rope);
    FT_TRY(check_member(c, c->rope_theta != 0.0, true, "rope_theta", label, err));
    FT_TRY(check_member(c, c->rope_factor != 0.0, use.factor, "rope_factor", label, err));
    FT_TRY(check_member(c, c->rope_low != 0.0, use.band, "rope_low", label, err));
    FT_TRY(check_member(c, c->rope_high != 0.0, use.band, "rope_high", label, err));
    FT_TRY(check_member(c, c->rope_positions != 0, use.positions, "rope_positions", label, err));
    if (use.band && !(c->rope_low < c->rope_high))
        return ft_fail(err, FT_EFORMAT, "%s: config: rope_low %g is not below rope_high %g", label,
                       c->rope_low, c->rope_high);
    /* RoPE rotates pairs of columns; dynamic scaling divides by head_size - 2. */
    if (c->head_size % 2 != 0 || (c->rope == FT_ROPE_DYNAMIC && c->head_size == 2))
        return ft_fail(err, FT_EFORMAT,
                       "%s: config: heads of %d columns, which rope %s cannot rotate", label,
                       c->head_size, ft_rope_name(c->rope));
    return FT_OK;
}

static ft_status check_decoder(const ft_config *c, const char *label, ft_error *err)
{
    if (c->rope == FT_ROPE_NONE)
        return ft_fail(err, FT_EFORMAT, "%s: config: a decoder without rope", label);
    if (c->rotated && c->embedding != FT_EMBEDDING_NONE)
        return ft_fail(err, FT_EFORMAT, "%s: config: an embedding of a rotated residual stream",
                       label);
    FT_TRY(check_heads(c, label, err));
    FT_TRY(check_rope(c, label, err));
    return check_window(c, label, err);
}

/* Check the layers and heads of both stacks; the decoder has as many key/value heads as heads. */
static ft_status check_heads_and_layers(const ft_config *c, const char *label, ft_error *err)
{
    if (c->encoder_layers < 1 || c->encoder_heads < 1 || c->encoder_ffn < 1)
        return ft_fail(err, FT_EFORMAT,
                       "%s: config: an encoder of %d layers, %d heads and ffn %d, expected at "
                       "least 1 of each",
                       label, c->encoder_layers, c->encoder_heads, c->encoder_ffn);
    FT_TRY(check_columns(c->encoder_heads, c->encoder_head_size, c->hidden, label, err));
    FT_TRY(check_columns(c->heads, c->head_size, c->hidden, label, err));
    if (c->kv_heads != c->heads || c->head_size == 0)
        return ft_fail(err, FT_EFORMAT,
                       "%s: config: %d key/value heads of %d columns, expected %d of %d", label,
                       c->kv_heads, c->head_size, c->heads, ft_config_head_size(c));
    return FT_OK;
}

static ft_status check_sinusoids(const ft_config *c, const char *label, ft_error *err)
{
    if (c->hidden % 2 != 0 || c->hidden < 4)
        return ft_fail(err, FT_EFORMAT,
                       "%s: config: %d columns for sinusoids, expected an even number of at "
                       "least 4",
                       label, c->hidden);
    int32_t low, high;
    ft_config_int_bounds(offsetof(ft_config, positions), &low, &high);
    if (c->positions > high || (int64_t) c->positions * c->hidden > MAX_SINUSOIDS)
        return ft_fail(err, FT_EFORMAT,
                       "%s: config: sinusoids of %d positions and %d columns, at most %d elements",
                       label, c->positions, c->hidden, MAX_SINUSOIDS);
    return FT_OK;
}

static ft_status check_id(const ft_config *c, const char *name, int32_t id, const char *label,
                          ft_error *err)
{
    if (id < c->vocabulary)
        return FT_OK;
    return ft_fail(err, FT_EFORMAT, "%s: config: %s %d is not below the vocabulary size %d", label,
                   name, id, c->vocabulary);
}

/* The padding token has no position, so the decoder must not start with it. */
static ft_status check_ids(const ft_config *c, const char *label, ft_error *err)
{
    FT_TRY(check_id(c, "start_id", c->decoder_start_id, label, err));
    FT_TRY(check_id(c, "pad_id", c->pad_id, label, err));
    FT_TRY(check_id(c, "first_id", c->forced_bos_id, label, err));
    FT_TRY(check_id(c, "last_id", c->forced_eos_id, label, err));
    for (int i = 0; i < c->num_banned; i++)
        FT_TRY(check_id(c, "banned", c->banned[i], label, err));
    if (c->padding_id >= 0 && c->padding_id == c->decoder_start_id)
        return ft_fail(err, FT_EFORMAT,
                       "%s: config: the decoder start token is %d, which is also the padding "
                       "token that positions skip",
                       label, c->decoder_start_id);
    return FT_OK;
}

static ft_status check_encoder_decoder(const ft_config *c, const char *label, ft_error *err)
{
    if (c->sinusoids == FT_SINUSOIDS_NONE)
        return ft_fail(err, FT_EFORMAT, "%s: config: an encoder-decoder without sinusoids", label);
    if (c->rope != FT_ROPE_NONE)
        return ft_fail(err, FT_EFORMAT, "%s: config: both sinusoids and rope", label);
    if (has_rope_members(c) || c->rotated)
        return ft_fail(err, FT_EFORMAT,
                       "%s: config: an encoder-decoder with members of rotary decoders", label);
    FT_TRY(check_heads_and_layers(c, label, err));
    FT_TRY(check_sinusoids(c, label, err));
    return check_ids(c, label, err);
}

static bool has_image_members(const ft_config *c)
{
    return c->channels != 0 || c->image_height != 0 || c->image_width != 0 ||
           c->patch_height != 0 || c->patch_width != 0 || c->prefix_tokens != 0;
}

/* Check the sizes of images and patches, and that there is a position per token. */
static ft_status check_image_sizes(const ft_config *c, const char *label, ft_error *err)
{
    int32_t low, max_positions;
    ft_conv conv = ft_config_patches(c);
    ft_config_int_bounds(offsetof(ft_config, positions), &low, &max_positions);
    if (c->patch_height > c->image_height || c->patch_width > c->image_width)
        return ft_fail(err, FT_EFORMAT,
                       "%s: config: images of %d x %d are smaller than patches of %d x %d", label,
                       c->image_height, c->image_width, c->patch_height, c->patch_width);
    if (ft_conv_image_size(&conv) > MAX_PIXELS || ft_conv_gemm_k(&conv) > MAX_COLUMNS)
        return ft_fail(err, FT_EFORMAT,
                       "%s: config: images of %d x %d x %d, patches of %d x %d: at most %d and %d "
                       "elements",
                       label, c->channels, c->image_height, c->image_width, c->patch_height,
                       c->patch_width, MAX_PIXELS, MAX_COLUMNS);
    if (c->positions > max_positions)
        return ft_fail(err, FT_EFORMAT, "%s: config: %d positions, at most %d", label, c->positions,
                       max_positions);
    if (c->positions != ft_patch_sequence_length(&conv, c->prefix_tokens))
        return ft_fail(err, FT_EFORMAT, "%s: config: %d positions, but images become %lld tokens",
                       label, c->positions,
                       (long long) ft_patch_sequence_length(&conv, c->prefix_tokens));
    return FT_OK;
}

static ft_status check_images(const ft_config *c, const char *label, ft_error *err)
{
    FT_TRY(check_columns(c->heads, c->head_size, c->hidden, label, err));
    if (c->vocabulary != 0 || c->types != 0 || c->position_offset != 0 || c->padding_id != -1 ||
        c->max_seq_length != 0)
        return ft_fail(err, FT_EFORMAT, "%s: config: an image encoder with members of a text model",
                       label);
    return check_image_sizes(c, label, err);
}

/* The name of another kind of model whose members are set, or NULL. */
static const char *foreign_kind(const ft_config *c)
{
    ft_config plain = *c;
    if (c->kind == FT_KIND_VISION)
        plain.qkv_bias = false; /* the one decoder member that vision models share */
    if (c->head == FT_HEAD_LM)
        plain.tied = false; /* the one that masked language models share */
    if (c->kind != FT_KIND_VISION && has_image_members(c))
        return kinds[FT_KIND_VISION];
    if (c->kind != FT_KIND_ENCODER_DECODER && has_encoder_decoder_members(c))
        return kinds[FT_KIND_ENCODER_DECODER];
    return !ft_config_is_decoder(c) && has_decoder_members(&plain) ? kinds[FT_KIND_DECODER] : NULL;
}

static ft_status check_kind(const ft_config *c, const char *label, ft_error *err)
{
    const char *foreign = foreign_kind(c);
    if (foreign != NULL)
        return ft_fail(err, FT_EFORMAT, "%s: config: %s with members of %s", label, kinds[c->kind],
                       foreign);
    switch (c->kind) {
    case FT_KIND_DECODER:
        return check_decoder(c, label, err);
    case FT_KIND_ENCODER_DECODER:
        return check_encoder_decoder(c, label, err);
    case FT_KIND_VISION:
        return check_images(c, label, err);
    case FT_KIND_ENCODER:
        break;
    }
    return check_columns(c->heads, c->head_size, c->hidden, label, err);
}

ft_status ft_config_check(const ft_config *config, const char *label, ft_error *err)
{
    FT_TRY(check_kind(config, label, err));
    if (config->position_offset >= config->positions)
        return ft_fail(err, FT_EFORMAT, "%s: config: position offset %d, but only %d positions",
                       label, config->position_offset, config->positions);
    /* With an offset, the position of a padding token is its id. */
    if (config->position_offset > 0 && config->padding_id >= config->positions)
        return ft_fail(err, FT_EFORMAT, "%s: config: padding id %d has no position, there are %d",
                       label, config->padding_id, config->positions);
    if ((config->labels > 0) != ft_head_has_labels(config->head))
        return ft_fail(err, FT_EFORMAT, "%s: config: %d labels, but head %s", label, config->labels,
                       heads[config->head]);
    if (config->labels == 1 && config->problem_type == FT_PROBLEM_SINGLE &&
        config->head != FT_HEAD_TOKENS)
        return ft_fail(err, FT_EFORMAT, "%s: config: problem_type %s, but there is one label",
                       label, problems[config->problem_type]);
    if (config->head > FT_HEAD_FIRST && config->kind != FT_KIND_ENCODER)
        return ft_fail(err, FT_EFORMAT, "%s: config: %s with head %s", label, kinds[config->kind],
                       heads[config->head]);
    if ((config->head == FT_HEAD_FIRST) != (ft_config_is_vision(config) && config->labels > 0))
        return ft_fail(err, FT_EFORMAT, "%s: config: %s with head %s", label,
                       ft_config_is_vision(config) ? "images" : "texts", heads[config->head]);
    if (config->head == FT_HEAD_POOLED && !config->pooler)
        return ft_fail(err, FT_EFORMAT, "%s: config: the head needs a pooler", label);
    return ft_config_check_embedding(config, label, err);
}
