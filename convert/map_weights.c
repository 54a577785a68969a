/*
 * map_weights.c - look up every weight of the family's table, check it, and list the unused
 * tensors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/map_weights.h"

#include "convert/tied_weights.h"
#include "runtime/base/affix.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <stdlib.h>
#include <string.h>

#define HEAD_BIAS "head.bias"
#define DENSE_LAYER "embedding.dense." /* and its number */

typedef struct {
    ft_conversion *conversion;
    const char *label;
    const ft_convert_options *options;
    const char *prefix;                  /* "bert.", or "" where this checkpoint has no prefix */
    char tied_head[FT_SOURCE_NAME_SIZE]; /* an output head tied to the token embedding, or "" */
    char words[128];                     /* the token embedding's name in this checkpoint, or "" */
    bool splits_head;                    /* a tied head gets its own weight */
    ft_messages *problems;
} weight_mapper;

/* ---- Names ---------------------------------------------------------------------------------- */

static const ft_architecture *architecture_of(const ft_conversion *conversion)
{
    return conversion->hf.architecture;
}

/* Old checkpoints name the weight of a layer norm gamma and its bias beta. */
static bool to_legacy_name(char name[FT_SOURCE_NAME_SIZE])
{
    char *norm = strstr(name, "LayerNorm.");
    if (norm == NULL)
        return false;
    char *last = norm + strlen("LayerNorm.");
    strcpy(last, strcmp(last, "weight") == 0 ? "gamma" : "beta"); /* not longer than the old name */
    return true;
}

/* The tensor with one of the names of a source, of `length` bytes, as in find_tensor(). */
static const ft_tensor *find_named(const ft_checkpoint *checkpoint, const char *source, int length,
                                   const char *prefix, char name[FT_SOURCE_NAME_SIZE])
{
    bool prefixed = source[0] == '~';
    snprintf(name, FT_SOURCE_NAME_SIZE, "%s%.*s", prefixed ? prefix : "", length - prefixed,
             source + prefixed);
    const ft_tensor *found = ft_checkpoint_find(checkpoint, name);
    char legacy[FT_SOURCE_NAME_SIZE];
    memcpy(legacy, name, sizeof legacy);
    if (found == NULL && to_legacy_name(legacy)) {
        found = ft_checkpoint_find(checkpoint, legacy);
        if (found != NULL)
            memcpy(name, legacy, sizeof legacy);
    }
    return found;
}

/*
 * Write the checkpoint's name of a weight into `name`, the last one if it has none of them, and
 * return that tensor, or NULL.
 */
static const ft_tensor *find_tensor(const ft_checkpoint *checkpoint, const ft_weight_spec *spec,
                                    const char *prefix, char name[FT_SOURCE_NAME_SIZE])
{
    const ft_tensor *found = NULL;
    const char *source = spec->source;
    do {
        source += *source == '|';
        int length = (int) strcspn(source, "|");
        found = find_named(checkpoint, source, length, prefix, name);
        source += length;
    } while (found == NULL && *source == '|');
    return found;
}

static size_t count_present(const ft_checkpoint *checkpoint, const ft_weight_spec *spec,
                            size_t specs, const char *prefix)
{
    size_t n = 0;
    char name[FT_SOURCE_NAME_SIZE];
    for (size_t i = 0; i < specs; i++)
        n += find_tensor(checkpoint, &spec[i], prefix, name) != NULL;
    return n;
}

/*
 * Base models are saved without a prefix, models with a task head with one: the whole checkpoint
 * uses one or the other.
 */
static const char *choose_prefix(const ft_conversion *conversion, const ft_weight_spec *spec,
                                 size_t specs)
{
    const char *prefix = architecture_of(conversion)->prefix;
    if (prefix == NULL)
        return "";
    size_t with = count_present(conversion->checkpoint, spec, specs, prefix);
    return with > count_present(conversion->checkpoint, spec, specs, "") ? prefix : "";
}

/* ---- Weights -------------------------------------------------------------------------------- */

