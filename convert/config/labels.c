/*
 * labels.c - the head: its kind, number of labels and problem type.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config/config_reader.h"

#include "runtime/base/affix.h"
#include "runtime/mem.h"

#include <string.h>

/* Class ids run from 0 without gaps. */
static bool ids_contiguous(const json_t *names)
{
    char key[24];
    for (size_t i = 0; i < json_object_size(names); i++) {
        snprintf(key, sizeof key, "%zu", i);
        if (json_object_get(names, key) == NULL)
            return false;
    }
    return json_object_size(names) > 0;
}

/* The number of labels: from id2label, else num_labels, else 2. */
static void read_labels(const ft_config_reader *r)
{
    int32_t low, high;
    ft_config_int_bounds(offsetof(ft_config, labels), &low, &high);
    int32_t n;
    const json_t *names = ft_json_get(&r->in, "id2label");
    bool has_number = ft_json_get(&r->in, "num_labels") != NULL;
    if (ft_json_read_optional_int32(&r->in, "num_labels", 1, high, 2, &n) != FT_OK)
        return;
    if (names != NULL && !ids_contiguous(names)) {
        ft_json_fail_value(&r->in, FT_EFORMAT, "id2label", names,
                           "names of the classes \"0\", \"1\", ...");
        return;
    }
    size_t n_names = names == NULL ? (size_t) n : json_object_size(names);
    if (n_names > (size_t) high || (has_number && n_names != (size_t) n))
        ft_json_fail(&r->in, FT_EFORMAT, "id2label has %zu names, but num_labels is %d", n_names,
                     n);
    else
        r->out->config.labels = (int32_t) n_names;
}

/* The last component of "torch.nn.modules.activation.Sigmoid"; NULL where the key is absent. */
static const char *activation_of(const ft_config_reader *r, const char **key, const json_t **value)
{
    const json_t *versions = ft_json_get(&r->in, "sentence_transformers");
    static const char *const legacy_keys[] = { "sbert_ce_default_activation_function",
                                               "sbert_ce_default_activation_fn" };
    *key = "activation_fn";
    *value = json_object_get(versions, *key);
    for (size_t i = 0; *value == NULL && i < FT_COUNT(legacy_keys); i++)
        *value = ft_json_get(&r->in, *key = legacy_keys[i]);
    const char *name = json_string_value(*value);
    const char *dot = name != NULL ? strrchr(name, '.') : NULL;
    return dot != NULL ? dot + 1 : name;
}

/*
 * Without problem_type, a CrossEncoder of sentence-transformers may name the activation of its
 * logits. Several labels with no activation use softmax, as the transformers pipelines do.
 */
static ft_problem problem_from_activation(const ft_config_reader *r)
{
    const char *key;
    const json_t *value;
    int32_t labels = r->out->config.labels;
    const char *name = activation_of(r, &key, &value);
    if (json_is_null(value) || value == NULL)
        return ft_problem_default(labels);
    if (name != NULL && strcmp(name, "Sigmoid") == 0)
        return FT_PROBLEM_MULTI;
    if (name != NULL && strcmp(name, "Identity") == 0)
        return labels == 1 ? FT_PROBLEM_REGRESSION : FT_PROBLEM_SINGLE;
    if (name == NULL || strcmp(name, "Softmax") != 0 || labels == 1)
        ft_config_reject_unknown(r, key, value);
    return ft_problem_default(labels);
}

/*
 * Softmax over a single label would always give 1, so a single label is treated as multi-label
 * (sigmoid).
 */
static void read_problem(const ft_config_reader *r)
{
    ft_config *config = &r->out->config;
    const json_t *word = ft_json_get(&r->in, "problem_type");
    if (word == NULL)
        config->problem_type = problem_from_activation(r);
    else if (!ft_problem_parse(json_string_value(word), &config->problem_type))
        ft_json_fail_value(&r->in, FT_EFORMAT, "problem_type", word,
                           "\"single_label_classification\", \"multi_label_classification\" or "
                           "\"regression\"");
    if (config->labels == 1 && config->problem_type == FT_PROBLEM_SINGLE)
        config->problem_type = FT_PROBLEM_MULTI;
}

/* The head of a class; FT_HEAD_FIRST stands for the classifier of the architecture. */
static const struct {
    const char *suffix;
    ft_head head;
} suffixes[] = {
    { "ForSequenceClassification", FT_HEAD_FIRST },
    { "ForImageClassification", FT_HEAD_FIRST },
    { "ForTokenClassification", FT_HEAD_TOKENS },
    { "ForQuestionAnswering", FT_HEAD_SPAN },
    { "ForMaskedLM", FT_HEAD_LM },
    { "ForPreTraining", FT_HEAD_LM },
};

static ft_head head_of_class(const ft_architecture *architecture, const char *class_name)
{
    for (size_t i = 0; class_name != NULL && i < FT_COUNT(suffixes); i++)
        if (ft_ends_with(class_name, suffixes[i].suffix))
            return suffixes[i].head == FT_HEAD_FIRST ? architecture->head : suffixes[i].head;
    return FT_HEAD_NONE;
}

/* The tensors say whether the decoder of a masked language model is tied after all. */
static void read_lm_head(const ft_config_reader *r)
{
    const json_t *tied = ft_json_get(&r->in, "tie_word_embeddings");
    r->out->config.tied = true;
    if (tied != NULL)
        (void) ft_json_to_bool(&r->in, "tie_word_embeddings", tied, &r->out->config.tied);
}

void ft_config_read_task_head(const ft_config_reader *reader)
{
    ft_config *config = &reader->out->config;
    config->head = head_of_class(reader->architecture, reader->out->class_name);
    config->pooler = config->head == FT_HEAD_POOLED;
    if (config->head == FT_HEAD_LM)
        read_lm_head(reader);
    if (!ft_head_has_labels(config->head))
        return;
    read_labels(reader);
    if (ft_head_is_classifier(config->head))
        read_problem(reader);
}
