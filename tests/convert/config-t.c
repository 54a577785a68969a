/*
 * config-t.c - config.json and the files of sentence-transformers become a model configuration.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config/sentence_transformers.h"
#include "kernels/op.h"
#include "runtime/base/json_reader.h"
#include "runtime/mem.h"
#include "tests/lib/models/origin.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

static ft_messages *fresh(void)
{
    static ft_messages problems;
    memset(&problems, 0, sizeof problems);
    return &problems;
}

/* ---- Accepted ------------------------------------------------------------------------------ */

/* All fields of the configuration on one line. */
static const char *describe(const ft_hf_model *origin)
{
    static const char *const heads[] = { "none",  "pooled", "dense", "relu",
                                         "first", "tokens", "span",  "lm" };
    static char text[300];
    const ft_config *c = &origin->config;
    snprintf(text, sizeof text, "%s L%d H%d A%d F%d V%d P%d T%d C%d +%d pad %d %g %s, head %s%s",
             origin->architecture->model_type, c->layers, c->hidden, c->heads, c->ffn,
             c->vocabulary, c->positions, c->types, c->labels, c->position_offset, c->padding_id,
             (double) c->eps, ft_activation_name(c->activation), heads[c->head],
             c->pooler ? ", pooler" : "");
    return text;
}

static const struct {
    const char *file, *expected;
} good[] = {
    { "bert-base-uncased",
      "bert L12 H768 A12 F3072 V30522 P512 T2 C0 +0 pad -1 1e-12 gelu, head lm" },
    { "bert-base-multilingual-cased",
      "bert L12 H768 A12 F3072 V119547 P512 T2 C0 +0 pad -1 1e-12 gelu, head lm" },
    { "minilm-l6-v2", "bert L6 H384 A12 F1536 V30522 P512 T2 C0 +0 pad -1 1e-12 gelu, head none" },
    { "bge-small-en", "bert L12 H384 A12 F1536 V30522 P512 T2 C0 +0 pad -1 1e-12 gelu, head none" },
    { "e5-small", "bert L12 H384 A12 F1536 V30522 P512 T2 C0 +0 pad -1 1e-12 gelu, head none" },
    { "cross-encoder",
      "bert L6 H384 A12 F1536 V30522 P512 T2 C1 +0 pad -1 1e-12 gelu, head pooled, pooler" },
    { "transformers-2-dump",
      "bert L24 H1024 A16 F4096 V28996 P512 T2 C5 +0 pad -1 1e-12 gelu_tanh, head pooled, pooler" },
    { "transformers-5",
      "bert L4 H256 A4 F1024 V3072 P256 T2 C6 +0 pad -1 1e-12 gelu, head pooled, pooler" },
    { "smallest", "bert L1 H312 A12 F1200 V100 P32 T2 C0 +0 pad -1 1e-12 gelu, head none" },
    { "roberta-base", "roberta L12 H768 A12 F3072 V50265 P514 T1 C0 +2 pad 1 1e-05 gelu, head lm" },
    { "roberta-sentiment",
      "roberta L12 H768 A12 F3072 V50265 P514 T1 C3 +2 pad 1 1e-05 gelu, head dense" },
    { "distilbert-base-uncased",
      "distilbert L6 H768 A12 F3072 V30522 P512 T0 C0 +0 pad -1 1e-12 gelu, head lm" },
    { "distilbert-sst2",
      "distilbert L6 H768 A12 F3072 V30522 P512 T0 C2 +0 pad -1 1e-12 gelu, head relu" },
};

static void test_good(void)
{
    for (size_t i = 0; i < FT_COUNT(good); i++)
        is_origin(good[i].file, NULL, describe, good[i].expected);
}

