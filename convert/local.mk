# From checkpoints to float artifacts.
# SPDX-License-Identifier: Apache-2.0

# Everything of ft-convert but its main(), for the tests too.
noinst_LTLIBRARIES += convert/libconvert.la
convert_libconvert_la_SOURCES = \
	convert/checkpoint.c convert/checkpoint.h \
	convert/config.c convert/config.h \
	convert/config_reader.h \
	convert/convert.c convert/convert.h \
	convert/copies.c convert/copies.h \
	convert/feed.c convert/feed.h \
	convert/find.c convert/find.h \
	convert/generation.c convert/generation.h \
	convert/json.c convert/json.h \
	convert/labels.c \
	convert/messages.c convert/messages.h \
	convert/meter.c convert/meter.h \
	convert/other_keys.c \
	convert/refuse.c convert/refuse.h \
	convert/report.c convert/report.h \
	convert/rope.c \
	convert/sentence.c convert/sentence.h \
	convert/shard_index.c convert/shard_index.h \
	convert/spare.c convert/spare.h \
	convert/text_file.c convert/text_file.h \
	convert/window.c
convert_libconvert_la_LIBADD = runtime/libcore.la

bin_PROGRAMS += ft-convert
ft_convert_SOURCES = convert/main.c
ft_convert_LDADD = convert/libconvert.la runtime/libtools.la
dist_man_MANS += convert/ft-convert.1
