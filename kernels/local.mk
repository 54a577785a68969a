# Arithmetic: matrices, not models.
# SPDX-License-Identifier: Apache-2.0

noinst_LTLIBRARIES += kernels/libcpu.la
kernels_libcpu_la_SOURCES = \
	kernels/activation.h \
	kernels/half.h \
	kernels/layout.h \
	kernels/quant.h \
	kernels/cpu/attention_i8.c kernels/cpu/attention_i8.h \
	kernels/cpu/gemm_i8.c kernels/cpu/gemm_i8.h \
	kernels/cpu/i8.h \
	kernels/cpu/i8_finish.h \
	kernels/cpu/i8_generic.c \
	kernels/cpu/i8_softmax.h \
	kernels/cpu/isa.c kernels/cpu/isa.h \
	kernels/cpu/simd.h \
	kernels/cpu/simd_math.h
kernels_libcpu_la_LIBADD =

# One library for each instruction set, compiled with its flags and chosen at run time.
if WITH_AVX2
noinst_LTLIBRARIES += kernels/libavx2.la
kernels_libavx2_la_SOURCES = kernels/cpu/i8_avx2.c kernels/cpu/i8_ymm.h
kernels_libavx2_la_CFLAGS = $(AM_CFLAGS) $(FT_AVX2_FLAGS)
kernels_libcpu_la_LIBADD += kernels/libavx2.la
endif
if WITH_AVXVNNI
noinst_LTLIBRARIES += kernels/libavxvnni.la
kernels_libavxvnni_la_SOURCES = kernels/cpu/i8_avxvnni.c kernels/cpu/i8_ymm.h
kernels_libavxvnni_la_CFLAGS = $(AM_CFLAGS) $(FT_AVXVNNI_FLAGS)
kernels_libcpu_la_LIBADD += kernels/libavxvnni.la
endif
if WITH_AVX512
noinst_LTLIBRARIES += kernels/libavx512.la
kernels_libavx512_la_SOURCES = kernels/cpu/i8_avx512.c
kernels_libavx512_la_CFLAGS = $(AM_CFLAGS) $(FT_AVX512_FLAGS)
kernels_libcpu_la_LIBADD += kernels/libavx512.la
endif

kernels_libs = kernels/libcpu.la
