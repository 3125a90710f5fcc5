// Random numbers from a counter, the same bits as on the CPU: compile without contraction of sums.

struct words { u32 w[4]; };
__device__ __forceinline__ words philox(u64 seed, u64 counter) {
    u32 c0 = (u32)counter, c1 = (u32)(counter >> 32), c2 = 0, c3 = 0, k0 = (u32)seed, k1 = (u32)(seed >> 32);
    for (int r = 0; r < 10; r++) {
        u64 a = 0xD2511F53ull * c0, b = 0xCD9E8D57ull * c2;
        u32 n0 = (u32)(b >> 32) ^ c1 ^ k0, n2 = (u32)(a >> 32) ^ c3 ^ k1;
        c1 = (u32)b; c3 = (u32)a; c0 = n0; c2 = n2;
        k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}
// Element j of a group of 64 is word j / 16 of block j % 16; with two words each, of 32.
__device__ __forceinline__ u32 word32(u64 seed, u64 start, i64 i) {
    i64 g = i / 64; int j = (int)(i % 64);
    return philox(seed, start + 16 * g + j % 16).w[j / 16];
}
__device__ __forceinline__ u64 word64(u64 seed, u64 start, i64 i) {
    i64 g = i / 32; int j = (int)(i % 32);
    words b = philox(seed, start + 16 * g + j % 16);
    int p = j / 16;
    return b.w[2 * p] | (u64)b.w[2 * p + 1] << 32;
}
__device__ __forceinline__ float unit(u32 w) { return (float)(int)(w >> 8) * (1.0f / 16777216.0f); }
__device__ __forceinline__ double unit(u64 w) { return (double)(w >> 11) * (1.0 / 9007199254740992.0); }
__device__ __forceinline__ float open_unit(u32 w) {
    float high = (float)(int)(w >> 16), low = (float)(int)(w & 0xffff);
    return (high * 65536.0f + (low + 0.5f)) * (1.0f / 4294967296.0f);
}
__device__ __forceinline__ double open_unit(u64 w) { return ((double)(w >> 11) + 1.0) * (1.0 / 9007199254740992.0); }

__device__ __forceinline__ float ln(float x) {
    int shifted = __float_as_int(x) - __float_as_int(0.70710678118654752440f);
    int e = shifted >> 23;
    float m = __int_as_float(__float_as_int(x) - (e << 23));
    float s = (m - 1.0f) / (m + 1.0f), s2 = s * s, sum = 0.0f;
    for (int k = 5; k > 0; k--) sum = (sum + 1.0f / (float)(2 * k + 1)) * s2;
    return (float)e * 0.693147180559945309417f + 2.0f * (s + s * sum);
}
__device__ __forceinline__ double ln(double x) {
    i64 shifted = __double_as_longlong(x) - __double_as_longlong(0.70710678118654752440);
    i64 e = shifted >> 52;
    double m = __longlong_as_double(__double_as_longlong(x) - (e << 52));
    double s = (m - 1.0) / (m + 1.0), s2 = s * s, sum = 0.0;
    for (int k = 11; k > 0; k--) sum = (sum + 1.0 / (double)(2 * k + 1)) * s2;
    return (double)e * 0.693147180559945309417 + 2.0 * (s + s * sum);
}
#define TURN(R, BITS, AS_BITS, ROUND, TERMS, HALF_PI) \
    __device__ __forceinline__ void turn(R u, R& s_out, R& c_out) { \
        R rounded = u * (R)4 + ROUND; \
        BITS q = AS_BITS(rounded); \
        R x = (u * (R)4 - (rounded - ROUND)) * HALF_PI, x2 = x * x, sin = 0, cos = 0; \
        for (int k = TERMS; k > 0; k--) { \
            sin = (sin + (R)1) * x2 * ((R)-1 / (R)((2 * k) * (2 * k + 1))); \
            cos = (cos + (R)1) * x2 * ((R)-1 / (R)((2 * k - 1) * (2 * k))); \
        } \
        sin = x + x * sin; cos = (R)1 + cos; \
        R s = (q & 1) == 0 ? sin : cos, c = (q & 1) == 0 ? cos : sin; \
        s_out = (q & 2) == 0 ? s : -s; c_out = ((q + 1) & 2) == 0 ? c : -c; \
    }
TURN(float, u32, __float_as_uint, 12582912.0f, 5, 1.57079632679489661923f)
TURN(double, u64, (u64)__double_as_longlong, 6755399441055744.0, 9, 1.57079632679489661923)

// Where the numbers start, for work that is recorded: it is started again with another place in the stream.
#define FROM_KEPT if (kept) { seed = kept[0]; start = kept[1]; }

template <typename T, typename R> struct draw { static __device__ __forceinline__ float uniform(u64 seed, u64 start, i64 i) { return unit(word32(seed, start, i)); } };
template <typename T> struct draw<T, double> { static __device__ __forceinline__ double uniform(u64 seed, u64 start, i64 i) { return unit(word64(seed, start, i)); } };

template <typename T, typename R>
__global__ void uniform(i64 n, u64 seed, u64 start, const u64* __restrict__ kept, double low, double width, double top, T* __restrict__ y) {
    begin();
    FROM_KEPT
    EACH(i, n) {
        R v = (R)low + draw<T, R>::uniform(seed, start, i) * (R)width;
        y[i] = narrow<T>(v < (R)top ? v : (R)top);
    }
}

template <typename T>
__global__ void normal32(i64 n, u64 seed, u64 start, const u64* __restrict__ kept, double mean, double deviation, T* __restrict__ y) {
    begin();
    FROM_KEPT
    EACH(i, n) {
        i64 g = i / 64; int j = (int)(i % 64), b = j % 16, q = j / 16, p = q / 2;
        words w = philox(seed, start + 16 * g + b);
        float r = sqrtf(-2.0f * ln(open_unit(w.w[2 * p]))) * (float)deviation, s, c;
        turn(unit(w.w[2 * p + 1]), s, c);
        y[i] = narrow<T>((float)mean + r * (q % 2 ? s : c));
    }
}
__global__ void normal64(i64 n, u64 seed, u64 start, const u64* __restrict__ kept, double mean, double deviation, double* __restrict__ y) {
    begin();
    FROM_KEPT
    EACH(i, n) {
        i64 g = i / 32; int j = (int)(i % 32), b = j % 16;
        words w = philox(seed, start + 16 * g + b);
        u64 first = w.w[0] | (u64)w.w[1] << 32, second = w.w[2] | (u64)w.w[3] << 32;
        double r = sqrt(-2.0 * ln(open_unit(first))) * deviation, s, c;
        turn(unit(second), s, c);
        y[i] = mean + r * (j / 16 ? s : c);
    }
}
// 1 where the word is at most `last`.
template <typename T>
__global__ void bernoulli(i64 n, u64 seed, u64 start, const u64* __restrict__ kept, i64 last, T* __restrict__ y) {
    begin();
    FROM_KEPT
    EACH(i, n) y[i] = narrow<T>(last >= 0 && word32(seed, start, i) <= (u32)last ? 1 : 0);
}
// 1 with the probability of the element.
template <typename T>
__global__ void bernoulli_by(i64 n, u64 seed, u64 start, const u64* __restrict__ kept, const T* __restrict__ p, T* __restrict__ y) {
    begin();
    FROM_KEPT
    EACH(i, n) {
        double t = (double)wide(p[i]) * 4294967296.0;
        u64 limit = t > 0 ? (u64)t : 0;
        y[i] = narrow<T>((u64)word32(seed, start, i) < limit ? 1 : 0);
    }
}
template <typename T>
__global__ void integers(i64 n, u64 seed, u64 start, const u64* __restrict__ kept, i64 low, u64 range, T* __restrict__ y) {
    begin();
    FROM_KEPT
    EACH(i, n) y[i] = narrow<T>((i64)((u64)low + __umul64hi(word64(seed, start, i), range)));
}
template <typename T>
__global__ void exponential32(i64 n, u64 seed, u64 start, const u64* __restrict__ kept, double scale, T* __restrict__ y) {
    begin();
    FROM_KEPT
    EACH(i, n) y[i] = narrow<T>(ln(open_unit(word32(seed, start, i))) * (float)scale);
}
__global__ void exponential64(i64 n, u64 seed, u64 start, const u64* __restrict__ kept, double scale, double* __restrict__ y) {
    begin();
    FROM_KEPT
    EACH(i, n) y[i] = ln(open_unit(word64(seed, start, i))) * scale;
}
