/* Functions of C23 that kernels call where the processor has no instruction for them, and that
   older C libraries do not have. Whoever has them may: these are weak. */

#define WEAK __attribute__((weak))

/* The nearest whole number, of two the even one: adding a number whose last place is 1 rounds. */
#define ROUND_EVEN(NAME, TYPE, LARGE, FABS, COPYSIGN)                   \
    WEAK TYPE NAME(TYPE x)                                              \
    {                                                                   \
        volatile TYPE sum = FABS(x);                                    \
        if (!(sum < LARGE))                                             \
            return x;                                                   \
        sum += LARGE;                                                   \
        return COPYSIGN(sum - LARGE, x);                                \
    }

/* The larger and the smaller of two numbers: no number if one of them is none, and 0 above -0. */
#define LARGER(NAME, TYPE, SIGNBIT)                                     \
    WEAK TYPE NAME(TYPE x, TYPE y)                                      \
    {                                                                   \
        if (x != x || y != y)                                           \
            return x + y;                                               \
        if (x == y)                                                     \
            return SIGNBIT(x) ? y : x;                                  \
        return x > y ? x : y;                                           \
    }

#define SMALLER(NAME, TYPE, SIGNBIT)                                    \
    WEAK TYPE NAME(TYPE x, TYPE y)                                      \
    {                                                                   \
        if (x != x || y != y)                                           \
            return x + y;                                               \
        if (x == y)                                                     \
            return SIGNBIT(x) ? x : y;                                  \
        return x < y ? x : y;                                           \
    }

ROUND_EVEN(roundevenf, float, 8388608.0f, __builtin_fabsf, __builtin_copysignf)
ROUND_EVEN(roundeven, double, 4503599627370496.0, __builtin_fabs, __builtin_copysign)
LARGER(fmaximumf, float, __builtin_signbitf)
LARGER(fmaximum, double, __builtin_signbit)
SMALLER(fminimumf, float, __builtin_signbitf)
SMALLER(fminimum, double, __builtin_signbit)
