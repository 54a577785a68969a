/*
 * convert-t.c - checkpoints of every architecture become artifacts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/report.h"
#include "convert/tokenizer/lowercase.h"
#include "runtime/mem.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/folder.h"
#include "tests/lib/models/tiny_tokenizer.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const ft_convert_options keep;

/* ---- Names ---------------------------------------------------------------------------------- */

typedef struct {
    const char *name, *source;
} pair;

/* Linear layers and norms: each has NAME.weight and NAME.bias. */
static const pair bert_layer[] = {
    { "attn.q", "attention.self.query" },
    { "attn.k", "attention.self.key" },
    { "attn.v", "attention.self.value" },
    { "attn.out", "attention.output.dense" },
    { "attn.norm", "attention.output.LayerNorm" },
    { "ffn.up", "intermediate.dense" },
    { "ffn.down", "output.dense" },
    { "ffn.norm", "output.LayerNorm" },
};

static const pair distilbert_layer[] = {
    { "attn.q", "attention.q_lin" },  { "attn.k", "attention.k_lin" },
    { "attn.v", "attention.v_lin" },  { "attn.out", "attention.out_lin" },
    { "attn.norm", "sa_layer_norm" }, { "ffn.up", "ffn.lin1" },
    { "ffn.down", "ffn.lin2" },       { "ffn.norm", "output_layer_norm" },
};

static bool same_linear(const ft_artifact *artifact, const char *name, tiny *t, const char *source)
{
    char ours[96], theirs[96];
    snprintf(ours, sizeof ours, "%s.weight", name);
    snprintf(theirs, sizeof theirs, "%s.weight", source);
    bool weight = converted_same(artifact, ours, t, theirs);
    snprintf(ours, sizeof ours, "%s.bias", name);
    snprintf(theirs, sizeof theirs, "%s.bias", source);
    return weight && converted_same(artifact, ours, t, theirs);
}

/* How many of the 8 x 2 pairs of a layer, and of the embeddings before it, have the values of the
 * source. */
static int count_same(const ft_artifact *artifact, tiny *t, const char *prefix, const char *layers,
                      const pair *layer)
{
    int n = 0;
    char name[96], source[96];
    for (int l = 0; l < 2; l++)
        for (size_t i = 0; i < FT_COUNT(bert_layer); i++) {
            snprintf(name, sizeof name, "layer.%d.%s", l, layer[i].name);
            snprintf(source, sizeof source, "%s%s.layer.%d.%s", prefix, layers, l, layer[i].source);
            n += same_linear(artifact, name, t, source);
        }
    snprintf(source, sizeof source, "%sembeddings.word_embeddings.weight", prefix);
    n += converted_same(artifact, "embed.word", t, source);
    snprintf(source, sizeof source, "%sembeddings.position_embeddings.weight", prefix);
    n += converted_same(artifact, "embed.position", t, source);
    snprintf(source, sizeof source, "%sembeddings.LayerNorm", prefix);
    return n + same_linear(artifact, "embed.norm", t, source);
}

static const char *configured(const ft_artifact *artifact)
{
    static char text[200];
    const json_t *config = ft_artifact_get_header(artifact)->config;
    const char *head, *embedding;
    int labels, pooler, normalize, offset;
    if (json_unpack((json_t *) (uintptr_t) config, "{si sb ss ss sb si}", "labels", &labels,
                    "pooler", &pooler, "head", &head, "embedding", &embedding, "normalize",
                    &normalize, "position_offset", &offset) != 0)
        return "incomplete";
    snprintf(text, sizeof text, "%d labels, head %s%s, embedding %s%s, offset %d", labels, head,
             pooler ? ", pooler" : "", embedding, normalize ? " normalized" : "", offset);
    return text;
}