/* The problem type, from the keys of transformers and of sentence-transformers. */
static const struct {
    const char *file, *patch, *expected;
} labelled[] = {
    { "transformers-5", "{}", "single_label_classification" },
    { "transformers-5", "{\"problem_type\": \"REMOVE\"}", "single_label_classification" },
    { "transformers-5", "{\"problem_type\": null}", "single_label_classification" },
    { "transformers-5", "{\"problem_type\": \"multi_label_classification\"}",
      "multi_label_classification" },
    { "transformers-5", "{\"problem_type\": \"regression\"}", "regression" },
    { "transformers-5",
      "{\"problem_type\": null, \"sbert_ce_default_activation_fn\": "
      "\"torch.nn.modules.activation.Sigmoid\"}",
      "multi_label_classification" },
    { "transformers-5",
      "{\"problem_type\": null, \"sbert_ce_default_activation_function\": "
      "\"torch.nn.modules.linear.Identity\"}",
      "single_label_classification" },
    { "transformers-5",
      "{\"sbert_ce_default_activation_fn\": \"torch.nn.modules.activation.Sigmoid\"}",
      "single_label_classification" },
    { "cross-encoder", "{}", "regression" },
    { "cross-encoder", "{\"sentence_transformers\": \"REMOVE\"}", "regression" },
    { "cross-encoder",
      "{\"sentence_transformers\": {\"version\": \"4.0.1\", \"activation_fn\": "
      "\"torch.nn.modules.activation.Sigmoid\"}}",
      "multi_label_classification" },
    { "cross-encoder",
      "{\"sentence_transformers\": \"REMOVE\", "
      "\"sbert_ce_default_activation_function\": \"REMOVE\"}",
      "multi_label_classification" },
    { "cross-encoder", "{\"problem_type\": \"single_label_classification\"}",
      "multi_label_classification" },
};

static const char *problem_of(const ft_hf_model *origin)
{
    return ft_problem_name(origin->config.problem_type);
}

static void test_problems(void)
{
    for (size_t i = 0; i < FT_COUNT(labelled); i++)
        is_origin(labelled[i].file, labelled[i].patch, problem_of, labelled[i].expected);
}

/* ---- Refused ------------------------------------------------------------------------------- */

static const char bert[] = "transformers-5", roberta[] = "roberta-sentiment",
                  distilbert[] = "distilbert-sst2";

