/*
 * family-t.c - families: names and shapes of weights in every architecture, configurations as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/families.h"
#include "runtime/mem.h"
#include "tests/lib/models/bert.h"
#include "tests/lib/models/family.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

/* ---- Weights ------------------------------------------------------------------------------ */

/* One layer; all sizes differ, so that a test detects a wrong one. */
static ft_config one_layer(void)
{
    ft_config config = test_bert_config(8, 2, 12);
    config.layers = 1;
    return config;
}

static void test_weights(const ft_architecture *architecture, const ft_config *config,
                         const char *expected, const char *sentence)
{
    char *text = weights_text(&ft_family_bert, architecture, config);
    is_str(text, expected, "%s", sentence);
    free(text);
}

static void test_bert_names(void)
{
    ft_config config = one_layer();
    test_weights(&ft_architecture_bert, &config,
                 "embed.word table [50, 8] ~embeddings.word_embeddings.weight\n"
                 "embed.position table [300, 8] ~embeddings.position_embeddings.weight\n"
                 "embed.type table [2, 8] ~embeddings.token_type_embeddings.weight\n"
                 "embed.norm.weight vector [8] ~embeddings.LayerNorm.weight\n"
                 "embed.norm.bias vector [8] ~embeddings.LayerNorm.bias\n"
                 "layer.0.attn.q.weight linear [8, 8] "
                 "~encoder.layer.0.attention.self.query.weight\n"
                 "layer.0.attn.q.bias vector [8] ~encoder.layer.0.attention.self.query.bias\n"
                 "layer.0.attn.k.weight linear [8, 8] ~encoder.layer.0.attention.self.key.weight\n"
                 "layer.0.attn.k.bias vector [8] ~encoder.layer.0.attention.self.key.bias\n"
                 "layer.0.attn.v.weight linear [8, 8] "
                 "~encoder.layer.0.attention.self.value.weight\n"
                 "layer.0.attn.v.bias vector [8] ~encoder.layer.0.attention.self.value.bias\n"
                 "layer.0.attn.out.weight linear [8, 8] "
                 "~encoder.layer.0.attention.output.dense.weight\n"
                 "layer.0.attn.out.bias vector [8] ~encoder.layer.0.attention.output.dense.bias\n"
                 "layer.0.attn.norm.weight vector [8] "
                 "~encoder.layer.0.attention.output.LayerNorm.weight\n"
                 "layer.0.attn.norm.bias vector [8] "
                 "~encoder.layer.0.attention.output.LayerNorm.bias\n"
                 "layer.0.ffn.up.weight linear [12, 8] "
                 "~encoder.layer.0.intermediate.dense.weight\n"
                 "layer.0.ffn.up.bias vector [12] ~encoder.layer.0.intermediate.dense.bias\n"
                 "layer.0.ffn.down.weight linear [8, 12] ~encoder.layer.0.output.dense.weight\n"
                 "layer.0.ffn.down.bias vector [8] ~encoder.layer.0.output.dense.bias\n"
                 "layer.0.ffn.norm.weight vector [8] ~encoder.layer.0.output.LayerNorm.weight\n"
                 "layer.0.ffn.norm.bias vector [8] ~encoder.layer.0.output.LayerNorm.bias\n"
                 "pooler.weight dense [8, 8] ~pooler.dense.weight\n"
                 "pooler.bias vector [8] ~pooler.dense.bias\n"
                 "classifier.weight dense [3, 8] classifier.weight\n"
                 "classifier.bias vector [3] classifier.bias\n",
                 "BERT has the expected weights, with a pooler below the classifier");
}

static void test_roberta_names(void)
{
    ft_config config = one_layer();
    config.head = FT_HEAD_DENSE;
    config.pooler = false;
    char *text = weights_text(&ft_family_bert, &ft_architecture_roberta, &config);
    has(text, "\nlayer.0.attn.q.weight linear [8, 8] ~encoder.layer.0.attention.self.query.weight",
        "RoBERTa layers have the tensor names of BERT");
    const char *top = strstr(text, "head.dense");
    is_str(top == NULL ? "" : top,
           "head.dense.weight dense [8, 8] classifier.dense.weight\n"
           "head.dense.bias vector [8] classifier.dense.bias\n"
           "classifier.weight dense [3, 8] classifier.out_proj.weight\n"
           "classifier.bias vector [3] classifier.out_proj.bias\n",
           "the RoBERTa classifier has its own dense layer and no pooler");
    free(text);
}