static void test_bert(void)
{
    tiny t;
    tiny_make(&t, TINY_BERT, "");
    ft_artifact *a = converted(&t, &keep);
    if (!ok(a != NULL, "a BERT encoder without prefix is converted"))
        bail_out("%s", converted_problem(0));
    is_int((long long) ft_artifact_count(a), 37, "the artifact of a BERT encoder has 37 tensors");
    is_int(count_same(a, &t, "", "encoder", bert_layer), 19,
           "every tensor of a BERT encoder has the values of its source");
    ok(converted_same(a, "embed.type", &t, "embeddings.token_type_embeddings.weight"),
       "the token type embeddings have the values of their source");
    is_str(ft_artifact_at(a, 0)->name, "embed.word",
           "the first tensor of the artifact is the first one used");
    is_str(ft_artifact_at(a, 36)->name, "layer.1.ffn.norm.bias",
           "the last tensor of the artifact is the last one used");
    is_str(configured(a), "0 labels, head none, embedding none, offset 0",
           "the configuration of a BERT encoder has no head");
    is_str(ft_artifact_get_header(a)->tool, "ft-convert", "the manifest names the tool");
    is_str(ft_artifact_get_header(a)->family, "bert", "the manifest names the family");
    ft_artifact_close(a);
    tiny_remove(&t);
}

static void test_bert_classifier(void)
{
    tiny t;
    tiny_make_classifier(&t);
    ft_artifact *a = converted(&t, &keep);
    if (!ok(a != NULL, "a BERT classifier with prefix is converted"))
        bail_out("%s", converted_problem(0));
    is_int(count_same(a, &t, "bert.", "encoder", bert_layer), 19,
           "tensors are found with the prefix bert.");
    ok(same_linear(a, "pooler", &t, "bert.pooler.dense"), "the pooler is found with the prefix");
    ok(same_linear(a, "classifier", &t, "classifier"),
       "the classifier is found without the prefix");
    is_str(configured(a), "3 labels, head pooled, pooler, embedding none, offset 0",
           "the configuration of a BERT classifier has its labels, head and pooler");
    ft_artifact_close(a);
    tiny_remove(&t);
}

static void test_pooler_without_classifier(void)
{
    tiny t;
    tiny_make(&t, TINY_BERT, "");
    tiny_add_linear(&t, "pooler.dense", 8, 8);
    ft_artifact *a = converted(&t, &keep);
    is_str(a == NULL ? converted_problem(0) : configured(a),
           "0 labels, head none, pooler, embedding none, offset 0",
           "a pooler is converted when the checkpoint has one");
    ft_artifact_close(a);
    tiny_drop(&t, "pooler.dense.bias");
    ok(converted(&t, &keep) == NULL, "a pooler without bias is refused");
    has(converted_problem(0), "pooler.dense.bias (pooler.bias): missing",
        "the error of an incomplete pooler names the missing tensor");
    tiny_remove(&t);
}

static void test_legacy_names(void)
{
    tiny t;
    tiny_make(&t, TINY_BERT, "bert.");
    tiny_rename(&t, "bert.embeddings.LayerNorm.weight", "bert.embeddings.LayerNorm.gamma");
    tiny_rename(&t, "bert.embeddings.LayerNorm.bias", "bert.embeddings.LayerNorm.beta");
    tiny_rename(&t, "bert.encoder.layer.1.output.LayerNorm.weight",
                "bert.encoder.layer.1.output.LayerNorm.gamma");
    ft_artifact *a = converted(&t, &keep);
    if (!ok(a != NULL, "a checkpoint with gamma and beta of layer norms is converted"))
        bail_out("%s", converted_problem(0));
    ok(converted_same(a, "embed.norm.weight", &t, "bert.embeddings.LayerNorm.gamma"),
       "gamma is converted to the weight of a layer norm");
    ok(converted_same(a, "embed.norm.bias", &t, "bert.embeddings.LayerNorm.beta"),
       "beta is converted to the bias of a layer norm");
    ok(converted_same(a, "layer.1.ffn.norm.weight", &t,
                      "bert.encoder.layer.1.output.LayerNorm.gamma"),
       "gamma is converted in any layer, even next to a bias");
    ft_artifact_close(a);
    tiny_remove(&t);
}