static const bad_origin bad[] = {
    /* Which model */
    { bert, "{\"model_type\": \"REMOVE\"}", FT_EUNSUPPORTED, "no model_type" },
    { bert, "{\"model_type\": 7}", FT_EUNSUPPORTED, "model_type 7 is not supported" },
    { bert, "{\"model_type\": \"gpt2\"}", FT_EUNSUPPORTED,
      "model_type \"gpt2\" is not supported; supported are bert, roberta, distilbert" },
    { bert, "{\"architectures\": [\"BertForMultipleChoice\"]}", FT_EUNSUPPORTED,
      "architectures [\"BertForMultipleChoice\"] is not supported; bert supports "
      "BertModel, BertForSequenceClassification" },
    { bert, "{\"architectures\": [\"RobertaModel\"]}", FT_EUNSUPPORTED, "\"RobertaModel\"" },
    { bert, "{\"architectures\": [\"BertModel\", \"BertForMaskedLM\"]}", FT_EUNSUPPORTED,
      "bert supports BertModel" },
    { bert, "{\"architectures\": \"BertModel\"}", FT_EUNSUPPORTED, "architectures \"BertModel\"" },

    /* Sizes */
    { bert, "{\"hidden_size\": \"REMOVE\"}", FT_EFORMAT, "no hidden_size, which a bert needs" },
    { bert, "{\"hidden_size\": null}", FT_EFORMAT, "hidden_size: found null, expected an integer" },
    { bert, "{\"hidden_size\": 256.5}", FT_EFORMAT, "hidden_size: found 256.5, expected" },
    { bert, "{\"hidden_size\": \"256\"}", FT_EFORMAT, "hidden_size: found \"256\"" },
    { bert, "{\"num_hidden_layers\": 0}", FT_EFORMAT, "an integer from 1 to 1000" },
    { bert, "{\"num_hidden_layers\": -4}", FT_EFORMAT, "num_hidden_layers: found -4" },
    { bert, "{\"num_hidden_layers\": 1001}", FT_EFORMAT, "num_hidden_layers: found 1001" },
    { bert, "{\"vocab_size\": 9223372036854775807}", FT_EFORMAT,
      "vocab_size: found 9223372036854775" },
    { bert, "{\"num_attention_heads\": 3}", FT_EFORMAT, "3 heads do not divide 256 columns" },
    { roberta, "{\"pad_token_id\": 600}", FT_EFORMAT, "position offset 601, but only 514" },
    { roberta, "{\"pad_token_id\": -1}", FT_EFORMAT, "pad_token_id: found -1" },
    { roberta, "{\"pad_token_id\": null}", FT_EFORMAT, "pad_token_id: found null" },

    /* Arithmetic */
    { bert, "{\"layer_norm_eps\": 0}", FT_EFORMAT, "layer_norm_eps: found 0, expected a positive" },
    { bert, "{\"layer_norm_eps\": 1}", FT_EFORMAT, "layer_norm_eps: found 1" },
    { bert, "{\"layer_norm_eps\": \"1e-12\"}", FT_EFORMAT, "layer_norm_eps: found \"1e-12\"" },
    { distilbert, "{\"layer_norm_eps\": 1e-5}", FT_EUNSUPPORTED,
      "layer_norm_eps is 1e-5, only 1e-12 is supported" },
    { bert, "{\"hidden_act\": \"quick_gelu\"}", FT_EUNSUPPORTED,
      "hidden_act \"quick_gelu\" is not supported; supported are gelu, " },
    { distilbert, "{\"activation\": \"mish\"}", FT_EUNSUPPORTED, "activation \"mish\"" },
    { bert, "{\"hidden_act\": {\"name\": \"gelu\"}}", FT_EUNSUPPORTED, "hidden_act {" },

    /* Unsupported variants */
    { bert, "{\"position_embedding_type\": \"relative_key\"}", FT_EUNSUPPORTED,
      "position_embedding_type is \"relative_key\", only \"absolute\" is supported" },
    { roberta, "{\"position_embedding_type\": \"relative_key_query\"}", FT_EUNSUPPORTED,
      "position_embedding_type" },
    { bert, "{\"is_decoder\": true}", FT_EUNSUPPORTED, "is_decoder is true, only false" },
    { roberta, "{\"add_cross_attention\": true}", FT_EUNSUPPORTED, "add_cross_attention is true" },
    { distilbert, "{\"is_encoder_decoder\": true}", FT_EUNSUPPORTED, "is_encoder_decoder is true" },
    { bert, "{\"pruned_heads\": {\"0\": [1, 2]}}", FT_EUNSUPPORTED, "pruned_heads is {\"0\": [1" },
    { bert, "{\"quantization_config\": {\"bits\": 4}}", FT_EUNSUPPORTED,
      "quantization_config is {\"bits\": 4}, but quantized weights are not supported" },

    /* Labels */
    { bert, "{\"id2label\": [\"a\", \"b\"]}", FT_EFORMAT, "id2label: found [\"a\"" },
    { bert, "{\"id2label\": {}}", FT_EFORMAT, "id2label: found {}" },
    { bert, "{\"id2label\": {\"1\": \"a\", \"2\": \"b\"}}", FT_EFORMAT, "id2label: found {" },
    { bert, "{\"num_labels\": 3}", FT_EFORMAT, "id2label has 6 names, but num_labels is 3" },
    { bert, "{\"id2label\": null, \"num_labels\": 0}", FT_EFORMAT, "num_labels: found 0" },
    { bert, "{\"id2label\": null, \"num_labels\": \"6\"}", FT_EFORMAT, "num_labels: found \"6\"" },
    { bert, "{\"id2label\": null, \"num_labels\": 9999999999}", FT_EFORMAT,
      "num_labels: found 9999" },

    { bert, "{\"problem_type\": \"clustering\"}", FT_EFORMAT,
      "problem_type: found \"clustering\", expected \"single_label_classification\", " },
    { bert, "{\"problem_type\": 1}", FT_EFORMAT, "problem_type: found 1" },
    { "cross-encoder",
      "{\"sentence_transformers\": {\"activation_fn\": \"torch.nn.modules.activation.Tanh\"}}",
      FT_EUNSUPPORTED, "activation_fn is \"torch.nn.modules.activation.Tanh\", which may change" },

    /* Anything else */
    { bert, "{\"rotary\": true}", FT_EUNSUPPORTED,
      "rotary is true, which may change the result; pass --ignore-key rotary if it does not" },
    { bert, "{\"embedding_size\": 128}", FT_EUNSUPPORTED, "embedding_size is 128" },
    { bert, "{\"auto_map\": {\"AutoModel\": \"theirs.Model\"}}", FT_EUNSUPPORTED, "auto_map is {" },
    { roberta, "{\"adapters\": [0]}", FT_EUNSUPPORTED, "adapters is [0]" },
    { distilbert, "{\"hidden_act\": \"relu\"}", FT_EUNSUPPORTED, "hidden_act is \"relu\"" },
};

