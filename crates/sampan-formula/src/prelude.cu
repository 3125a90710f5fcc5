// What the device text of formulas calls: one function for each operation, for float, double, long long and complex
// numbers. Compile with --fmad=false where the CPU's bits are wanted.

typedef long long i64;
#define INFINITY __longlong_as_double(0x7ff0000000000000ll)
#define NAN __longlong_as_double(0x7ff8000000000000ll)
template <typename R> struct cx { R re, im; };
typedef cx<float> c64;
typedef cx<double> c128;

// What every kernel does first: it waits until all that came before it is done and can be seen. Only then may the next kernel take
// its places; were it let in earlier, a whole queue of kernels would stand waiting on the multiprocessors.
__device__ __forceinline__ void begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// ---- reading and writing ----

__device__ __forceinline__ float from_f16(unsigned short h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f; }
__device__ __forceinline__ unsigned short to_f16(float f) { unsigned short h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f)); return h; }
__device__ __forceinline__ float from_bf16(unsigned short h) { return __uint_as_float((unsigned)h << 16); }
__device__ __forceinline__ unsigned short to_bf16(float f) {
#if __CUDA_ARCH__ >= 800
    unsigned short h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
#else
    unsigned b = __float_as_uint(f);
    if (f != f) return (unsigned short)((b | 0x00400000u) >> 16);
    return (unsigned short)((b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
#endif
}
template <typename T, typename S> struct convert { static __device__ __forceinline__ T from(S v) { return (T)v; } };
template <typename R, typename S> struct convert<cx<R>, S> { static __device__ __forceinline__ cx<R> from(S v) { return {(R)v, (R)0}; } };
template <typename R, typename Q> struct convert<cx<R>, cx<Q>> { static __device__ __forceinline__ cx<R> from(cx<Q> v) { return {(R)v.re, (R)v.im}; } };
template <typename T, typename Q> struct convert<T, cx<Q>> { static __device__ __forceinline__ T from(cx<Q> v) { return (T)v.re; } };
template <typename T, typename S> __device__ __forceinline__ T to(S v) { return convert<T, S>::from(v); }
// Floats to integers saturate and NaN is zero, as on the CPU.
__device__ __forceinline__ i64 clamp_to(double v, double lo, double hi) { return v != v ? 0 : (i64)(v < lo ? lo : v > hi ? hi : v); }

// ---- real numbers ----

#define UNARY(name, f32, f64) \
    __device__ __forceinline__ float name(float x) { return f32; } \
    __device__ __forceinline__ double name(double x) { return f64; }
#define BINARY(name, f32, f64) \
    __device__ __forceinline__ float name(float x, float y) { return f32; } \
    __device__ __forceinline__ double name(double x, double y) { return f64; }
#define BOTH1(name, e) UNARY(name, e, e)
#define BOTH2(name, e) BINARY(name, e, e)

__device__ double digamma_of(double x) {
    if (x == 0.0) return copysign(INFINITY, -x);
    double r = 0.0;
    if (x < 0.0) {
        if (x == floor(x)) return NAN;
        r = -3.14159265358979323846 / tan(3.14159265358979323846 * (x - floor(x)));
        x = 1.0 - x;
    }
    for (; x < 10.0; x += 1.0) r -= 1.0 / x;
    double z = 1.0 / (x * x);
    double s = z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
    return r + log(x) - 0.5 / x - s;
}
// Hurwitz zeta by Euler and Maclaurin.
__device__ double zeta_of(double s, double q) {
    const double b[12] = {12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9, 7.47242496e10,
        -2.950130727918164224e12, 1.1646782814350067249e14, -4.5979787224074726105e15, 1.8152105401943546773e17, -7.1661652561756670113e18};
    double sum = pow(q, -s), a = q, t = 0.0;
    for (int i = 0; i < 9 || a <= 9.0; i++) {
        a += 1.0;
        t = pow(a, -s);
        sum += t;
        if (fabs(t) < fabs(sum) * 1e-17) return sum;
    }
    sum += t * a / (s - 1.0) - 0.5 * t;
    double f = 1.0, k = 0.0;
    for (int i = 0; i < 12; i++) {
        f *= s + k;
        t /= a;
        double d = f * t / b[i];
        sum += d;
        if (fabs(d / sum) < 1e-17) break;
        k += 1.0;
        f *= s + k;
        t /= a;
        k += 1.0;
    }
    return sum;
}
__device__ double polygamma_of(int n, double x) {
    if (n == 0) return digamma_of(x);
    double z = tgamma(n + 1.0) * zeta_of(n + 1.0, x);
    return n % 2 ? z : -z;
}
// Regularised incomplete gamma function: a series below, a continued fraction above.
__device__ double gamma_share(double a, double x, bool upper) {
    if (!(x >= 0.0) || !(a >= 0.0)) return NAN;
    if (x == 0.0) return upper ? 1.0 : 0.0;
    if (a == 0.0 || isinf(x)) return upper ? 0.0 : 1.0;
    double scale = exp(a * log(x) - x - lgamma(a));
    if (x < a + 1.0) {
        double term = 1.0 / a, sum = term;
        for (double k = a + 1.0; fabs(term) > fabs(sum) * 1e-17; k += 1.0) { term *= x / k; sum += term; }
        double low = sum * scale;
        return upper ? 1.0 - low : low;
    }
    double b = x + 1.0 - a, c = 1e300, d = 1.0 / b, h = d;
    for (int i = 1; i < 10000; i++) {
        double an = -i * (i - a);
        b += 2.0;
        d = an * d + b; if (fabs(d) < 1e-300) d = 1e-300;
        c = b + an / c; if (fabs(c) < 1e-300) c = 1e-300;
        d = 1.0 / d;
        double step = d * c;
        h *= step;
        if (fabs(step - 1.0) < 1e-16) break;
    }
    double high = scale * h;
    return upper ? high : 1.0 - high;
}
// Beyond 700 the function itself overflows, and its series in 1 / x is exact.
__device__ double bessel_scaled(double x, int order) {
    double a = fabs(x), mu = 4.0 * order * order;
    double sign = order && x < 0.0 ? -1.0 : 1.0;
    if (a < 700.0) return (order ? cyl_bessel_i1(x) : cyl_bessel_i0(x)) * exp(-a);
    double term = 1.0, sum = 1.0;
    for (int k = 1; k < 12; k++) { double o = 2.0 * k - 1.0; term *= -(mu - o * o) / (k * 8.0 * a); sum += term; }
    return sign * sum / sqrt(6.28318530717958647693 * a);
}
__device__ double mantissa_of(double x) { int e; return x == 0.0 || !isfinite(x) ? x : frexp(x, &e); }
__device__ double exponent_of(double x) { int e; if (x == 0.0 || !isfinite(x)) return 0.0; frexp(x, &e); return e; }

BOTH1(f_neg, -x)
BOTH1(f_abs, fabs(x))
BOTH1(f_sign, x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x)
BOTH1(f_recip, 1 / x)
UNARY(f_sqrt, sqrtf(x), sqrt(x))
UNARY(f_rsqrt, 1.0f / sqrtf(x), 1.0 / sqrt(x))
UNARY(f_exp, expf(x), exp(x))
UNARY(f_exp2, exp2f(x), exp2(x))
UNARY(f_expm1, expm1f(x), expm1(x))
UNARY(f_ln, logf(x), log(x))
UNARY(f_log2, log2f(x), log2(x))
UNARY(f_log10, log10f(x), log10(x))
UNARY(f_log1p, log1pf(x), log1p(x))
UNARY(f_sin, sinf(x), sin(x))
UNARY(f_cos, cosf(x), cos(x))
UNARY(f_tan, tanf(x), tan(x))
UNARY(f_asin, asinf(x), asin(x))
UNARY(f_acos, acosf(x), acos(x))
UNARY(f_atan, atanf(x), atan(x))
UNARY(f_sinh, sinhf(x), sinh(x))
UNARY(f_cosh, coshf(x), cosh(x))
UNARY(f_tanh, tanhf(x), tanh(x))
UNARY(f_asinh, asinhf(x), asinh(x))
UNARY(f_acosh, acoshf(x), acosh(x))
UNARY(f_atanh, atanhf(x), atanh(x))
UNARY(f_sigmoid, 1.0f / (1.0f + expf(-x)), 1.0 / (1.0 + exp(-x)))
UNARY(f_softplus, fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))) + (x != x ? x : 0.0f), fmax(x, 0.0) + log1p(exp(-fabs(x))) + (x != x ? x : 0.0))
UNARY(f_erf, erff(x), erf(x))
UNARY(f_erfinv, (float)erfinv((double)x), erfinv(x))
UNARY(f_lgamma, (float)lgamma((double)x), lgamma(x))
UNARY(f_digamma, (float)digamma_of(x), digamma_of(x))
UNARY(f_i0, (float)cyl_bessel_i0((double)x), cyl_bessel_i0(x))
UNARY(f_i0e, (float)bessel_scaled(x, 0), bessel_scaled(x, 0))
UNARY(f_i1, (float)cyl_bessel_i1((double)x), cyl_bessel_i1(x))
UNARY(f_i1e, (float)bessel_scaled(x, 1), bessel_scaled(x, 1))
UNARY(f_floor, floorf(x), floor(x))
UNARY(f_ceil, ceilf(x), ceil(x))
UNARY(f_round, rintf(x), rint(x))
UNARY(f_trunc, truncf(x), trunc(x))
UNARY(f_mantissa, (float)mantissa_of(x), mantissa_of(x))
UNARY(f_exponent, (float)exponent_of(x), exponent_of(x))
BOTH1(f_is_nan, x != x)
BOTH1(f_is_inf, isinf(x) ? 1 : 0)
BOTH1(f_is_finite, isfinite(x) ? 1 : 0)
BOTH1(f_sign_bit, signbit(x) ? 1 : 0)
BOTH1(f_not, x == 0)
BOTH1(f_conj, x)
BOTH1(f_re, x)

