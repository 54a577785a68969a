# Arithmetic: matrices, not models.
# SPDX-License-Identifier: Apache-2.0

noinst_LTLIBRARIES += kernels/libcpu.la
kernels_libcpu_la_SOURCES = \
	kernels/count.c kernels/count.h \
	kernels/cpu/count.c kernels/cpu/count.h \
	kernels/half.h \
	kernels/layout.h \
	kernels/quant.h
kernels_libcpu_la_LIBADD =

kernels_libs = kernels/libcpu.la