static void test_bad(void)
{
    are_refused(bad, FT_COUNT(bad));
}

static const struct {
    const char *what, *text, *part;
} broken[] = {
    { "an empty file", "", "not valid JSON" },
    { "a missing value", "{\"model_type\": \"bert\",\n\"hidden_size\": }",
      "line 2, column 16: not valid" },
    { "an array", "[1, 2]", "expected a JSON object" },
    { "a duplicate key", "{\"hidden_size\": 1, \"hidden_size\": 2}", "duplicate" },
    { "a byte that is not UTF-8", "{\"a\": \"\xff\"}", "not valid JSON" },
    { "a number out of range", "{\"layer_norm_eps\": 1e999}", "not valid JSON" },
    { "a second object", "{} {}", "not valid JSON" },
};

static void test_broken(void)
{
    ft_hf_model origin;
    for (size_t i = 0; i < FT_COUNT(broken); i++) {
        ft_messages *problems = fresh();
        is_int(ft_hf_model_read(&origin, broken[i].text, strlen(broken[i].text), "config.json",
                                NULL, problems),
               FT_EFORMAT, "%s is refused", broken[i].what);
        has(problems->message[0].text, broken[i].part, "the error names the cause for %s",
            broken[i].what);
    }
    static char nested[200000];
    memset(nested, '[', sizeof nested);
    is_int(ft_hf_model_read(&origin, nested, sizeof nested, "config.json", NULL, fresh()),
           FT_EFORMAT, "200,000 nested brackets are refused");
    size_t much = FT_JSON_MAX_BYTES + 1;
    char *spaces = calloc(1, much);
    is_int(ft_hf_model_read(&origin, spaces, much, "config.json", NULL, fresh()), FT_ELIMIT,
           "a configuration of more than 4 MiB is refused");
    free(spaces);
}

/* ---- Several problems, and ignored keys ---------------------------------------------------- */