static void test_distilbert_names(void)
{
    ft_config config = one_layer();
    config.head = FT_HEAD_RELU;
    config.pooler = false;
    config.types = 0;
    test_weights(&ft_architecture_distilbert, &config,
                 "embed.word table [50, 8] ~embeddings.word_embeddings.weight\n"
                 "embed.position table [300, 8] ~embeddings.position_embeddings.weight\n"
                 "embed.norm.weight vector [8] ~embeddings.LayerNorm.weight\n"
                 "embed.norm.bias vector [8] ~embeddings.LayerNorm.bias\n"
                 "layer.0.attn.q.weight linear [8, 8] ~transformer.layer.0.attention.q_lin.weight\n"
                 "layer.0.attn.q.bias vector [8] ~transformer.layer.0.attention.q_lin.bias\n"
                 "layer.0.attn.k.weight linear [8, 8] ~transformer.layer.0.attention.k_lin.weight\n"
                 "layer.0.attn.k.bias vector [8] ~transformer.layer.0.attention.k_lin.bias\n"
                 "layer.0.attn.v.weight linear [8, 8] ~transformer.layer.0.attention.v_lin.weight\n"
                 "layer.0.attn.v.bias vector [8] ~transformer.layer.0.attention.v_lin.bias\n"
                 "layer.0.attn.out.weight linear [8, 8] "
                 "~transformer.layer.0.attention.out_lin.weight\n"
                 "layer.0.attn.out.bias vector [8] ~transformer.layer.0.attention.out_lin.bias\n"
                 "layer.0.attn.norm.weight vector [8] ~transformer.layer.0.sa_layer_norm.weight\n"
                 "layer.0.attn.norm.bias vector [8] ~transformer.layer.0.sa_layer_norm.bias\n"
                 "layer.0.ffn.up.weight linear [12, 8] ~transformer.layer.0.ffn.lin1.weight\n"
                 "layer.0.ffn.up.bias vector [12] ~transformer.layer.0.ffn.lin1.bias\n"
                 "layer.0.ffn.down.weight linear [8, 12] ~transformer.layer.0.ffn.lin2.weight\n"
                 "layer.0.ffn.down.bias vector [8] ~transformer.layer.0.ffn.lin2.bias\n"
                 "layer.0.ffn.norm.weight vector [8] "
                 "~transformer.layer.0.output_layer_norm.weight\n"
                 "layer.0.ffn.norm.bias vector [8] ~transformer.layer.0.output_layer_norm.bias\n"
                 "head.dense.weight dense [8, 8] pre_classifier.weight\n"
                 "head.dense.bias vector [8] pre_classifier.bias\n"
                 "classifier.weight dense [3, 8] classifier.weight\n"
                 "classifier.bias vector [3] classifier.bias\n",
                 "DistilBERT has the expected weights, without token types and with a dense layer "
                 "below the classifier");
}

static void test_optional(void)
{
    ft_config config = one_layer();
    config.types = config.labels = 0;
    config.pooler = false;
    config.head = FT_HEAD_NONE;
    char *text = weights_text(&ft_family_bert, &ft_architecture_bert, &config);
    ok(strstr(text, "type") == NULL && strstr(text, "pooler") == NULL &&
           strstr(text, "classifier") == NULL,
       "parts that the configuration omits have no weights");
    free(text);
    text = weights_text(&ft_family_bert, NULL, &config);
    ok(strchr(text, '~') == NULL, "weights without an HF architecture have no checkpoint names");
    free(text);

    config.layers = 12;
    text = weights_text(&ft_family_bert, &ft_architecture_bert, &config);
    const char *tenth = strstr(text, "layer.10.attn.q.weight"),
               *last = strstr(text, "layer.11.ffn.norm.bias");
    ok(tenth != NULL && last != NULL && tenth < last && last[23] == 'v' &&
           strchr(last, '\n')[1] == '\0',
       "layers are listed in order up to the last");
    free(text);
}