static void test_roberta(void)
{
    tiny t;
    tiny_make(&t, TINY_ROBERTA, "roberta.");
    tiny_add_linear(&t, "classifier.dense", 8, 8);
    tiny_add_linear(&t, "classifier.out_proj", 3, 8);
    tiny_configure(&t, "{\"architectures\": [\"RobertaForSequenceClassification\"],"
                       " \"num_labels\": 3}");
    ft_artifact *a = converted(&t, &keep);
    if (!ok(a != NULL, "a RoBERTa classifier is converted"))
        bail_out("%s", converted_problem(0));
    is_int(count_same(a, &t, "roberta.", "encoder", bert_layer), 19,
           "every tensor of a RoBERTa classifier has the values of its source");
    ok(same_linear(a, "head.dense", &t, "classifier.dense"),
       "the dense layer of a RoBERTa head is converted");
    ok(same_linear(a, "classifier", &t, "classifier.out_proj"),
       "the projection of a RoBERTa head is converted");
    is_str(configured(a), "3 labels, head dense, embedding none, offset 2",
           "RoBERTa positions start after the padding id");
    ft_artifact_close(a);
    tiny_remove(&t);
}

static void test_distilbert(void)
{
    tiny t;
    tiny_make(&t, TINY_DISTILBERT, "distilbert.");
    tiny_add_linear(&t, "pre_classifier", 8, 8);
    tiny_add_linear(&t, "classifier", 2, 8);
    tiny_configure(&t, "{\"architectures\": [\"DistilBertForSequenceClassification\"]}");
    ft_artifact *a = converted(&t, &keep);
    if (!ok(a != NULL, "a DistilBERT classifier is converted"))
        bail_out("%s", converted_problem(0));
    is_int(count_same(a, &t, "distilbert.", "transformer", distilbert_layer), 19,
           "every tensor of a DistilBERT classifier has the values of its source");
    ok(same_linear(a, "head.dense", &t, "pre_classifier"),
       "the dense layer of a DistilBERT head is converted");
    ok(ft_artifact_find(a, "embed.type") == NULL, "DistilBERT has no token type embeddings");
    is_str(configured(a), "2 labels, head relu, embedding none, offset 0",
           "DistilBERT has two labels by default");
    ft_artifact_close(a);
    tiny_remove(&t);
}

/* ---- sentence-transformers ------------------------------------------------------------------ */

static const char modules[] =
    "[{\"idx\": 0, \"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},"
    " {\"idx\": 1, \"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"},"
    " {\"idx\": 2, \"path\": \"2_Normalize\","
    "  \"type\": \"sentence_transformers.models.Normalize\"}]";

static const char dense_modules[] = "[{\"idx\": 0, \"name\": \"0\", \"path\": \"\","
                                    "  \"type\": \"sentence_transformers.models.Transformer\"},"
                                    " {\"idx\": 1, \"name\": \"1\", \"path\": \"1_Pooling\","
                                    "  \"type\": \"sentence_transformers.models.Pooling\"},"
                                    " {\"idx\": 2, \"name\": \"2\", \"path\": \"2_Dense\","
                                    "  \"type\": \"sentence_transformers.models.Dense\"}]";

/* The length that texts are truncated to with these settings. */
static int length_with(tiny *t, const char *settings, const char *tokenizer)
{
    tiny_write_file(t, "sentence_bert_config.json", settings);
    if (tokenizer != NULL)
        tiny_write_file(t, "tokenizer_config.json", tokenizer);
    ft_conversion *conversion = converted_open(t, &keep);
    if (conversion == NULL)
        bail_out("%s", converted_problem(0));
    int length = conversion->hf.config.max_seq_length;
    ft_conversion_close(conversion);
    return length;
}