/* Marian stores the bias of its logits with a leading batch dimension of 1. */
static bool has_shape(const ft_tensor *tensor, const ft_weight_spec *spec)
{
    if (tensor->ndim == 2 && strcmp(spec->name, HEAD_BIAS) == 0)
        return tensor->dim[0] == 1 && tensor->dim[1] == spec->dim[0];
    return tensor->ndim == spec->stored_ndim &&
           memcmp(tensor->dim, spec->stored, (size_t) tensor->ndim * sizeof tensor->dim[0]) == 0;
}

/* Check one weight and report a problem; true when it is fine. */
static bool check_weight(const weight_mapper *f, const ft_mapped_weight *weight)
{
    const ft_weight_spec *spec = &weight->spec;
    const ft_tensor *tensor = weight->tensor;
    char found[FT_SHAPE_TEXT], expected[FT_SHAPE_TEXT];
    ft_shape_text(expected, spec->stored_ndim, spec->stored);
    if (tensor == NULL) {
        ft_messages_add(f->problems, FT_EFORMAT, "%s: %s (%s): missing, expected shape %s",
                        f->label, weight->source, spec->name, expected);
        return false;
    }
    const char *file = ft_checkpoint_file_of(weight->checkpoint, weight->source);
    if (!has_shape(tensor, spec)) {
        ft_messages_add(f->problems, FT_ESHAPE, "%s: %s (%s): shape %s, expected %s", file,
                        weight->source, spec->name, ft_shape_text(found, tensor->ndim, tensor->dim),
                        expected);
        return false;
    }
    if (!ft_dtype_convert_supports(tensor->dtype)) {
        ft_messages_add(f->problems, FT_EUNSUPPORTED,
                        "%s: %s (%s): dtype %s, expected F32, F16, BF16 or F64", file,
                        weight->source, spec->name, ft_dtype_name(tensor->dtype));
        return false;
    }
    return true;
}

static ft_dtype choose_dtype(const weight_mapper *f, const ft_mapped_weight *weight)
{
    if (weight->spec.role == FT_ROLE_VECTOR)
        return FT_F32;
    if (f->options->cast)
        return f->options->dtype;
    if (f->options->rotate && weight->tensor->dtype == FT_BF16)
        return FT_F16; /* sums of many values need more bits than BF16 has */
    return weight->tensor->dtype == FT_F64 ? FT_F32 : weight->tensor->dtype;
}

/* A Dense layer of sentence-transformers has a checkpoint of its own. */
static const ft_checkpoint *checkpoint_of(const ft_conversion *conversion,
                                          const ft_weight_spec *spec)
{
    return ft_starts_with(spec->name, DENSE_LAYER)
               ? conversion->dense[atoi(spec->name + strlen(DENSE_LAYER))]
               : conversion->checkpoint;
}

static void map_weight(const weight_mapper *f, ft_mapped_weight *weight, const ft_weight_spec *spec)
{
    ft_conversion *conversion = f->conversion;
    weight->spec = *spec;
    weight->checkpoint = checkpoint_of(conversion, spec);
    weight->tensor = find_tensor(weight->checkpoint, spec, f->prefix, weight->source);
    if (!check_weight(f, weight))
        return;
    weight->dtype = choose_dtype(f, weight);
    /* Shapes are bounded by the configuration checks, so these products do not overflow. */
    weight->bytes = ft_tensor_numel(weight->tensor) * ft_dtype_size(weight->dtype);
    conversion->bytes += weight->bytes;
}

/* ---- Optional weights ----------------------------------------------------------------------- */

/* Whether the checkpoint has a weight whose name starts with `name_prefix`. */
static bool has_weight(const ft_conversion *conversion, const ft_weight_spec *spec, size_t specs,
                       const char *prefix, const char *name_prefix)
{
    char name[FT_SOURCE_NAME_SIZE];
    for (size_t i = 0; i < specs; i++)
        if (ft_starts_with(spec[i].name, name_prefix) && spec[i].source[0] != '\0' &&
            find_tensor(conversion->checkpoint, &spec[i], prefix, name) != NULL)
            return true;
    return false;
}

/* ---- The head of a decoder ------------------------------------------------------------------ */

static const ft_weight_spec *find_spec(const ft_weight_spec *spec, size_t specs, const char *name)
{
    for (size_t i = 0; i < specs; i++)
        if (strcmp(spec[i].name, name) == 0)
            return &spec[i];
    return NULL;
}

