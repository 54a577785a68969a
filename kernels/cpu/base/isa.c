/*
 * isa.c - detects the instruction sets of the processor.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/isa.h"
#include "runtime/error.h"

#include <stdlib.h>
#include <string.h>

#if defined __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#define EXPECTED_SETS "amx, avx512vnni, avxvnni, avx2 or generic"
#elif defined __aarch64__
#include <sys/auxv.h>
#define EXPECTED_SETS "i8mm, dotprod, neon or generic"
#else
#define EXPECTED_SETS "generic"
#endif

static const char *const names[FT_ISA_COUNT] = {
    [FT_ISA_GENERIC] = "generic",
    [FT_ISA_AVX2] = "avx2",
    [FT_ISA_AVXVNNI] = "avxvnni",
    [FT_ISA_AVX512VNNI] = "avx512vnni",
    [FT_ISA_AMX] = "amx",
    [FT_ISA_NEON] = "neon",
    [FT_ISA_DOTPROD] = "dotprod",
    [FT_ISA_I8MM] = "i8mm",
};

const char *ft_isa_name(ft_isa isa)
{
    return names[isa];
}

#if defined HAVE_AVX2
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

#if defined HAVE_AVXVNNI
/* Older compilers lack a name for this feature: CPUID leaf 7, subleaf 1, EAX bit 4. */
static bool has_avxvnni(void)
{
    unsigned eax, ebx, ecx, edx;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax >> 4 & 1);
}
#endif

#if defined HAVE_AVX512
static bool has_avx512vnni(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
}
#endif

#if defined HAVE_AMX
/*
 * CPUID leaf 7, EDX bits 24 (AMX-TILE) and 25 (AMX-INT8); and the permission of Linux since 5.16:
 * Documentation/arch/x86/xstate.rst.
 */
static bool has_amx(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    unsigned eax, ebx, ecx, edx;
    return has_avx512vnni() && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) &&
           (edx >> 24 & 3) == 3 &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}
#endif

#if defined HAVE_DOTPROD
static bool has_dotprod(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
}
#endif

#if defined HAVE_I8MM
static bool has_i8mm(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
}
#endif

bool ft_isa_supported(ft_isa isa)
{
    switch (isa) {
    case FT_ISA_GENERIC:
        return true;
#if defined HAVE_AVX2
    case FT_ISA_AVX2:
        return has_avx2();
#endif
#if defined HAVE_AVXVNNI
    case FT_ISA_AVXVNNI:
        return has_avxvnni();
#endif
#if defined HAVE_AVX512
    case FT_ISA_AVX512VNNI:
        return has_avx512vnni();
#endif
#if defined HAVE_AMX
    case FT_ISA_AMX:
        return has_amx();
#endif
#if defined HAVE_NEON
    case FT_ISA_NEON:
        return true;
#endif
#if defined HAVE_DOTPROD
    case FT_ISA_DOTPROD:
        return has_dotprod();
#endif
#if defined HAVE_I8MM
    case FT_ISA_I8MM:
        return has_i8mm();
#endif
    default:
        return false;
    }
}

static ft_status parse(ft_isa *out, const char *name, ft_error *err)
{
    for (int isa = 0; isa < FT_ISA_COUNT; isa++) {
        if (strcmp(name, names[isa]) != 0)
            continue;
        if (!ft_isa_supported((ft_isa) isa))
            return ft_fail(err, FT_EUNSUPPORTED,
                           "FT_CPU=%s: not supported by this processor or this build", name);
        *out = (ft_isa) isa;
        return FT_OK;
    }
    return ft_fail(err, FT_EARG, "FT_CPU=%s: unknown instruction set, expected " EXPECTED_SETS,
                   name);
}

ft_status ft_cpu_isa(ft_isa *out, ft_error *err)
{
    const char *requested = getenv("FT_CPU");
    if (requested != NULL && *requested != '\0')
        return parse(out, requested, err);
    ft_isa isa = FT_ISA_COUNT - 1;
    while (!ft_isa_supported(isa))
        isa--;
    *out = isa;
    return FT_OK;
}
