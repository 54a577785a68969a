/*
 * golden_rows.h - reads reference results of other software from tests/golden/.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_GOLDEN_ROWS_H
#define FT_TESTS_LIB_GOLDEN_ROWS_H

#include "runtime/text/tokenizer.h"
#include "tests/tap/tap.h"

#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

enum { GOLDEN_LINE = 1 << 18, GOLDEN_DIGEST = 17 };

/* The path of a file of the source tree. */
static inline const char *source_path(const char *name)
{
    static char path[1024];
    const char *source = getenv("FT_SRCDIR");
    snprintf(path, sizeof path, "%s/%s", source == NULL ? "." : source, name);
    return path;
}

static inline FILE *open_golden(const char *name)
{
    FILE *file = fopen(source_path(name), "rb");
    if (file == NULL)
        bail_out("%s is missing", source_path(name));
    return file;
}

static inline ft_tokenizer *open_tokenizer(const char *name)
{
    ft_error err;
    ft_tokenizer *tokenizer;
    if (ft_tokenizer_open(&tokenizer, source_path(name), &err) != FT_OK)
        bail_out("%s", err.text);
    return tokenizer;
}

/* The next line as JSON, or NULL at the end. */
static inline json_t *read_row(FILE *file)
{
    static char line[GOLDEN_LINE];
    json_error_t why;
    if (fgets(line, sizeof line, file) == NULL)
        return NULL;
    json_t *row = json_loads(line, JSON_ALLOW_NUL, &why);
    if (row == NULL)
        bail_out("%s: %.60s", why.text, line);
    return row;
}

/* An incremental SHA-256, and its first sixteen digits. */
static inline EVP_MD_CTX *digest_begin(void)
{
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    if (digest == NULL || EVP_DigestInit_ex(digest, EVP_sha256(), NULL) != 1)
        bail_out("no SHA-256");
    return digest;
}

static inline void digest_end(EVP_MD_CTX *digest, char text[GOLDEN_DIGEST])
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    EVP_DigestFinal_ex(digest, sum, NULL);
    EVP_MD_CTX_free(digest);
    for (int i = 0; i < GOLDEN_DIGEST / 2; i++)
        snprintf(text + 2 * i, 3, "%02x", sum[i]);
}

#endif
