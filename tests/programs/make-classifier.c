/*
 * make-classifier.c - a tiny random BERT, RoBERTa or DistilBERT, for tests.
 *
 *     make-classifier FOLDER LABELS [MEMBERS]
 *
 * Writes a checkpoint with 20 tokens, 10 positions and LABELS classes; with 0 classes it is a
 * sentence encoder with mean pooling.  config.json also gets the MEMBERS of a JSON object.
 * MEMBERS may name another architecture than BertForSequenceClassification: one for token
 * classification, for question answering with 2 labels, or a masked language model.  The tokenizer
 * maps the words "a" to "l" to tokens 5 to 16.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "tests/lib/models/tiny.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char tokenizer[] =
    "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\": [],"
    " \"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true,"
    " \"handle_chinese_chars\": true, \"strip_accents\": null, \"lowercase\": true},"
    " \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"},"
    " \"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"[SEP]\", 3],"
    " \"cls\": [\"[CLS]\", 2]},"
    " \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\","
    " \"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 100,"
    " \"vocab\": {\"[PAD]\": 0, \"[UNK]\": 1, \"[CLS]\": 2, \"[SEP]\": 3, \"[MASK]\": 4,"
    " \"a\": 5, \"b\": 6, \"c\": 7, \"d\": 8, \"e\": 9, \"f\": 10, \"g\": 11, \"h\": 12,"
    " \"i\": 13, \"j\": 14, \"k\": 15, \"l\": 16}}}";

static void add_embedding(tiny *t)
{
    tiny_write_file(t, "modules.json",
                    "[{\"idx\": 0, \"name\": \"0\", \"path\": \"\","
                    " \"type\": \"sentence_transformers.models.Transformer\"},"
                    " {\"idx\": 1, \"name\": \"1\", \"path\": \"1_Pooling\","
                    " \"type\": \"sentence_transformers.models.Pooling\"}]");
    tiny_write_file(t, "1_Pooling/config.json",
                    "{\"word_embedding_dimension\": 8, \"pooling_mode_mean_tokens\": true}");
}

/* A class of transformers: a square linear and a norm, then labels, or only the bias of a tied LM.
 */
static const struct {
    const char *class;
    tiny_kind kind;
    const char *dense, *norm, *output, *bias;
} heads[] = {
    { "BertForSequenceClassification", TINY_BERT, "bert.pooler.dense", NULL, "classifier", NULL },
    { "BertForTokenClassification", TINY_BERT, "bert.pooler.dense", NULL, "classifier", NULL },
    { "BertForQuestionAnswering", TINY_BERT, "bert.pooler.dense", NULL, "qa_outputs", NULL },
    { "BertForMaskedLM", TINY_BERT, "cls.predictions.transform.dense",
      "cls.predictions.transform.LayerNorm", NULL, "cls.predictions.bias" },
    { "RobertaForSequenceClassification", TINY_ROBERTA, "classifier.dense", NULL,
      "classifier.out_proj", NULL },
    { "RobertaForTokenClassification", TINY_ROBERTA, NULL, NULL, "classifier", NULL },
    { "RobertaForQuestionAnswering", TINY_ROBERTA, NULL, NULL, "qa_outputs", NULL },
    { "RobertaForMaskedLM", TINY_ROBERTA, "lm_head.dense", "lm_head.layer_norm", NULL,
      "lm_head.bias" },
    { "DistilBertForSequenceClassification", TINY_DISTILBERT, "pre_classifier", NULL, "classifier",
      NULL },
    { "DistilBertForTokenClassification", TINY_DISTILBERT, NULL, NULL, "classifier", NULL },
    { "DistilBertForQuestionAnswering", TINY_DISTILBERT, NULL, NULL, "qa_outputs", NULL },
    { "DistilBertForMaskedLM", TINY_DISTILBERT, "vocab_transform", "vocab_layer_norm", NULL,
      "vocab_projector.bias" },
};

/* The row of heads[] whose class the members name; the first one by default. */
static size_t find_head(const char *members)
{
    for (size_t i = 0; members != NULL && i < FT_COUNT(heads); i++) {
        char quoted[64];
        snprintf(quoted, sizeof quoted, "\"%s\"", heads[i].class);
        if (strstr(members, quoted) != NULL)
            return i;
    }
    return 0;
}

static void add_classifier(tiny *t, size_t head, int labels)
{
    char members[128];
    if (heads[head].dense != NULL)
        tiny_add_linear(t, heads[head].dense, 8, 8);
    if (heads[head].norm != NULL)
        tiny_add_linear(t, heads[head].norm, 8, 0);
    if (heads[head].output != NULL)
        tiny_add_linear(t, heads[head].output, labels, 8);
    if (heads[head].bias != NULL)
        tiny_add(t, heads[head].bias, FT_F32, 20, 0);
    snprintf(members, sizeof members, "{\"architectures\": [\"%s\"], \"num_labels\": %d}",
             heads[head].class, labels);
    tiny_configure(t, members);
}

int main(int argc, char **argv)
{
    static const char *const prefixes[] = {
        [TINY_BERT] = "bert.", [TINY_ROBERTA] = "roberta.", [TINY_DISTILBERT] = "distilbert."
    };
    tiny t;
    int labels = argc > 2 ? atoi(argv[2]) : -1;
    if (argc < 3 || argc > 4 || labels < 0) {
        fputs("make-classifier FOLDER LABELS [MEMBERS]\n", stderr);
        return 2;
    }
    size_t head = find_head(argc > 3 ? argv[3] : NULL);
    tiny_make(&t, heads[head].kind, labels > 0 ? prefixes[heads[head].kind] : "");
    if (labels > 0)
        add_classifier(&t, head, labels);
    else
        add_embedding(&t);
    if (argc > 3)
        tiny_configure(&t, argv[3]);
    tiny_write_file(&t, "tokenizer.json", tokenizer);
    tiny_write(&t);
    bool fine = rename(t.folder, argv[1]) == 0;
    if (!fine)
        perror(argv[1]);
    tiny_remove(&t);
    return !fine;
}