/*
 * Whether the output head is tied to the token embedding, as config.json says. Some checkpoints say
 * so and store a head nevertheless: with equal values or with different ones. transformers 5 uses a
 * stored head; older versions replaced it by the embedding.
 */
static bool is_tied(weight_mapper *f, const ft_weight_spec *spec, size_t specs)
{
    const ft_checkpoint *checkpoint = f->conversion->checkpoint;
    const ft_weight_spec *decoder_head = find_spec(spec, specs, "head.weight");
    const ft_weight_spec *head =
        decoder_head != NULL ? decoder_head : find_spec(spec, specs, "lm.decoder.weight");
    const ft_weight_spec *word = find_spec(spec, specs, "embed.word");
    char name[FT_SOURCE_NAME_SIZE], table[FT_SOURCE_NAME_SIZE];
    if (head == NULL || word == NULL)
        return true;
    const ft_tensor *own = find_tensor(checkpoint, head, f->prefix, name);
    const ft_tensor *shared = find_tensor(checkpoint, word, f->prefix, table);
    if (own == NULL || shared == NULL)
        return true;
    if (ft_tensors_equal(checkpoint, own, shared)) {
        memcpy(f->tied_head, name, sizeof f->tied_head);
        return true;
    }
    ft_messages_add(&f->conversion->notes, FT_OK,
                    "%s: differs from %s although tie_word_embeddings is true; it is used, as by "
                    "transformers 5",
                    name, table);
    return false;
}

/* ---- Unused tensors ------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Buffers that the model computes itself, whatever is stored; some versions save them. */
static bool is_computed_buffer(const ft_named_tensor *named)
{
    const char *dot = strrchr(named->name, '.');
    const char *last = dot == NULL ? named->name : dot + 1;
    if (ft_dtype_convert_supports(named->tensor.dtype))
        return ft_ends_with(named->name, ".rotary_emb.inv_freq") ||
               ft_ends_with(named->name, ".embed_positions.weights");
    return strcmp(last, "position_ids") == 0 || strcmp(last, "token_type_ids") == 0;
}

static void list_unused(const weight_mapper *f)
{
    ft_conversion *conversion = f->conversion;
    size_t count = ft_checkpoint_count(conversion->checkpoint);
    const char **used = ft_calloc(conversion->n_weights, sizeof *used);
    conversion->unused = ft_calloc(count, sizeof *conversion->unused);
    if (used == NULL || conversion->unused == NULL) {
        free(used);
        ft_messages_add(f->problems, FT_ENOMEM, "%s: no memory for %zu names", f->label, count);
        return;
    }
    for (size_t i = 0; i < conversion->n_weights; i++)
        used[i] = conversion->weight[i].source;
    qsort(used, conversion->n_weights, sizeof *used, compare_names);
    for (size_t i = 0; i < count; i++) {
        const ft_named_tensor *named = ft_checkpoint_at(conversion->checkpoint, i);
        if (!is_computed_buffer(named) && strcmp(named->name, f->tied_head) != 0 &&
            !ft_is_tied_or_computed(architecture_of(conversion), named->name) &&
            bsearch(&named->name, used, conversion->n_weights, sizeof *used, compare_names) == NULL)
            conversion->unused[conversion->n_unused++] = named->name;
    }
    free(used);
}

/* ---- Mapping -------------------------------------------------------------------------------- */

/* Use the name that this checkpoint has for the token embedding. */
static void resolve_token_embedding(weight_mapper *f, ft_weight_spec *spec, size_t specs)
{
    const ft_conversion *conversion = f->conversion;
    for (size_t i = 0; i < specs; i++)
        if (strcmp(spec[i].name, "embed.word") == 0 &&
            architecture_of(conversion)->tied_embeddings != NULL) {
            if (f->words[0] == '\0')
                snprintf(f->words, sizeof f->words, "%s",
                         ft_tied_embedding_find(conversion->checkpoint, architecture_of(conversion),
                                                spec[i].source, f->problems));
            snprintf(spec[i].source, sizeof spec[i].source, "%s", f->words);
        }
}

/* A rotated model has no tied head: the head alone takes the weight of the final norm. */
static void split_head(weight_mapper *f)
{
    ft_conversion *conversion = f->conversion;
    f->splits_head = conversion->hf.config.rotated && conversion->hf.config.tied;
    if (!f->splits_head)
        return;
    conversion->hf.config.tied = false;
    ft_messages_add(&conversion->notes, FT_OK,
                    "--rotate: the tied head gets a weight of its own, as only it takes the weight "
                    "of the final norm");
}