static void test_all_at_once(void)
{
    static const char *const ignored[] = { "z", "a", NULL }, *const wanted[] = { "is_decoder",
                                                                                 NULL };
    ft_messages problems;
    ft_hf_model origin;
    is_int(origin_read(&origin, bert,
                       "{\"hidden_act\": \"mish\", \"hidden_size\": 0, \"a\": 1, \"b\": 2}", NULL,
                       &problems),
           FT_EFORMAT, "the status of the first problem is returned");
    is_int((long long) problems.count, 4, "all four problems are reported");
    has(problems.message[3].text, "b is 2", "the last of four problems is reported");
    is_int(origin_read(&origin, bert,
                       "{\"a\": 1, \"b\": 0, \"c\": {}, \"d\": null, \"e\": \"\", \"f\": false}",
                       ignored, &problems),
           FT_OK, "--ignore-key ignores a key by name, and empty values are no problem");
    is_int(origin_read(&origin, bert, "{\"is_decoder\": true}", wanted, &problems), FT_EUNSUPPORTED,
           "a key that is known to change the result cannot be ignored");
}

static void test_many(void)
{
    ft_messages problems;
    ft_hf_model origin;
    json_t *many = json_object();
    for (int i = 0; i < 30; i++) {
        char key[16];
        snprintf(key, sizeof key, "key_%d", i);
        json_object_set_new(many, key, json_string("\033[2J"));
    }
    char *patch = json_dumps(many, 0);
    is_int(origin_read(&origin, bert, patch, NULL, &problems), FT_EUNSUPPORTED,
           "thirty unknown keys are refused");
    is_int((long long) problems.count, 30, "all thirty unknown keys are counted");
    has(problems.message[FT_MAX_MESSAGES - 1].text, "key_19 is \"\\u001B[2J\"",
        "the first twenty problems are kept, with control characters escaped");
    free(patch);
    json_decref(many);
}

/* ---- sentence-transformers ------------------------------------------------------------------ */

#define TRANSFORMER                                                                                \
    "{\"idx\": 0, \"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"}"
#define POOLING                                                                                    \
    "{\"idx\": 1, \"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"}"
#define NORMALIZE                                                                                  \
    "{\"idx\": 2, \"path\": \"2_Normalize\", \"type\": "                                           \
    "\"sentence_transformers.models.Normalize\"}"

#define DENSE                                                                                      \
    "{\"idx\": 2, \"path\": \"2_Dense\", \"type\": \"sentence_transformers.models.Dense\"}"

static void test_modules(void)
{
    static const struct {
        const char *text, *part;
    } refused[] = {
        { "{}", "modules.json: found a JSON object, expected a JSON array" },
        { "[]", "no Pooling" },
        { "[" TRANSFORMER "]", "no Pooling" },
        { "[" POOLING "]", "module 0 is \"sentence_transformers.models.Pooling\"" },
        { "[" TRANSFORMER ", " POOLING ", {\"type\": \"sentence_transformers.models.Dense\"}]",
          "module 2 is \"sentence_transformers.models.Dense\", expected" },
        { "[" TRANSFORMER ", " POOLING ", {\"type\": \"sentence_transformers.models.LSTM\"}]",
          "module 2 is \"sentence_transformers.models.LSTM\", expected" },
        { "[" TRANSFORMER ", " DENSE ", " POOLING "]", "module 1 is \"sentence_transformers.mod" },
        { "[" TRANSFORMER ", " POOLING ", " DENSE ", " DENSE ", " DENSE ", " DENSE ", " DENSE "]",
          "at most 4 Dense" },
        { "[" TRANSFORMER ", " POOLING ", " NORMALIZE ", " NORMALIZE "]", "module 3 is" },
        { "[{\"path\": \"0_Transformer\", \"type\": \"sentence_transformers.models.Transformer\"}]",
          "module 0 is" },
        { "[{\"path\": \"\", \"type\": \"theirs.Transformer\"}]", "module 0 is \"theirs.Trans" },
        { "[" TRANSFORMER ", {\"path\": \"../x\", \"type\": \"sentence_transformers.Pooling\"}]",
          "module 1 is" },
        { "[" TRANSFORMER ", {\"path\": \"a/b\", \"type\": \"sentence_transformers.Pooling\"}]",
          "module 1 is" },
        { "[7]", "module 0 is 7" },
    };
    static const char whole[] = "[" TRANSFORMER ", " POOLING ", " NORMALIZE "]";
    static const char plain[] = "[" TRANSFORMER ", " POOLING "]";
    static const char dense[] =
        "[" TRANSFORMER ", " POOLING ", " DENSE ", " NORMALIZE ", " DENSE ", " NORMALIZE "]";
    ft_modules modules;
    ft_messages *problems = fresh();
    ft_modules_parse(&modules, whole, strlen(whole), problems);
    ok(problems->count == 0 && modules.normalize,
       "the modules Transformer, Pooling, Normalize are accepted");
    is_str(modules.pooling, "1_Pooling", "the folder of the Pooling module is read");
    ft_modules_parse(&modules, plain, strlen(plain), problems);
    ok(problems->count == 0 && !modules.normalize, "the modules Transformer, Pooling are accepted");
    ft_modules_parse(&modules, dense, strlen(dense), problems);
    ok(problems->count == 0 && modules.num_dense == 2 && !modules.normalize_input[0] &&
           modules.normalize_input[1] && modules.normalize,
       "each Normalize belongs to the Dense behind it, or to the embedding");
    is_str(modules.dense[1], "2_Dense", "the folder of a Dense module is read");
    for (size_t i = 0; i < FT_COUNT(refused); i++) {
        problems = fresh();
        ft_modules_parse(&modules, refused[i].text, strlen(refused[i].text), problems);
        has(problems->message[0].text, refused[i].part, "the configuration %s is refused",
            refused[i].text);
    }
}