/* Prompts are carried; a default prompt and Dense layers are features that readers must have. */
static void test_prompt_files(tiny *t)
{
    static const char prompts[] =
        "{\"prompts\": {\"query\": \"q: \"}, \"default_prompt_name\": \"query\"}";
    tiny_write_file(t, "config_sentence_transformers.json", prompts);
    ft_artifact *a = converted(t, &keep);
    const ft_artifact_entry *file = ft_artifact_find_file(a, "config_sentence_transformers.json");
    ok(file != NULL && file->bytes == strlen(prompts) &&
           memcmp(file->data, prompts, file->bytes) == 0,
       "the file with the prompts is copied into the artifact");
    is_int((long long) json_array_size(ft_artifact_get_header(a)->required), 1,
           "an artifact with a default prompt requires a reader that knows prompts");
    ft_artifact_close(a);
    tiny_write_file(t, "config_sentence_transformers.json",
                    "{\"prompts\": {\"query\": \"q: \"}, \"default_prompt_name\": null}");
    a = converted(t, &keep);
    ok(a != NULL && ft_artifact_get_header(a)->required == NULL,
       "an artifact whose prompts are used by name only is read by earlier versions");
    ft_artifact_close(a);
    tiny_write_file(t, "config_sentence_transformers.json",
                    "{\"prompts\": {}, \"default_prompt_name\": \"query\"}");
    ok(converted_open(t, &keep) == NULL, "a default prompt that does not exist is refused");
    has(converted_problem(0),
        "config_sentence_transformers.json: default_prompt_name: found \"query\", expected the "
        "name "
        "of one of the prompts",
        "the error of a missing default prompt names the key");
    tiny_write_file(t, "config_sentence_transformers.json", "{\"prompts\": {\"query\": 7}}");
    ok(converted_open(t, &keep) == NULL, "a prompt that is not a text is refused");
    has(converted_problem(0), "prompts.query: found 7, expected a text",
        "the error of a prompt that is not a text names it");
    tiny_write_file(t, "config_sentence_transformers.json", "{\"similarity_fn_name\": \"cosine\"}");
}

/* do_lower_case becomes the first step of the normalizer. */
static void test_lowercase(void)
{
    static const struct {
        const char *normalizer, *expected;
    } cases[] = {
        { "null", "[{\"type\":\"Lowercase\"}]" },
        { "{\"type\": \"NFC\"}", "[{\"type\":\"Lowercase\"},{\"type\":\"NFC\"}]" },
        { "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFD\"}]}",
          "[{\"type\":\"Lowercase\"},{\"type\":\"NFD\"}]" },
        { "{\"type\": \"Lowercase\"}", "{\"type\":\"Lowercase\"},\"model\"" },
        { "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFD\"}, "
          "{\"type\": \"Lowercase\"}]}",
          "[{\"type\":\"NFD\"},{\"type\":\"Lowercase\"}]" },
    };
    ft_error err;
    for (size_t i = 0; i < FT_COUNT(cases); i++) {
        ft_json_file file = { NULL, 0 };
        if (asprintf(&file.text, "{\"normalizer\": %s, \"model\": {\"x\": 0.1}}",
                     cases[i].normalizer) < 0)
            bail_out("no memory");
        file.bytes = strlen(file.text);
        if (ft_tokenizer_lowercase(&file, &err) != FT_OK)
            bail_out("%s", err.text);
        has(file.text, cases[i].expected, "do_lower_case puts Lowercase before the normalizer %s",
            cases[i].normalizer);
        free(file.text);
    }
    ft_json_file broken = { ft_strdup("{"), 1 };
    is_int(ft_tokenizer_lowercase(&broken, &err), FT_EFORMAT,
           "do_lower_case with a tokenizer.json that is not JSON is refused");
    free(broken.text);
}

