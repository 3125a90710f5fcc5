// Convolutions of few channels, over two axes, as they are defined: where a product of matrices would be mostly padding. Groups
// have `ci` input and `co` output channels each.
struct geometry { i64 n, groups, ci, co, ih, iw, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw; };

// One output position for B output channels of a group in each thread.
template <typename T, int B>
__global__ void direct_forward(i64 total, const __grid_constant__ geometry g, const T* __restrict__ x, const T* __restrict__ weight,
                               T* __restrict__ y) {
    typedef typename of<T>::wide W;
    int ih = (int)g.ih, iw = (int)g.iw, kh = (int)g.kh, kw = (int)g.kw;
    i64 blocks = g.groups * (g.co / B), plane = g.oh * g.ow, taps = g.kh * g.kw;
    EACH(e, total) {
        i64 at, block, w0, h0, n;
        i64 rest = split(e, plane, at);
        n = split(rest, blocks, block);
        h0 = split(at, g.ow, w0);
        i64 first = block * B, group = first / g.co;
        const T* from = x + (n * g.groups + group) * g.ci * g.ih * g.iw;
        const T* by = weight + first * g.ci * taps;
        int top = (int)(h0 * g.sh - g.ph), left = (int)(w0 * g.sw - g.pw);
        W sum[B];
#pragma unroll
        for (int b = 0; b < B; b++) sum[b] = 0;
        for (int c = 0; c < (int)g.ci; c++) {
            for (int i = 0; i < kh; i++) {
                int h = top + i * (int)g.dh;
                if (h < 0 || h >= ih) continue;
                for (int j = 0; j < kw; j++) {
                    int w = left + j * (int)g.dw;
                    if (w < 0 || w >= iw) continue;
                    W v = wide(from[h * iw + w]);
#pragma unroll
                    for (int b = 0; b < B; b++) sum[b] += v * wide(by[b * g.ci * taps + i * kw + j]);
                }
            }
            from += g.ih * g.iw;
            by += taps;
        }
        T* to = y + (n * g.groups * g.co + first) * plane + at;
#pragma unroll
        for (int b = 0; b < B; b++) to[b * plane] = narrow<T>(sum[b]);
    }
}

// One input position for B input channels of a group in each thread.
template <typename T, int B>
__global__ void direct_to_data(i64 total, const __grid_constant__ geometry g, const T* __restrict__ weight, const T* __restrict__ y,
                               T* __restrict__ x) {
    typedef typename of<T>::wide W;
    int oh = (int)g.oh, ow = (int)g.ow, kh = (int)g.kh, kw = (int)g.kw, sh = (int)g.sh, sw = (int)g.sw;
    i64 blocks = g.groups * (g.ci / B), plane = g.ih * g.iw, taps = g.kh * g.kw;
    EACH(e, total) {
        i64 at, block, w0, h0, n;
        i64 rest = split(e, plane, at);
        n = split(rest, blocks, block);
        h0 = split(at, g.iw, w0);
        i64 first = block * B, group = first / g.ci, channel = first - group * g.ci;
        const T* from = y + (n * g.groups + group) * g.co * g.oh * g.ow;
        const T* by = weight + (group * g.co * g.ci + channel) * taps;
        int top = (int)(h0 + g.ph), left = (int)(w0 + g.pw);
        W sum[B];
#pragma unroll
        for (int b = 0; b < B; b++) sum[b] = 0;
        for (int c = 0; c < (int)g.co; c++) {
            for (int i = 0; i < kh; i++) {
                int h = top - i * (int)g.dh;
                if (h < 0 || h % sh != 0 || h / sh >= oh) continue;
                for (int j = 0; j < kw; j++) {
                    int w = left - j * (int)g.dw;
                    if (w < 0 || w % sw != 0 || w / sw >= ow) continue;
                    W v = wide(from[(h / sh) * ow + w / sw]);
#pragma unroll
                    for (int b = 0; b < B; b++) sum[b] += v * wide(by[b * taps + i * kw + j]);
                }
            }
            from += g.oh * g.ow;
            by += g.ci * taps;
        }
        T* to = x + (n * g.groups * g.ci + first) * plane + at;
#pragma unroll
        for (int b = 0; b < B; b++) to[b * plane] = narrow<T>(sum[b]);
    }
}