BOTH2(f_add, x + y)
BOTH2(f_sub, x - y)
BOTH2(f_mul, x * y)
BOTH2(f_times, x == 0 || y == 0 ? 0 : x * y)
BOTH2(f_div, x / y)
BINARY(f_pow, powf(x, y), pow(x, y))
BINARY(f_atan2, atan2f(x, y), atan2(x, y))
BINARY(f_hypot, hypotf(x, y), hypot(x, y))
BOTH2(f_min, x < y || x != x ? x : y)
BOTH2(f_max, x > y || x != x ? x : y)
BOTH2(f_fmin, x < y || y != y ? x : y)
BOTH2(f_fmax, x > y || y != y ? x : y)
BINARY(f_fmod, fmodf(x, y), fmod(x, y))
__device__ __forceinline__ float f_remainder(float x, float y) { float r = fmodf(x, y); return r != 0 && ((r < 0) != (y < 0)) ? r + y : r; }
__device__ __forceinline__ double f_remainder(double x, double y) { double r = fmod(x, y); return r != 0 && ((r < 0) != (y < 0)) ? r + y : r; }
__device__ __forceinline__ float f_floor_div(float x, float y) { float q = (x - f_remainder(x, y)) / y; return isfinite(q) ? rintf(q) : floorf(x / y); }
__device__ __forceinline__ double f_floor_div(double x, double y) { double q = (x - f_remainder(x, y)) / y; return isfinite(q) ? rint(q) : floor(x / y); }
BINARY(f_copysign, copysignf(x, y), copysign(x, y))
BINARY(f_next_after, nextafterf(x, y), nextafter(x, y))
BOTH2(f_lt, x < y)
BOTH2(f_le, x <= y)
BOTH2(f_gt, x > y)
BOTH2(f_ge, x >= y)
BOTH2(f_eq, x == y)
BOTH2(f_ne, x != y)
BOTH2(f_and, x != 0 && y != 0)
BOTH2(f_or, x != 0 || y != 0)
BINARY(f_polygamma, (float)polygamma_of((int)x, y), polygamma_of((int)x, y))
BINARY(f_gammainc, (float)gamma_share(x, y, false), gamma_share(x, y, false))
BINARY(f_gammaincc, (float)gamma_share(x, y, true), gamma_share(x, y, true))