/* A Dense layer needs its weights, in a form that can be read, and nothing else. */
static void test_dense_files(void)
{
    tiny t;
    tiny_make(&t, TINY_BERT, "");
    tiny_write_file(&t, "modules.json", dense_modules);
    tiny_write_file(&t, "1_Pooling/config.json",
                    "{\"word_embedding_dimension\": 8, \"pooling_mode_mean_tokens\": true}");
    tiny_write_file(&t, "2_Dense/config.json",
                    "{\"in_features\": 8, \"out_features\": 3, \"bias\": true,"
                    " \"activation_function\": \"torch.nn.modules.activation.Tanh\"}");
    tiny_write_file(&t, "2_Dense/pytorch_model.bin", "");
    tiny_write(&t);
    ok(converted_open(&t, &keep) == NULL, "a Dense with pickled weights is refused");
    has(converted_problem(0), "2_Dense: pytorch_model.bin holds pickled weights",
        "the error of a pickled Dense says how to convert it");

    tiny *dense = calloc(1, sizeof *dense);
    if (dense == NULL ||
        snprintf(dense->folder, sizeof dense->folder, "%s/2_Dense", t.folder) >= TINY_FOLDER)
        bail_out("no folder of the Dense");
    tiny_add_linear(dense, "linear", 3, 8);
    tiny_write(dense);
    ft_artifact *a = converted(&t, &keep);
    is_str(a == NULL ? converted_problem(0)
                     : json_string_value(json_array_get(ft_artifact_get_header(a)->required, 0)),
           "dense", "an artifact with a Dense requires a reader that knows Dense layers");
    ft_artifact_close(a);
    tiny_add(dense, "residual.weight", FT_F32, 3, 8);
    tiny_write(dense);
    ok(converted_open(&t, &keep) == NULL, "a Dense with another tensor is refused");
    has(converted_problem(0), "3 tensors, expected linear.weight and linear.bias only",
        "the error of another tensor names those that are expected");
    tiny_drop(dense, "residual.weight");
    tiny_rename(dense, "linear.weight", "weight");
    tiny_write(dense);
    ok(converted_open(&t, &keep) == NULL, "a Dense without linear.weight is refused");
    has(converted_problem(0),
        "linear.weight (embedding.dense.0.weight): missing, expected shape [3, 8]",
        "the error of a missing tensor of a Dense gives its name and shape");
    while (dense->count > 0)
        tiny_drop(dense, dense->name[0]);
    free(dense);
    tiny_remove(&t);
}

static void test_sentence(void)
{
    tiny t;
    tiny_make(&t, TINY_BERT, "");
    tiny_write_file(&t, "modules.json", modules);
    tiny_write_file(&t, "1_Pooling/config.json",
                    "{\"word_embedding_dimension\": 8, \"pooling_mode_mean_tokens\": true}");
    tiny_write_file(&t, "sentence_bert_config.json",
                    "{\"max_seq_length\": 7, \"do_lower_case\": false}");
    ft_artifact *a = converted(&t, &keep);
    is_str(a == NULL ? converted_problem(0) : configured(a),
           "0 labels, head none, embedding mean normalized, offset 0",
           "a sentence-transformers folder is converted with its embedding");
    ft_artifact_close(a);

    ft_conversion *conversion = converted_open(&t, &keep);
    is_int((long long) conversion->notes.count, 1,
           "settings that do not affect the result produce no note");
    is_int(conversion->hf.config.max_seq_length, 7,
           "max_seq_length is read from sentence_bert_config.json");
    ft_conversion_close(conversion);

    is_int(length_with(&t, "{\"max_seq_length\": 10}", NULL), 0,
           "a max_seq_length of all positions is stored as 0");
    is_int(length_with(&t, "{}", "{\"model_max_length\": 6}"), 6,
           "without max_seq_length, the tokenizer's model_max_length is used");
    is_int(length_with(&t, "{\"max_seq_length\": null}", "{\"model_max_length\": 6}"), 6,
           "a max_seq_length of null means the tokenizer's model_max_length");
    is_int(length_with(&t, "{}", "{\"model_max_length\": 1000000000000000019884624838656}"), 0,
           "a model_max_length larger than the positions means no limit");
    is_int(length_with(&t, "{\"max_seq_length\": 3}", "{\"model_max_length\": 2}"), 3,
           "max_seq_length takes precedence over model_max_length");
    test_prompt_files(&t);
    tiny_write_file(&t, "sentence_bert_config.json", "{\"transformer_task\": \"fill-mask\"}");
    ok(converted_open(&t, &keep) == NULL, "another task of the Transformer is refused");
    has(converted_problem(0), "sentence_bert_config.json: transformer_task is \"fill-mask\"",
        "the error of another task names the key");
    tiny_write_file(
        &t, "sentence_bert_config.json",
        "{\"modality_config\": {\"text\": {\"method_output_name\": \"pooler_output\"}}}");
    ok(converted_open(&t, &keep) == NULL, "another output of the Transformer is refused");
    has(converted_problem(0), "method_output_name is \"pooler_output\"",
        "the error of another output names the key");
    tiny_write_file(&t, "sentence_bert_config.json", "{\"max_seq_length\": \"7\"}");
    ok(converted_open(&t, &keep) == NULL, "a max_seq_length that is not a number is refused");
    has(converted_problem(0),
        "sentence_bert_config.json: max_seq_length: found \"7\", expected an integer from 1",
        "the error of a wrong max_seq_length names the key");
    tiny_write_file(&t, "sentence_bert_config.json", "{}");

    tiny_write_file(&t, "1_Pooling/config.json", "{\"word_embedding_dimension\": 9}");
    ok(converted_open(&t, &keep) == NULL, "a different word_embedding_dimension is refused");
    has(converted_problem(0),
        "1_Pooling/config.json: word_embedding_dimension: found 9, expected 8",
        "the error of a different word_embedding_dimension names the key");
    unlink(strcat(strcpy((char[128]){ 0 }, t.folder), "/1_Pooling/config.json"));
    ok(converted_open(&t, &keep) == NULL,
       "a folder without the configuration of its Pooling is refused");
    has(converted_problem(0), "1_Pooling/config.json",
        "the error of a missing Pooling configuration names the file");
    tiny_remove(&t);
}