static ft_embedding pooled(const char *text, ft_messages *problems)
{
    ft_config config = { .hidden = 384 };
    ft_pooling_parse(&config, text, strlen(text), "1_Pooling/config.json", problems);
    return config.embedding;
}

static void test_pooling(void)
{
    static const struct {
        const char *text, *part;
    } refused[] = {
        { "{\"word_embedding_dimension\": 768, \"pooling_mode_mean_tokens\": true}",
          "word_embedding_dimension: found 768, expected 384" },
        { "{\"pooling_mode_attention\": true}", "pooling mode attention is not supported" },
        { "{\"pooling_mode\": [\"mean\", \"max\"]}", "pooling_mode is [\"mean\", \"max\"]" },
        { "{\"pooling_mode_cls_token\": true, \"pooling_mode_mean_tokens\": true}",
          "2 pooling modes, expected one" },
        { "{}", "0 pooling modes, expected one" },
        { "{\"pooling_mode_mean_tokens\": 1}", "pooling_mode_mean_tokens is 1" },
        { "{\"pooling_mode_mean_tokens\": true, \"include_prompt\": false}",
          "include_prompt is false" },
        { "{\"pooling_mode\": \"mean\", \"weights\": [1]}", "weights is [1]" },
    };
    static const struct {
        const char *text;
        ft_embedding embedding;
    } modes[] = {
        { "{\"pooling_mode\": \"lasttoken\"}", FT_EMBEDDING_LAST },
        { "{\"pooling_mode_lasttoken\": true}", FT_EMBEDDING_LAST },
        { "{\"pooling_mode\": \"max\"}", FT_EMBEDDING_MAX },
        { "{\"pooling_mode_max_tokens\": true}", FT_EMBEDDING_MAX },
        { "{\"pooling_mode_mean_sqrt_len_tokens\": true}", FT_EMBEDDING_MEAN_SQRT_LEN },
        { "{\"pooling_mode\": \"weightedmean\"}", FT_EMBEDDING_WEIGHTED_MEAN },
        { "{\"pooling_mode_weightedmean_tokens\": true}", FT_EMBEDDING_WEIGHTED_MEAN },
    };
    ft_messages *problems = fresh();
    is_int(pooled("{\"word_embedding_dimension\": 384, \"pooling_mode_cls_token\": false,"
                  " \"pooling_mode_mean_tokens\": true, \"pooling_mode_max_tokens\": false,"
                  " \"pooling_mode_mean_sqrt_len_tokens\": false, \"include_prompt\": true}",
                  problems),
           FT_EMBEDDING_MEAN, "mean pooling is accepted");
    is_int(
        pooled("{\"word_embedding_dimension\": 384, \"pooling_mode_cls_token\": true}", problems),
        FT_EMBEDDING_FIRST, "CLS pooling is accepted");
    is_int(pooled("{\"embedding_dimension\": 384, \"pooling_mode\": \"mean\"}", problems),
           FT_EMBEDDING_MEAN, "pooling_mode may be the name of the mode");
    for (size_t i = 0; i < FT_COUNT(modes); i++)
        is_int(pooled(modes[i].text, problems), modes[i].embedding, "%s is accepted",
               modes[i].text);
    is_int((long long) problems->count, 0, "accepted pooling modes report no problems");
    for (size_t i = 0; i < FT_COUNT(refused); i++) {
        problems = fresh();
        pooled(refused[i].text, problems);
        has(problems->message[0].text, refused[i].part, "the configuration %s is refused",
            refused[i].text);
    }
}