// The same without groups, where the weights fit into shared memory: B results of one position in each thread, so that each
// element that is read serves B products, and the window is K by K.
template <typename T, int K, int B, int S>
__global__ void few_forward(i64 total, const __grid_constant__ geometry g, const T* __restrict__ x, const T* __restrict__ weight,
                            T* __restrict__ y) {
    typedef typename of<T>::wide W;
    __shared__ alignas(16) W by[S];
    int ci = (int)g.ci, co = (int)g.co, ih = (int)g.ih, iw = (int)g.iw, first = blockIdx.y * B;
    for (int e = threadIdx.x; e < ci * K * K * B; e += blockDim.x) {
        int b = e % B, k = e / B;
        by[e] = first + b < co ? (W)wide(weight[(i64)(first + b) * ci * K * K + k]) : (W)0;
    }
    __syncthreads();
    i64 plane = g.oh * g.ow;
    EACH(e, total) {
        i64 at, w0, n = split(e, plane, at), h0 = split(at, g.ow, w0);
        const T* from = x + n * ci * g.ih * g.iw;
        int top = (int)(h0 * g.sh - g.ph), left = (int)(w0 * g.sw - g.pw);
        W sum[B];
#pragma unroll
        for (int b = 0; b < B; b++) sum[b] = 0;
        for (int c = 0; c < ci; c++) {
            W v[K * K];
#pragma unroll
            for (int k = 0; k < K * K; k++) {
                int h = top + k / K * (int)g.dh, w = left + k % K * (int)g.dw;
                v[k] = h >= 0 && h < ih && w >= 0 && w < iw ? (W)wide(from[h * iw + w]) : (W)0;
            }
#pragma unroll
            for (int k = 0; k < K * K; k++)
#pragma unroll
                for (int b = 0; b < B; b++) sum[b] += v[k] * by[(c * K * K + k) * B + b];
            from += g.ih * g.iw;
        }
        T* to = y + (n * co + first) * plane + at;
#pragma unroll
        for (int b = 0; b < B; b++) if (first + b < co) to[b * plane] = narrow<T>(sum[b]);
    }
}
template <typename T, int K, int B, int S>
__global__ void few_to_data(i64 total, const __grid_constant__ geometry g, const T* __restrict__ weight, const T* __restrict__ y,
                            T* __restrict__ x) {
    typedef typename of<T>::wide W;
    __shared__ alignas(16) W by[S];
    int ci = (int)g.ci, co = (int)g.co, oh = (int)g.oh, ow = (int)g.ow, first = blockIdx.y * B;
    int sh = (int)g.sh, sw = (int)g.sw;
    for (int e = threadIdx.x; e < co * K * K * B; e += blockDim.x) {
        int b = e % B, k = e / B % (K * K), c = e / (B * K * K);
        by[e] = first + b < ci ? (W)wide(weight[((i64)c * ci + first + b) * K * K + k]) : (W)0;
    }
    __syncthreads();
    i64 plane = g.ih * g.iw;
    EACH(e, total) {
        i64 at, w0, n = split(e, plane, at), h0 = split(at, g.iw, w0);
        const T* from = y + n * co * g.oh * g.ow;
        int top = (int)(h0 + g.ph), left = (int)(w0 + g.pw);
        // Which output each tap of the window leads to; none if it lies outside or between two steps.
        int place[K * K];
#pragma unroll
        for (int k = 0; k < K * K; k++) {
            int h = top - k / K * (int)g.dh, w = left - k % K * (int)g.dw;
            bool inside = h >= 0 && w >= 0;
            if (sh > 1) { inside = inside && h % sh == 0; h /= sh; }
            if (sw > 1) { inside = inside && w % sw == 0; w /= sw; }
            place[k] = inside && h < oh && w < ow ? h * ow + w : -1;
        }
        W sum[B];
#pragma unroll
        for (int b = 0; b < B; b++) sum[b] = 0;
        for (int c = 0; c < co; c++) {
            W v[K * K];
#pragma unroll
            for (int k = 0; k < K * K; k++) v[k] = place[k] >= 0 ? (W)wide(from[place[k]]) : (W)0;
#pragma unroll
            for (int k = 0; k < K * K; k++)
#pragma unroll
                for (int b = 0; b < B; b++) sum[b] += v[k] * by[(c * K * K + k) * B + b];
            from += g.oh * g.ow;
        }
        T* to = x + (n * ci + first) * plane + at;
#pragma unroll
        for (int b = 0; b < B; b++) if (first + b < ci) to[b * plane] = narrow<T>(sum[b]);
    }
}