/* Heads whose columns are not those of the model, and that do not divide them. */
static void test_head_size(void)
{
    ft_config config = one_layer();
    config.heads = 3;
    config.head_size = 5;
    char *text = weights_text(&ft_family_bert, NULL, &config);
    has(text, "layer.0.attn.q.weight linear [15, 8]\nlayer.0.attn.q.bias vector [15]\n",
        "the query weight has one row for each column of the heads");
    has(text, "layer.0.attn.out.weight linear [8, 15]\n",
        "the attention output weight has one column for each column of the heads");
    free(text);
    ok(config_survives(&config), "a separate head size survives a JSON round trip");
    config_refused(&config, "{\"head_size\": null}", "3 heads do not divide 8 columns");
    config_refused(&config, "{\"head_size\": 30000}",
                   "3 heads of 30000 columns, at most 65536 columns in total");
}

static void test_long_names(void)
{
    static const char name[] = "a.name.that.is.longer.than.the.sixty-three.characters.of.a.name";
    const ft_weight_rule rule = { name, "hidden", .role = FT_ROLE_VECTOR, .bias = FT_ALWAYS };
    const ft_family family = { .name = "long", .weight = &rule, .nweight = 1 };
    ft_config config = one_layer();
    ft_weight_spec *spec;
    size_t count;
    ft_error err;
    is_int(ft_family_weights(&family, NULL, &config, &spec, &count, &err), FT_ELIMIT,
           "ft_family_weights() refuses a weight name that is too long");
    has(err.text, "long: a weight's name is too long",
        "the error names the family and states the reason");
    ok(spec == NULL && count == 0, "ft_family_weights() returns no weights when it fails");
}

/* ---- The registry ------------------------------------------------------------------------- */

static void test_registry(void)
{
    static const char *const types[][2] = {
        { "bert", "bert" },      { "bert", "roberta" },  { "bert", "distilbert" },
        { "llama", "llama" },    { "llama", "mistral" }, { "llama", "qwen2" },
        { "m2m100", "m2m_100" }, { "marian", "marian" },
    };
    int found = 0;
    for (int i = 0; i < 8; i++) {
        const ft_architecture *architecture = ft_architecture_find(types[i][1]);
        found += architecture != NULL && architecture->family == ft_family_find(types[i][0]);
    }
    is_int(found, 8, "every model_type is found with its family");
    ok(ft_architecture_find("gpt2") == NULL && ft_family_find("gpt2") == NULL,
       "an unknown model_type is not found");

    int lost = 0;
    ft_role parsed;
    for (int role = FT_ROLE_LINEAR; role <= FT_ROLE_VECTOR; role++)
        lost += !ft_role_parse(ft_role_name((ft_role) role), &parsed) || (int) parsed != role;
    is_int(lost, 0, "every role is found by its name");
    ok(!ft_role_parse("matrix", &parsed), "an unknown role is not found");
}

static bool stores(const ft_config_rule *rule)
{
    return rule->kind != FT_KEY_FIXED && rule->kind != FT_KEY_IGNORED && rule->kind != FT_KEY_ALIAS;
}

/* A twin's other key is stored in the field that the twin is compared with. */
static bool has_twin(const ft_architecture *architecture, const ft_config_rule *twin)
{
    const ft_config_rule *rule;
    for (size_t i = 0; (rule = ft_architecture_rule(architecture, i)) != NULL; i++)
        if (stores(rule) && rule->field == twin->field && strcmp(rule->key, twin->must) == 0)
            return true;
    return false;
}

/* Tables are data: whoever reads them must be able to. */
static void test_rules(const ft_architecture *architecture)
{
    int unreadable = 0, outside = 0, twice = 0;
    const ft_config_rule *rule;
    for (size_t i = 0; (rule = ft_architecture_rule(architecture, i)) != NULL; i++) {
        json_t *json = rule->must == NULL ? NULL : json_loads(rule->must, JSON_DECODE_ANY, NULL);
        unreadable += rule->kind == FT_KEY_ALIAS ? !has_twin(architecture, rule)
                                                 : rule->must != NULL && json == NULL;
        unreadable += rule->kind == FT_KEY_FIXED && rule->must == NULL;
        outside += rule->field >= sizeof(ft_config);
        for (size_t j = 0; j < i; j++) {
            const ft_config_rule *other = ft_architecture_rule(architecture, j);
            twice += stores(rule) && stores(other) && rule->field == other->field &&
                     strcmp(rule->key, other->key) == 0;
        }
        json_decref(json);
    }
    ok(unreadable == 0 && outside == 0 && twice == 0,
       "%s: every default is JSON, every field lies in the configuration, and no key is stored "
       "twice",
       architecture->model_type);
}