/* ---- Other contents of a checkpoint -------------------------------------------------------- */

static void test_unused(void)
{
    tiny t;
    tiny_make(&t, TINY_BERT, "bert.");
    tiny_add(&t, "cls.predictions.bias", FT_F32, 20, 0);
    tiny_add(&t, "bert.embeddings.position_ids", FT_I64, 1, 10);
    tiny_add(&t, "bert.encoder.layer.2.output.dense.bias", FT_F32, 8, 0);
    tiny_write(&t);
    ft_conversion *conversion = converted_open(&t, &keep);
    if (!ok(conversion != NULL,
            "a checkpoint with tensors that the model does not use is accepted"))
        bail_out("%s", converted_problem(0));
    is_int((long long) conversion->n_unused, 2, "unused tensors are listed");
    is_str(conversion->unused[0], "bert.encoder.layer.2.output.dense.bias",
           "the first unused tensor is listed by name");
    is_str(conversion->unused[1], "cls.predictions.bias",
           "unused tensors are listed in the order of their names");

    json_t *report = ft_report_json(conversion, NULL);
    json_t *tensors = json_object_get(report, "tensors"),
           *unused = json_object_get(report, "unused");
    is_int((long long) json_array_size(unused), 2, "the report lists the unused tensors");
    is_int((long long) json_array_size(tensors), 37, "the report lists every weight");
    is_str(json_string_value(json_object_get(json_array_get(tensors, 5), "source")),
           "bert.encoder.layer.0.attention.self.query.weight",
           "the report names the source of a weight");
    is_int(json_integer_value(json_object_get(report, "bytes")), (long long) conversion->bytes,
           "the report has the total number of bytes");
    json_decref(report);
    ft_conversion_close(conversion);
    tiny_remove(&t);
}

static bool has_file(const ft_artifact *a, const char *name, const char *text)
{
    const void *data;
    size_t bytes;
    ft_error err;
    return a != NULL && ft_artifact_file(a, name, &data, &bytes, &err) == FT_OK &&
           bytes == strlen(text) && memcmp(data, text, bytes) == 0;
}

static void test_tokenizer(void)
{
    tiny t;
    tiny_make(&t, TINY_BERT, "");
    tiny_write(&t);
    ft_conversion *conversion = converted_open(&t, &keep);
    has(conversion->notes.message[0].text, "no tokenizer.json",
        "a note reports a missing tokenizer");
    ft_conversion_close(conversion);

    char *text = edited(tiny_json, "", "");
    tiny_write_file(&t, "tokenizer.json", text);
    ft_artifact *a = converted(&t, &keep);
    ok(has_file(a, "tokenizer.json", text), "tokenizer.json is copied into the artifact");
    ok(a != NULL && ft_artifact_find_file(a, "config.json") != NULL,
       "config.json is copied into the artifact");
    ft_artifact_close(a);
    free(text);
    tiny_remove(&t);
}

