dnl ft_flags.m4 - compiler warnings, sanitizers, and the flags of the per-instruction-set kernels.
dnl SPDX-License-Identifier: Apache-2.0

dnl FT_ADD_FLAG(VARIABLE, FLAG): append FLAG where the compiler takes it without a word.
AC_DEFUN([FT_ADD_FLAG], [
  ft_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS -Werror $2"
  AC_MSG_CHECKING([whether $CC accepts $2])
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
    [AC_MSG_RESULT([yes]); $1="$$1 $2"], [AC_MSG_RESULT([no])])
  CFLAGS=$ft_save_CFLAGS
])

dnl -ffp-contract=off is arithmetic, not taste: codes must not depend on where the compiler fuses.
AC_DEFUN([FT_WARNINGS], [
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [treat warnings as errors])])
  FT_CFLAGS=
  m4_foreach_w([flag], [-std=gnu11 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
      -Wconversion -Wdouble-promotion -Wvla -Wformat=2 -Wcast-qual -Wundef
      -fvisibility=hidden -fno-semantic-interposition -ffp-contract=off -fno-math-errno -fno-trapping-math -Wno-psabi
      -ftree-loop-vectorize -fvect-cost-model=dynamic],
    [FT_ADD_FLAG([FT_CFLAGS], flag)])
  AS_IF([test "$enable_werror" = yes], [FT_CFLAGS="$FT_CFLAGS -Werror"])
  AC_SUBST([FT_CFLAGS])
])

AC_DEFUN([FT_SANITIZE], [
  AC_ARG_ENABLE([sanitize], [AS_HELP_STRING([--enable-sanitize@<:@=LIST@:>@],
    [build with sanitizers @<:@address,undefined@:>@])], [], [enable_sanitize=no])
  AS_CASE([$enable_sanitize],
    [no], [FT_SAN_FLAGS=; ft_sanitizers=none],
    [yes], [ft_sanitizers=address,undefined],
    [ft_sanitizers=$enable_sanitize])
  AS_IF([test "$ft_sanitizers" != none],
    [FT_SAN_FLAGS="-fsanitize=$ft_sanitizers -fno-sanitize-recover=all -fno-omit-frame-pointer"])
  AC_SUBST([FT_SAN_FLAGS])
  AC_ARG_ENABLE([fuzz], [AS_HELP_STRING([--enable-fuzz],
    [link the fuzz targets with libFuzzer (clang)])], [], [enable_fuzz=no])
  AM_CONDITIONAL([WITH_FUZZ], [test "$enable_fuzz" = yes])
])

dnl The kernels for one instruction set are files compiled with its flags and chosen at run time.
AC_DEFUN([FT_SIMD], [
  FT_AVX2_FLAGS=; FT_AVX512_FLAGS=; FT_AVXVNNI_FLAGS=; FT_AMX_FLAGS=; FT_NEON_FLAGS=
  FT_DOTPROD_FLAGS=; FT_I8MM_FLAGS=
  AS_CASE([$host_cpu], [x86_64], [
    FT_ADD_FLAG([FT_AVX2_FLAGS], [-mavx2 -mfma -mf16c])
    FT_ADD_FLAG([FT_AVXVNNI_FLAGS], [-mavx2 -mfma -mf16c -mavxvnni])
    FT_ADD_FLAG([FT_AVX512_FLAGS],
      [-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vbmi -mavx512vnni -mfma -mf16c -mprefer-vector-width=512])
    FT_ADD_FLAG([FT_AMX_FLAGS], [$FT_AVX512_FLAGS -mamx-tile -mamx-int8])
  ], [aarch64], [
    dnl Scheduled before registers are allocated, loads are so early that gcc spills accumulators.
    FT_ADD_FLAG([FT_NEON_FLAGS], [-fno-schedule-insns])
    FT_ADD_FLAG([FT_DOTPROD_FLAGS], [-march=armv8.2-a+dotprod])
    FT_ADD_FLAG([FT_I8MM_FLAGS], [-march=armv8.2-a+dotprod+i8mm])
  ])
  ft_simd=portable
  AS_IF([test -n "$FT_AVX2_FLAGS"], [
    AC_DEFINE([HAVE_AVX2], [1], [Define to 1 to build the AVX2 kernels.])
    ft_simd="$ft_simd, AVX2"
  ])
  AS_IF([test -n "$FT_AVXVNNI_FLAGS"], [
    AC_DEFINE([HAVE_AVXVNNI], [1], [Define to 1 to build the AVX-VNNI kernels.])
    ft_simd="$ft_simd, AVX-VNNI"
  ])
  AS_IF([test -n "$FT_AVX512_FLAGS"], [
    AC_DEFINE([HAVE_AVX512], [1], [Define to 1 to build the AVX-512 VNNI kernels.])
    ft_simd="$ft_simd, AVX-512 VNNI"
  ])
  AS_IF([test -n "$FT_AVX512_FLAGS" && test -n "$FT_AMX_FLAGS"], [
    AC_DEFINE([HAVE_AMX], [1], [Define to 1 to build the AMX kernels.])
    ft_simd="$ft_simd, AMX"
  ])
  AS_IF([test "$host_cpu" = aarch64], [
    AC_DEFINE([HAVE_NEON], [1], [Define to 1 to build the NEON kernels.])
    ft_simd="$ft_simd, NEON"
  ])
  AS_IF([test -n "$FT_DOTPROD_FLAGS"], [
    AC_DEFINE([HAVE_DOTPROD], [1], [Define to 1 to build the NEON kernels with SDOT.])
    ft_simd="$ft_simd, dot product"
  ])
  AS_IF([test -n "$FT_I8MM_FLAGS"], [
    AC_DEFINE([HAVE_I8MM], [1], [Define to 1 to build the NEON kernels with SMMLA.])
    ft_simd="$ft_simd, i8mm"
  ])
  AC_SUBST([FT_AVX2_FLAGS])
  AC_SUBST([FT_AVXVNNI_FLAGS])
  AC_SUBST([FT_AVX512_FLAGS])
  AC_SUBST([FT_AMX_FLAGS])
  AC_SUBST([FT_NEON_FLAGS])
  AC_SUBST([FT_DOTPROD_FLAGS])
  AC_SUBST([FT_I8MM_FLAGS])
  AM_CONDITIONAL([WITH_AVX2], [test -n "$FT_AVX2_FLAGS"])
  AM_CONDITIONAL([WITH_AVXVNNI], [test -n "$FT_AVXVNNI_FLAGS"])
  AM_CONDITIONAL([WITH_AVX512], [test -n "$FT_AVX512_FLAGS"])
  AM_CONDITIONAL([WITH_NEON], [test "$host_cpu" = aarch64])
  AM_CONDITIONAL([WITH_DOTPROD], [test -n "$FT_DOTPROD_FLAGS"])
  AM_CONDITIONAL([WITH_I8MM], [test -n "$FT_I8MM_FLAGS"])
  AM_CONDITIONAL([WITH_AMX], [test -n "$FT_AVX512_FLAGS" && test -n "$FT_AMX_FLAGS"])
])

dnl FT_IMAGE_LIBRARY(NAME, MODULE): HAVE_LIBNAME and have_name where pkg-config knows the module.
AC_DEFUN([FT_IMAGE_LIBRARY], [
  PKG_CHECK_MODULES([$1], [$2], [
    AC_DEFINE([HAVE_LIB$1], [1], [Define to 1 to read $1 images.])
    AS_VAR_SET([have_]m4_tolower([$1]), [yes])
  ], [AS_VAR_SET([have_]m4_tolower([$1]), [no])])
])
