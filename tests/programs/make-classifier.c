/*
 * make-classifier.c - a tiny random BERT, for tests.
 *
 *     make-classifier FOLDER LABELS [MEMBERS]
 *
 * Writes a checkpoint with 20 tokens, 10 positions and LABELS classes; with 0 classes it is a
 * sentence encoder with mean pooling.  config.json also gets the MEMBERS of a JSON object.
 * MEMBERS may name another architecture: BertForTokenClassification, or BertForQuestionAnswering
 * with 2 labels.  The tokenizer maps the words "a" to "l" to tokens 5 to 16.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

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

static void add_classifier(tiny *t, int labels, const char *linear)
{
    char members[128];
    tiny_add_linear(t, "bert.pooler.dense", 8, 8);
    tiny_add_linear(t, linear, labels, 8);
    snprintf(members, sizeof members,
             "{\"architectures\": [\"BertForSequenceClassification\"], \"num_labels\": %d}",
             labels);
    tiny_configure(t, members);
}

int main(int argc, char **argv)
{
    tiny t;
    int labels = argc > 2 ? atoi(argv[2]) : -1;
    if (argc < 3 || argc > 4 || labels < 0) {
        fputs("make-classifier FOLDER LABELS [MEMBERS]\n", stderr);
        return 2;
    }
    tiny_make(&t, TINY_BERT, labels > 0 ? "bert." : "");
    bool answers = argc > 3 && strstr(argv[3], "QuestionAnswering") != NULL;
    if (labels > 0)
        add_classifier(&t, labels, answers ? "qa_outputs" : "classifier");
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
