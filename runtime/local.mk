# Models: load, plan, run.
# SPDX-License-Identifier: Apache-2.0

# Everything, not installed: the tools and the tests link this and may use internals.
noinst_LTLIBRARIES += runtime/libcore.la
runtime_libcore_la_SOURCES = \
	runtime/added_tokens.c runtime/added_tokens.h \
	runtime/bert_normalizer.c runtime/bert_normalizer.h \
	runtime/error.c runtime/error.h \
	runtime/ft.h \
	runtime/json_section.c runtime/json_section.h \
	runtime/mem.c runtime/mem.h \
	runtime/tensor.c runtime/tensor.h \
	runtime/token_ids.h \
	runtime/tokenizer.c runtime/tokenizer.h \
	runtime/tokenizer_json.c runtime/tokenizer_json.h \
	runtime/trie.c runtime/trie.h \
	runtime/unicode.c runtime/unicode.h \
	runtime/utf8.h \
	runtime/wordpiece.c runtime/wordpiece.h
runtime_libcore_la_LIBADD = $(kernels_libs) $(FT_LIBS)

# The installed library: the same objects, only FT_API symbols visible.
lib_LTLIBRARIES += libftruntime.la
libftruntime_la_SOURCES =
libftruntime_la_LIBADD = runtime/libcore.la
libftruntime_la_LDFLAGS = $(AM_LDFLAGS) -no-undefined -version-info 0:0:0
include_HEADERS = runtime/ft.h
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = runtime/ft-runtime.pc