/* Whether the products of a shape, a bias or a condition are known; NULL has none. */
static bool is_known(const char *text)
{
    const ft_config config = { .layers = 1 };
    while (text != NULL) {
        if (ft_config_size(&config, text) < 0)
            return false;
        text = strpbrk(text, ",/");
        if (text != NULL)
            text++;
    }
    return true;
}

/* Whether the family has a rule of that name. */
static bool is_weight(const ft_family *family, const char *name)
{
    for (size_t i = 0; i < family->nweight; i++)
        if (strcmp(family->weight[i].name, name) == 0)
            return true;
    return false;
}

/* Names of a base are those of another architecture too: each of them is tested as its own. */
static void test_sources(const ft_architecture *architecture)
{
    const ft_family *family = architecture->family;
    int strangers = 0, unknown = 0;
    for (const ft_architecture *a = architecture; a != NULL; a = a->base)
        for (size_t i = 0; i < a->nsource; i++)
            strangers += !is_weight(family, a->source[i].name);
    for (size_t i = 0; i < family->nweight; i++)
        unknown += !is_known(family->weight[i].shape) || !is_known(family->weight[i].bias) ||
                   !is_known(family->weight[i].when);
    ok(strangers == 0 && unknown == 0,
       "%s: every checkpoint name belongs to a weight and every factor of a shape is known",
       architecture->model_type);
}

static void test_all_rules(void)
{
    const ft_architecture *architecture;
    for (size_t i = 0; (architecture = ft_architecture_at(i)) != NULL; i++) {
        test_rules(architecture);
        test_sources(architecture);
    }
}

static void test_base(void)
{
    static const ft_config_rule common[] = { { "a", FT_KEY_IGNORED, 0, NULL },
                                             { "b", FT_KEY_IGNORED, 0, NULL },
                                             { "b", FT_KEY_FIXED, 0, "1" } };
    static const ft_config_rule own[] = { { "b", FT_KEY_FIXED, 0, "2" },
                                          { "c", FT_KEY_IGNORED, 0, NULL } };
    static const ft_weight_source names[] = { { "x", "base.x" }, { "y", "base.y" } };
    static const ft_weight_source others[] = { { "y", "own.y" }, { "x", NULL } };
    const ft_architecture base = { .rule = common, .nrule = 3, .source = names, .nsource = 2 };
    const ft_architecture kin = {
        .base = &base, .rule = own, .nrule = 2, .source = others, .nsource = 2
    };
    char found[64] = "";
    const ft_config_rule *rule;
    for (size_t i = 0; (rule = ft_architecture_rule(&kin, i)) != NULL; i++)
        sprintf(found + strlen(found), "%s%s ", rule->key, rule->must == NULL ? "" : rule->must);
    is_str(found, "a b2 c ", "a rule for a key replaces all rules of the base for that key");
    is_str(ft_architecture_source(&kin, "y"), "own.y",
           "a checkpoint name of a weight replaces that of the base");
    ok(ft_architecture_source(&kin, "x") == NULL && ft_architecture_source(&kin, "z") == NULL,
       "a checkpoint name of NULL removes that of the base");
}

/* ---- Configurations as JSON --------------------------------------------------------------- */

static void test_round_trip(void)
{
    int lost = 0;
    for (int head = FT_HEAD_NONE; head <= FT_HEAD_RELU; head++)
        for (int embedding = FT_EMBEDDING_NONE; embedding <= FT_EMBEDDING_MEAN; embedding++)
            for (int activation = FT_ACT_NONE; activation <= FT_ACT_SILU; activation++) {
                ft_config config = test_bert_config(312, 12, 1248);
                config.head = (ft_head) head;
                config.labels = head == FT_HEAD_NONE ? 0 : 7;
                config.problem_type =
                    head == FT_HEAD_NONE ? FT_PROBLEM_SINGLE : (ft_problem) (activation % 3);
                config.embedding = (ft_embedding) embedding;
                config.activation = (ft_activation) activation;
                config.normalize = embedding % 2;
                config.position_offset = activation;
                config.padding_id = activation - 1;
                lost += !config_survives(&config);
            }
    is_int(lost, 0, "every field of a configuration survives a JSON round trip");
}

/* One check: a valid configuration with `key` replaced by JSON (NULL removes it) is refused. */
static void refused(const char *key, const char *value, const char *why)
{
    ft_config config = test_bert_config(8, 2, 12);
    char patch[64];
    config.position_offset = 2;
    snprintf(patch, sizeof patch, "{\"%s\": %s}", key, value == NULL ? "null" : value);
    config_refused(&config, patch, why);
}

