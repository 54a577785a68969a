/*
 * decode.h - decode token ids to text by the decoder of a tokenizer.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_DECODE_H
#define FT_RUNTIME_TEXT_DECODE_H

#include "runtime/base/strbuf.h"

enum { FT_DECODING_MAX_REPLACE = 4 };

typedef enum ft_decoding_kind {
    FT_DECODING_BLANKS,    /* no decoder: tokens are joined by spaces */
    FT_DECODING_BYTES,     /* ByteLevel: each character encodes a byte */
    FT_DECODING_METASPACE, /* Metaspace: one character encodes spaces */
    FT_DECODING_WORDPIECE, /* WordPiece: a space before tokens without the continuation prefix */
    FT_DECODING_STEPS,     /* any of Replace, ByteFallback, Fuse, Strip */
    FT_DECODING_UNKNOWN,   /* `problem` says why */
} ft_decoding_kind;

typedef struct ft_decoding {
    ft_decoding_kind kind;
    char *blank;     /* METASPACE: encodes a space; SEQUENCE: is stripped; owned */
    bool keep_first; /* METASPACE: keep the spaces of the first token */
    char *prefix;    /* WORDPIECE: "##"; owned */
    bool cleanup;    /* WORDPIECE: no space before punctuation */
    struct {
        char *pattern, *content; /* owned */
    } replace[FT_DECODING_MAX_REPLACE];
    size_t replaces;
    bool bytes;    /* SEQUENCE: tokens such as <0xE2> are bytes */
    bool fuse;     /* SEQUENCE: later steps see all tokens as one */
    int64_t strip; /* SEQUENCE: strip at most this many at the start */
    ft_error problem;
} ft_decoding;

void ft_decoding_fini(ft_decoding *decoding);

/* Incremental decoding, token by token. Initialize with { .decoder_config = ... }. */
typedef struct ft_decode_stream {
    const ft_decoding *decoding;
    ft_text out;   /* decoded text; the caller consumes it and sets bytes to 0 */
    ft_text word;  /* the current token, between steps */
    ft_text wait;  /* bytes of an incomplete character, or of byte tokens */
    size_t tokens; /* so far */
    int64_t stripped;
    bool past_start; /* text has started: nothing more is stripped */
} ft_decode_stream;

/*
 * Append the text that is complete after one more token, or the rest at the end. False when out of
 * memory, or when the token grows by more than ft_strbuf_growth_limit(), which sets
 * stream->token.overflowed.
 */
FT_MUST_USE bool ft_decode_token(ft_decode_stream *stream, const char *text, size_t bytes);
FT_MUST_USE bool ft_decode_finish(ft_decode_stream *stream);
/* Start another text; keeps the memory. */
void ft_decode_stream_restart(ft_decode_stream *stream);
void ft_decode_stream_fini(ft_decode_stream *stream);

#endif