/* The tokenizer's problems are found at conversion, and the option to leave it out is named. */
static void test_unusable_tokenizer(void)
{
    static const ft_convert_options ids_only = { .no_tokenizer = true };
    tiny t;
    tiny_make(&t, TINY_BERT, "");
    char *text = edited(tiny_json, "'WordPiece'", "'Guess'");
    tiny_write_file(&t, "tokenizer.json", text);
    ok(converted(&t, &keep) == NULL, "a tokenizer.json that cannot be used is refused");
    has(converted_problem(0), "tokenizer.json: model.type: found \"Guess\", expected",
        "the error names the component that cannot be used");
    has(converted_problem(0), "--no-tokenizer leaves the tokenizer out",
        "the error names the option that leaves the tokenizer out");
    ft_conversion *conversion = converted_open(&t, &ids_only);
    ok(conversion != NULL && conversion->n_files == 1, "no_tokenizer leaves the tokenizer out");
    has(conversion->notes.message[0].text, "the artifact will take token ids",
        "a note says that the artifact takes token ids");
    ft_conversion_close(conversion);
    free(text);
    tiny_remove(&t);
}

static void test_made_tokenizer(void)
{
    tiny t;
    tiny_make(&t, TINY_BERT, "");
    tiny_write(&t);
    tiny_write_file(&t, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n");
    ft_conversion *conversion = converted_open(&t, &keep);
    if (conversion == NULL)
        bail_out("%s", converted_problem(0));
    ok(conversion->n_files == 2 && strcmp(conversion->file[1].name, "tokenizer.json") == 0,
       "a vocab.txt becomes the tokenizer.json of the artifact");
    has(conversion->notes.message[0].text, "made from the files of a BertTokenizer",
        "a note tells the class of the tokenizer");
    ft_conversion_close(conversion);
    tiny_remove(&t);
}

static void test_files(void)
{
    tiny t, rest;
    char first[128], second[128];
    tiny_make(&t, TINY_BERT, "");
    tiny_make(&rest, TINY_BERT, "");
    while (rest.count > 2)
        tiny_drop(&rest, rest.name[rest.count - 1]);
    for (size_t i = 0; i < rest.count; i++)
        tiny_drop(&t, rest.name[i]);
    tiny_write(&t);
    tiny_write(&rest);
    snprintf(first, sizeof first, "%s/model.safetensors", t.folder);
    snprintf(second, sizeof second, "%s/model.safetensors", rest.folder);
    const char *paths[] = { first, second };
    ft_conversion *conversion;
    memset(&converted_problems, 0, sizeof converted_problems);
    ok(ft_conversion_open(&conversion, paths, 2, &keep, &converted_problems) == FT_OK,
       "two files are converted as one checkpoint, with the config.json next to the first");
    ft_conversion_close(conversion);
    ok(ft_conversion_open(&conversion, paths, 1, &keep, &converted_problems) == FT_EFORMAT,
       "a checkpoint with a missing file is refused");
    tiny_remove(&t);
    tiny_remove(&rest);
}

/* ---- Reproducible --------------------------------------------------------------------------- */

static void test_reproducible(void)
{
    tiny t;
    char path[2][128];
    unsigned char *bytes[2];
    size_t size[2];
    tiny_make_classifier(&t);
    tiny_write(&t);
    for (int i = 0; i < 2; i++) {
        mode_t mask = umask(i == 0 ? 022 : 077);
        snprintf(path[i], sizeof path[i], "%s/%d.ft", t.folder, i);
        ft_conversion *conversion = converted_open(&t, &keep);
        if (conversion == NULL || converted_write(conversion, path[i]) != FT_OK)
            bail_out("%s", converted_problem(0));
        ft_conversion_close(conversion);
        umask(mask);
        bytes[i] = folder_read(path[i], &size[i]);
    }
    ok(size[0] == size[1] && memcmp(bytes[0], bytes[1], size[0]) == 0,
       "converting the same checkpoint twice gives the same bytes, even with a different umask");
    free(bytes[0]);
    free(bytes[1]);
    tiny_remove(&t);
}

int main(void)
{
    test_bert();
    test_bert_classifier();
    test_pooler_without_classifier();
    test_legacy_names();
    test_roberta();
    test_distilbert();
    test_sentence();
    test_lowercase();
    test_dense_files();
    test_unused();
    test_tokenizer();
    test_unusable_tokenizer();
    test_made_tokenizer();
    test_files();
    test_reproducible();
    return done_testing();
}