static void test_bounds(void)
{
    refused("layers", NULL, "layers: found nothing, expected an integer from 1 to 1000");
    refused("layers", "2.0", "layers: found 2.0, expected an integer from 1 to 1000");
    refused("layers", "0", "layers: found 0, expected an integer from 1 to 1000");
    refused("layers", "1001", "layers: found 1001, expected an integer from 1 to 1000");
    refused("hidden", "65537", "hidden: found 65537, expected an integer from 1 to 65536");
    refused("hidden", "-8", "hidden: found -8, expected an integer from 1 to 65536");
    refused("heads", "0", "heads: found 0, expected an integer from 1 to 65536");
    refused("heads", "3", "3 heads do not divide 8 columns");
    refused("ffn", "65537", "ffn: found 65537, expected an integer from 1 to 65536");
    refused("vocabulary", "16777217",
            "vocabulary: found 16777217, expected an integer from 1 to 16777216");
    refused("positions", "9223372036854775807",
            "positions: found 9223372036854775807, expected an integer from 1 to 16777216");
    refused("types", "-1", "types: found -1, expected an integer from 0 to 65536");
    refused("labels", "1048577", "labels: found 1048577, expected an integer from 0 to 1048576");
    refused("problem_type", "\"clustering\"",
            "problem_type: found \"clustering\", expected a name that this version knows");
    refused("labels", "1", "problem_type single_label_classification, but there is one label");
    refused("position_offset", "300", "position offset 300, but only 300 positions");
    refused("padding_id", "-2", "padding_id: found -2, expected an integer from -1 to 16777216");
    refused("padding_id", "300", "padding id 300 has no position, there are 300");
    refused("eps", "0", "eps: found 0, expected a float from 0 to 1, exclusive");
    refused("eps", "1e-60", "eps: found 1e-60, expected a float from 0 to 1, exclusive");
    refused("eps", "1", "eps: found 1, expected a float from 0 to 1, exclusive");
    refused("eps", "\"small\"", "eps: found \"small\", expected a float from 0 to 1, exclusive");
    refused("activation", "\"swish\"",
            "activation: found \"swish\", expected a name that this version knows");
    refused("activation", NULL,
            "activation: found nothing, expected a name that this version knows");
    refused("head", "\"bald\"", "head: found \"bald\", expected a name that this version knows");
    refused("head", "\"none\"", "3 labels, but head none");
    refused("embedding", "3", "embedding: found 3, expected a name that this version knows");
    refused("pooler", "1", "pooler: found 1, expected true or false");
    refused("pooler", "false", "the head needs a pooler");
    refused("normalize", NULL, "normalize: found nothing, expected true or false");

    ft_config config;
    ft_error err;
    is_int(ft_config_from_json(&config, NULL, FT_KIND_ENCODER, "m.ft", &err), FT_EFORMAT,
           "ft_config_from_json() refuses a manifest without a configuration");
}

static void test_sizes(void)
{
    static const char *const products[] = {
        "layers", "hidden", "heads", "ffn",        "vocabulary",        "positions", "types",
        "labels", "pooler", "1",     "dense_head", "heads * head_size", "mystery",   "heads*",
    };
    ft_config config = test_bert_config(8, 2, 12);
    char found[256] = "";
    for (size_t i = 0; i < FT_COUNT(products); i++)
        sprintf(found + strlen(found), "%s=%lld ", products[i],
                (long long) ft_config_size(&config, products[i]));
    is_str(found,
           "layers=2 hidden=8 heads=2 ffn=12 vocabulary=50 positions=300 types=2 labels=3 pooler=1 "
           "1=1 dense_head=0 heads * head_size=8 mystery=-1 heads*=-1 ",
           "ft_config_size() maps names to sizes and derives the head size by default");
    config.head_size = 6;
    is_int(ft_config_size(&config, "heads*head_size, hidden"), 12,
           "ft_config_size() ends a product at a comma and uses a separate head size");
}

int main(void)
{
    test_bert_names();
    test_roberta_names();
    test_distilbert_names();
    test_optional();
    test_head_size();
    test_long_names();
    test_registry();
    test_all_rules();
    test_base();
    test_round_trip();
    test_bounds();
    test_sizes();
    return done_testing();
}