// The weights of one input and B output channels in each block, from one of gridDim.y parts of the positions: a row of sums for
// each part. The window has K rows and columns.
template <typename T, int K, int B>
__global__ void direct_to_weight(const __grid_constant__ geometry g, const T* __restrict__ x, const T* __restrict__ y,
                                 typename of<T>::wide* __restrict__ sums) {
    typedef typename of<T>::wide W;
    __shared__ W shared[8];
    int ih = (int)g.ih, iw = (int)g.iw;
    i64 c = blockIdx.x % g.ci, first = blockIdx.x / g.ci * B, group = first / g.co;
    i64 plane = g.oh * g.ow, count = g.n * plane, across = g.groups * g.co;
    W sum[B][K * K];
#pragma unroll
    for (int b = 0; b < B; b++)
#pragma unroll
        for (int k = 0; k < K * K; k++) sum[b][k] = 0;
    for (i64 e = blockIdx.y * (i64)blockDim.x + threadIdx.x; e < count; e += (i64)gridDim.y * blockDim.x) {
        i64 at, w0, n = split(e, plane, at), h0 = split(at, g.ow, w0);
        const T* from = x + ((n * g.groups + group) * g.ci + c) * g.ih * g.iw;
        W up[B];
#pragma unroll
        for (int b = 0; b < B; b++) up[b] = wide(y[(n * across + first + b) * plane + at]);
        int top = (int)(h0 * g.sh - g.ph), left = (int)(w0 * g.sw - g.pw);
#pragma unroll
        for (int i = 0; i < K; i++) {
            int h = top + i * (int)g.dh;
            bool inside = h >= 0 && h < ih;
#pragma unroll
            for (int j = 0; j < K; j++) {
                int w = left + j * (int)g.dw;
                W v = inside && w >= 0 && w < iw ? (W)wide(from[h * iw + w]) : (W)0;
#pragma unroll
                for (int b = 0; b < B; b++) sum[b][i * K + j] += v * up[b];
            }
        }
    }
    i64 all = across * g.ci * K * K;
#pragma unroll
    for (int b = 0; b < B; b++)
#pragma unroll
        for (int k = 0; k < K * K; k++) {
            W v = sum[b][k];
            for (int half = 16; half > 0; half /= 2) v += __shfl_down_sync(0xffffffffu, v, half);
            if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
            __syncthreads();
            if (threadIdx.x == 0) {
                W total = shared[0];
                for (int t = 1; t < 8; t++) total += shared[t];
                sums[blockIdx.y * all + ((first + b) * g.ci + c) * K * K + k] = total;
            }
            __syncthreads();
        }
}
// Joins the parts.
template <typename T>
__global__ void direct_joined(i64 all, i64 parts, const typename of<T>::wide* __restrict__ sums, T* __restrict__ weight) {
    EACH(e, all) {
        double sum = 0;
        for (i64 p = 0; p < parts; p++) sum += (double)sums[p * all + e];
        weight[e] = narrow<T>((typename of<T>::wide)sum);
    }
}
