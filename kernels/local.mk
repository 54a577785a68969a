# Arithmetic: matrices, not models.
# SPDX-License-Identifier: Apache-2.0

noinst_LTLIBRARIES += kernels/libcpu.la
kernels_libcpu_la_SOURCES = \
	kernels/activation.h \
	kernels/backend.h \
	kernels/check.c \
	kernels/count.c kernels/count.h \
	kernels/cpu/attention_f32.c \
	kernels/cpu/count.c kernels/cpu/count.h \
	kernels/cpu/cpu.h \
	kernels/cpu/embed.c \
	kernels/cpu/linear_f32.c \
	kernels/cpu/maps.c \
	kernels/cpu/norm.c \
	kernels/cpu/observe.c \
	kernels/cpu/pool.c \
	kernels/cpu/rows.h \
	kernels/cpu/rows_generic.c kernels/cpu/rows_impl.h \
	kernels/half.h \
	kernels/layout.h \
	kernels/op.c kernels/op.h kernels/ops.def \
	kernels/quant.h
kernels_libcpu_la_LIBADD =

kernels_libs = kernels/libcpu.la