// ---- integers ----

#define INT1(name, e) __device__ __forceinline__ i64 name(i64 x) { return e; }
#define INT2(name, e) __device__ __forceinline__ i64 name(i64 x, i64 y) { return e; }
INT1(f_neg, (i64)(0ull - (unsigned long long)x))
INT1(f_abs, x < 0 ? (i64)(0ull - (unsigned long long)x) : x)
INT1(f_sign, (x > 0) - (x < 0))
INT1(f_floor, x)
INT1(f_ceil, x)
INT1(f_round, x)
INT1(f_trunc, x)
INT1(f_conj, x)
INT1(f_re, x)
INT1(f_is_nan, 0)
INT1(f_is_inf, 0)
INT1(f_is_finite, 1)
INT1(f_sign_bit, x < 0)
INT1(f_not, x == 0)
INT1(f_bit_not, ~x)
INT2(f_add, (i64)((unsigned long long)x + (unsigned long long)y))
INT2(f_sub, (i64)((unsigned long long)x - (unsigned long long)y))
INT2(f_mul, (i64)((unsigned long long)x * (unsigned long long)y))
INT2(f_times, (i64)((unsigned long long)x * (unsigned long long)y))
INT2(f_min, x < y ? x : y)
INT2(f_max, x > y ? x : y)
INT2(f_fmin, x < y ? x : y)
INT2(f_fmax, x > y ? x : y)
INT2(f_fmod, y == -1 ? 0 : x % y)
__device__ __forceinline__ i64 f_remainder(i64 x, i64 y) { i64 r = f_fmod(x, y); return r != 0 && ((r < 0) != (y < 0)) ? r + y : r; }
__device__ __forceinline__ i64 f_floor_div(i64 x, i64 y) { if (y == -1) return f_neg(x); return x / y - (x % y != 0 && ((x < 0) != (y < 0))); }
INT2(f_lt, x < y)
INT2(f_le, x <= y)
INT2(f_gt, x > y)
INT2(f_ge, x >= y)
INT2(f_eq, x == y)
INT2(f_ne, x != y)
INT2(f_and, x != 0 && y != 0)
INT2(f_or, x != 0 || y != 0)
INT2(f_bit_and, x & y)
INT2(f_bit_or, x | y)
INT2(f_bit_xor, x ^ y)
INT2(f_shl, (i64)((unsigned long long)x << (y & 63)))
INT2(f_shr, x >> (y & 63))
__device__ i64 f_gcd(i64 a, i64 b) { while (b != 0) { i64 t = f_fmod(a, b); a = b; b = t; } return f_abs(a); }
__device__ i64 f_lcm(i64 x, i64 y) { i64 g = f_gcd(x, y); return g == 0 ? 0 : f_abs(f_mul(x / g, y)); }
__device__ i64 f_pow(i64 b, i64 n) {
    if (n < 0) return b == 1 ? 1 : b == -1 ? 1 - 2 * (n & 1) : 0;
    i64 r = 1;
    for (; n > 0; n >>= 1) { if (n & 1) r = f_mul(r, b); b = f_mul(b, b); }
    return r;
}