/* It is made from the token embedding. */
static void name_split_head(const weight_mapper *f, ft_weight_spec *spec, size_t specs)
{
    const ft_weight_spec *word = find_spec(spec, specs, "embed.word");
    for (size_t i = 0; i < specs && f->splits_head; i++)
        if (strcmp(spec[i].name, "head.weight") == 0)
            memcpy(spec[i].source, word->source, sizeof spec[i].source);
}

/* torch.nn.Linear is the member "linear" of a Dense layer. */
static void name_dense_layers(ft_weight_spec *spec, size_t specs)
{
    for (size_t i = 0; i < specs; i++)
        if (ft_starts_with(spec[i].name, DENSE_LAYER))
            snprintf(spec[i].source, sizeof spec[i].source, "linear%s", strrchr(spec[i].name, '.'));
}

/* Another tensor of a Dense layer would change what it computes. */
static void check_dense_tensors(const weight_mapper *f)
{
    const ft_config *config = &f->conversion->hf.config;
    for (int i = 0; i < config->num_dense; i++) {
        const ft_checkpoint *dense = f->conversion->dense[i];
        size_t found = ft_checkpoint_count(dense), expected = config->dense[i].bias ? 2 : 1;
        if (found > expected)
            ft_messages_add(
                f->problems, FT_EUNSUPPORTED, "%s: %zu tensors, expected linear.weight%s only",
                ft_checkpoint_folder(dense), found, expected == 2 ? " and linear.bias" : "");
    }
}

static bool expand_weight_table(weight_mapper *f, ft_weight_spec **spec, size_t *count)
{
    const ft_hf_model *hf = &f->conversion->hf;
    ft_error err;
    if (ft_family_weights(hf->family, hf->architecture, &hf->config, spec, count, &err) == FT_OK) {
        resolve_token_embedding(f, *spec, *count);
        name_split_head(f, *spec, *count);
        name_dense_layers(*spec, *count);
        return true;
    }
    ft_messages_add_error(f->problems, &err);
    return false;
}

/* Expand the table with all optional weights first, to see which of them are present. */
static bool resolve_optional_weights(weight_mapper *f)
{
    ft_conversion *conversion = f->conversion;
    ft_config *config = &conversion->hf.config;
    bool pooler_required = config->pooler, tied = config->tied;
    ft_weight_spec *spec;
    size_t count;
    config->pooler = true;
    config->tied = false;
    if (!expand_weight_table(f, &spec, &count))
        return false;
    f->prefix = choose_prefix(conversion, spec, count);
    config->pooler = pooler_required || has_weight(conversion, spec, count, f->prefix, "pooler.");
    config->head_bias = has_weight(conversion, spec, count, f->prefix, HEAD_BIAS);
    config->tied = tied && is_tied(f, spec, count);
    split_head(f);
    free(spec);
    return true;
}

void ft_conversion_map_weights(ft_conversion *conversion, const char *label,
                               const ft_convert_options *options, ft_messages *problems)
{
    weight_mapper f = { .conversion = conversion,
                        .label = label,
                        .options = options,
                        .prefix = "",
                        .problems = problems };
    ft_weight_spec *spec;
    size_t count;
    for (int i = 0; i < conversion->hf.config.num_dense; i++)
        if (conversion->dense[i] == NULL) /* a problem already */
            return;
    if (!resolve_optional_weights(&f) || !expand_weight_table(&f, &spec, &count))
        return;
    conversion->weight = ft_calloc(count, sizeof *conversion->weight);
    if (conversion->weight == NULL) {
        ft_messages_add(problems, FT_ENOMEM, "%s: no memory for %zu weights", label, count);
    } else {
        conversion->n_weights = count;
        for (size_t i = 0; i < count; i++)
            map_weight(&f, &conversion->weight[i], &spec[i]);
        ft_stored_positions_check(conversion->checkpoint, architecture_of(conversion),
                                  &conversion->hf.config, problems);
        check_dense_tensors(&f);
        list_unused(&f);
    }
    free(spec);
}