#define SIZES "\"in_features\": 384, \"out_features\": 64"

static void test_dense(void)
{
    static const struct {
        const char *text, *part;
    } refused[] = {
        { "{\"in_features\": 768, \"out_features\": 64}", "in_features: found 768, expected 384" },
        { "{\"in_features\": 384}", "out_features: found nothing, expected an integer" },
        { "{" SIZES ", \"bias\": 1}", "bias: found 1" },
        { "{" SIZES ", \"activation_function\": \"torch.nn.modules.activation.Sigmoid\"}",
          "activation_function \"torch.nn.modules.activation.Sigmoid\" is not supported; supported "
          "are Tanh, Identity, ReLU, GELU and SiLU" },
        { "{" SIZES ", \"activation_function\": \"mine.Tanh\"}", "\"mine.Tanh\" is not supported" },
        { "{" SIZES ", \"use_residual\": true}", "use_residual is true, which may change" },
        { "{" SIZES ", \"module_input_name\": \"token_embeddings\"}",
          "module_input_name is \"token_embeddings\"" },
    };
    static const char text[] = "{" SIZES ", \"bias\": false, \"activation_function\":"
                               " \"torch.nn.modules.linear.Identity\","
                               " \"module_input_name\": \"sentence_embedding\"}";
    static const char next[] = "{\"in_features\": 64, \"out_features\": 9}";
    ft_config config = { .hidden = 384, .embedding = FT_EMBEDDING_MEAN };
    ft_messages *problems = fresh();
    ft_dense_parse(&config, text, strlen(text), "2_Dense/config.json", problems);
    ft_dense_parse(&config, next, strlen(next), "3_Dense/config.json", problems);
    is_int((long long) problems->count, 0, "Dense layers that follow each other are accepted");
    ok(!config.dense[0].bias && config.dense[0].activation == FT_ACT_NONE && config.dense[1].bias &&
           config.dense[1].activation == FT_ACT_TANH,
       "without keys a Dense has a bias and the activation Tanh");
    is_int(ft_config_embedding_size(&config), 9, "the last Dense gives the size of the embedding");
    for (size_t i = 0; i < FT_COUNT(refused); i++) {
        config = (ft_config){ .hidden = 384, .embedding = FT_EMBEDDING_MEAN };
        problems = fresh();
        ft_dense_parse(&config, refused[i].text, strlen(refused[i].text), "2_Dense/config.json",
                       problems);
        has(problems->message[0].text, refused[i].part, "the Dense %s is refused", refused[i].text);
    }
}

int main(void)
{
    test_good();
    test_problems();
    test_bad();
    test_broken();
    test_all_at_once();
    test_many();
    test_modules();
    test_pooling();
    test_dense();
    return done_testing();
}