// ---- complex numbers ----

#define C1(name) template <typename R> __device__ cx<R> name(cx<R> x)
#define C2(name) template <typename R> __device__ cx<R> name(cx<R> x, cx<R> y)
template <typename R> __device__ __forceinline__ cx<R> make(R re, R im) { return {re, im}; }
template <typename R> __device__ __forceinline__ bool is_zero(cx<R> x) { return x.re == 0 && x.im == 0; }
C1(f_neg) { return make<R>(-x.re, -x.im); }
C1(f_conj) { return make<R>(x.re, -x.im); }
C1(f_re) { return make<R>(x.re, 0); }
C1(f_im) { return make<R>(x.im, 0); }
C1(f_abs) { return make<R>((R)hypot((double)x.re, (double)x.im), 0); }
C1(f_angle) { return make<R>((R)atan2((double)x.im, (double)x.re), 0); }
C1(f_not) { return make<R>(is_zero(x), 0); }
C1(f_is_nan) { return make<R>(x.re != x.re || x.im != x.im, 0); }
C1(f_is_inf) { return make<R>(isinf(x.re) || isinf(x.im), 0); }
C1(f_is_finite) { return make<R>(isfinite(x.re) && isfinite(x.im), 0); }
C2(f_add) { return make<R>(x.re + y.re, x.im + y.im); }
C2(f_sub) { return make<R>(x.re - y.re, x.im - y.im); }
C2(f_mul) { return make<R>(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re); }
C2(f_times) { return is_zero(x) || is_zero(y) ? make<R>(0, 0) : f_mul(x, y); }
C2(f_div) {
    if (fabs(y.re) >= fabs(y.im)) {
        R r = y.im / y.re, d = y.re + y.im * r;
        return make<R>((x.re + x.im * r) / d, (x.im - x.re * r) / d);
    }
    R r = y.re / y.im, d = y.re * r + y.im;
    return make<R>((x.re * r + x.im) / d, (x.im * r - x.re) / d);
}
C1(f_recip) { return f_div(make<R>(1, 0), x); }
C1(f_sign) { R a = hypot(x.re, x.im); return a == 0 ? make<R>(0, 0) : make<R>(x.re / a, x.im / a); }
C1(f_exp) { R e = exp(x.re); return x.im == 0 ? make<R>(e, x.im) : make<R>(e * cos(x.im), e * sin(x.im)); }
C1(f_ln) { return make<R>(log(hypot(x.re, x.im)), atan2(x.im, x.re)); }
C1(f_log2) { cx<R> z = f_ln(x); R k = (R)0.69314718055994530942; return make<R>(z.re / k, z.im / k); }
C1(f_log10) { cx<R> z = f_ln(x); R k = (R)2.30258509299404568402; return make<R>(z.re / k, z.im / k); }
C1(f_expm1) { R s = sin(x.im / 2), e = expm1(x.re); return make<R>(e * cos(x.im) - 2 * s * s, exp(x.re) * sin(x.im)); }
C1(f_log1p) { R a = x.re + 1; R q = x.re * (x.re + 2) + x.im * x.im; return make<R>(fabs(q) < (R)0.5 ? log1p(q) / 2 : log(hypot(a, x.im)), atan2(x.im, a)); }
C1(f_sqrt) {
    if (is_zero(x)) return make<R>(0, x.im);
    R a = hypot(x.re, x.im), t = sqrt((fabs(x.re) + a) / 2);
    return x.re >= 0 ? make<R>(t, x.im / (2 * t)) : make<R>(fabs(x.im) / (2 * t), copysign(t, x.im));
}
C1(f_rsqrt) { return f_recip(f_sqrt(x)); }
C1(f_sinh) { return make<R>(sinh(x.re) * cos(x.im), cosh(x.re) * sin(x.im)); }
C1(f_cosh) { return make<R>(cosh(x.re) * cos(x.im), sinh(x.re) * sin(x.im)); }
C1(f_tanh) {
    if (fabs(x.re) > 20) return make<R>(copysign((R)1, x.re), 4 * sin(x.im) * cos(x.im) * exp(-2 * fabs(x.re)));
    R t = tan(x.im), b = 1 + t * t, s = sinh(x.re), r = sqrt(1 + s * s), d = 1 + b * s * s;
    return make<R>(b * r * s / d, t / d);
}
template <typename R> __device__ __forceinline__ cx<R> turned(cx<R> x) { return {-x.im, x.re}; }
template <typename R> __device__ __forceinline__ cx<R> turned_back(cx<R> x) { return {x.im, -x.re}; }
C1(f_sin) { return turned_back(f_sinh(turned(x))); }
C1(f_cos) { return f_cosh(turned(x)); }
C1(f_tan) { return turned_back(f_tanh(turned(x))); }
C1(f_acos) {
    cx<R> a = f_sqrt(make<R>(1 - x.re, -x.im)), b = f_sqrt(make<R>(1 + x.re, x.im));
    return make<R>(2 * atan2(a.re, b.re), asinh(b.re * a.im - b.im * a.re));
}
C1(f_asin) {
    cx<R> a = f_sqrt(make<R>(1 - x.re, -x.im)), b = f_sqrt(make<R>(1 + x.re, x.im));
    return make<R>(atan2(x.re, a.re * b.re - a.im * b.im), asinh(a.re * b.im - a.im * b.re));
}
C1(f_acosh) {
    cx<R> a = f_sqrt(make<R>(x.re - 1, x.im)), b = f_sqrt(make<R>(x.re + 1, x.im));
    return make<R>(asinh(a.re * b.re + a.im * b.im), 2 * atan2(a.im, b.re));
}
C1(f_asinh) { return turned_back(f_asin(turned(x))); }
C1(f_atanh) {
    R d = (1 - x.re) * (1 - x.re) + x.im * x.im;
    return make<R>(log1p(4 * x.re / d) / 4, atan2(2 * x.im, (1 - x.re) * (1 + x.re) - x.im * x.im) / 2);
}
C1(f_atan) { return turned_back(f_atanh(turned(x))); }
C1(f_sigmoid) { cx<R> t = f_tanh(make<R>(x.re / 2, x.im / 2)); return make<R>((1 + t.re) / 2, t.im / 2); }
C2(f_pow) { return is_zero(x) ? (is_zero(y) ? make<R>(1, 0) : make<R>(0, 0)) : f_exp(f_mul(y, f_ln(x))); }
C2(f_eq) { return make<R>(x.re == y.re && x.im == y.im, 0); }
C2(f_ne) { return make<R>(x.re != y.re || x.im != y.im, 0); }
C2(f_lt) { return make<R>(x.re < y.re, 0); }
C2(f_le) { return make<R>(x.re <= y.re, 0); }
C2(f_gt) { return make<R>(x.re > y.re, 0); }
C2(f_ge) { return make<R>(x.re >= y.re, 0); }
C2(f_and) { return make<R>(!is_zero(x) && !is_zero(y), 0); }
C2(f_or) { return make<R>(!is_zero(x) || !is_zero(y), 0); }
C2(f_complex) { return make<R>(x.re, y.re); }

// ---- choices ----

__device__ __forceinline__ bool holds(float c) { return c != 0; }
__device__ __forceinline__ bool holds(double c) { return c != 0; }
__device__ __forceinline__ bool holds(i64 c) { return c != 0; }
template <typename R> __device__ __forceinline__ bool holds(cx<R> c) { return !is_zero(c); }
template <typename T> __device__ __forceinline__ T f_select(T c, T a, T b) { return holds(c) ? a : b; }
