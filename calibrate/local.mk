# Calibration: counters, methods, weights.
# SPDX-License-Identifier: Apache-2.0

noinst_LTLIBRARIES += calibrate/libcalibrate.la
calibrate_libcalibrate_la_SOURCES = \
	calibrate/counters.c calibrate/counters.h \
	calibrate/counters_file.c calibrate/counters_file.h \
	calibrate/entropy.c \
	calibrate/histogram.c calibrate/histogram.h \
	calibrate/method.c calibrate/method.h calibrate/methods.def \
	calibrate/mse.c
calibrate_libcalibrate_la_LIBADD = runtime/libcore.la
