# Calibration: from float artifacts and samples to int8 artifacts.
# SPDX-License-Identifier: Apache-2.0

# Everything of ft-calibrate but its main(), for the tests too.
noinst_LTLIBRARIES += calibrate/libcalibrate.la
calibrate_libcalibrate_la_SOURCES = \
	calibrate/amax_lists.c calibrate/amax_lists.h \
	calibrate/awq.c calibrate/awq.h \
	calibrate/blocks.c calibrate/blocks.h \
	calibrate/blocks_stream.c calibrate/blocks_stream.h \
	calibrate/calibrate.c calibrate/calibrate.h \
	calibrate/counters.c calibrate/counters.h \
	calibrate/counters_file.c calibrate/counters_file.h \
	calibrate/describe.c calibrate/describe.h \
	calibrate/entropy.c \
	calibrate/evaluate.c calibrate/evaluate.h \
	calibrate/fold.c calibrate/fold.h \
	calibrate/gptq.c calibrate/gptq.h \
	calibrate/histogram.c calibrate/histogram.h \
	calibrate/inputs.c calibrate/inputs.h \
	calibrate/job.h \
	calibrate/method.c calibrate/method.h \
	calibrate/mse.c \
	calibrate/observe.c calibrate/observe.h \
	calibrate/open.c \
	calibrate/pack.c calibrate/pack.h \
	calibrate/places.c calibrate/places.h \
	calibrate/quantized.c calibrate/quantized.h \
	calibrate/readers.c calibrate/readers.h \
	calibrate/recipe.c calibrate/recipe.h \
	calibrate/refine.c calibrate/refine.h \
	calibrate/report.c calibrate/report.h \
	calibrate/verdict.c calibrate/verdict.h \
	calibrate/weight_report.c calibrate/weight_report.h \
	calibrate/weights.c calibrate/weights.h \
	calibrate/methods.def
calibrate_libcalibrate_la_LIBADD = runtime/libtools.la

bin_PROGRAMS += ft-calibrate
ft_calibrate_SOURCES = calibrate/main.c calibrate/options.c calibrate/options.h
ft_calibrate_LDADD = calibrate/libcalibrate.la runtime/libtools.la
dist_man_MANS += calibrate/ft-calibrate.1
