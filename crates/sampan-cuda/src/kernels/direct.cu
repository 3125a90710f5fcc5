// Convolutions of few channels, over two axes, as they are defined: where a product of matrices would be mostly padding. Groups
// have `ci` input and `co` output channels each.
// Products are added in one rounding, which is both exacter and quicker.
__device__ __forceinline__ float fma_of(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double fma_of(double a, double b, double c) { return fma(a, b, c); }

struct geometry { i64 n, groups, ci, co, ih, iw, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw; };

// One output position for B output channels of a group in each thread.
template <typename T, int B>
__global__ void direct_forward(i64 total, const __grid_constant__ geometry g, const T* __restrict__ x, const T* __restrict__ weight,
                               T* __restrict__ y) {
    begin();
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
                    for (int b = 0; b < B; b++) sum[b] = fma_of(v, wide(by[b * g.ci * taps + i * kw + j]), sum[b]);
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
    begin();
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
                    for (int b = 0; b < B; b++) sum[b] = fma_of(v, wide(by[b * taps + i * kw + j]), sum[b]);
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

// ---- without groups, in steps of one, where an image and the weights fit into shared memory ----

// Bytes of shared memory that an image and weights may take.
#define ROOM 45056
template <typename W, int B> struct alignas(sizeof(W) * B < 16 ? sizeof(W) * B : 16) few { W v[B]; };
__device__ __forceinline__ int up4(int n) { return (n + 3) / 4 * 4; }

// Copies rows from `top` on of planes, of which each has `ih` rows and begins `apart` after the one before, with zeros where there is
// nothing; what is made has `height` rows of `width`, the first `left` columns before those of the planes.
template <typename T, typename W>
__device__ __forceinline__ void lay(const T* __restrict__ from, W* to, int planes, int ih, int iw, int top, int left, int height, int width, int apart) {
    u32 all = planes * height * width;
    // Four loads are under way at a time.
    for (u32 start = threadIdx.x; start < all; start += 4 * blockDim.x) {
        W v[4];
#pragma unroll
        for (u32 q = 0; q < 4; q++) {
            u32 e = start + q * blockDim.x, rest = e / (u32)width, w = e - rest * (u32)width, c = rest / (u32)height;
            int y = (int)(rest - c * (u32)height) + top, x = (int)w - left;
            bool inside = e < all && y >= 0 && y < ih && x >= 0 && x < iw;
            v[q] = inside ? (W)wide(from[(i64)((int)c * apart + y) * iw + x]) : (W)0;
        }
#pragma unroll
        for (u32 q = 0; q < 4; q++)
            if (start + q * blockDim.x < all) to[start + q * blockDim.x] = v[q];
    }
}

// Block (x, y) takes images x, x + gridDim.x … and output channels from y * chunk on. A thread has four neighbours in a row of
// B channels. For the gradient of the data the weights are read the other way round.
template <typename T, int K, int B>
__global__ void __launch_bounds__(256) image_forward(const __grid_constant__ geometry g, i64 chunk, i64 turned, const T* __restrict__ x,
                                                     const T* __restrict__ weight, T* __restrict__ y) {
    begin();
    typedef typename of<T>::wide W;
    __shared__ alignas(16) char room[ROOM];
    int ci = (int)g.ci, co = (int)g.co, oh = (int)g.oh, ow = (int)g.ow, first = blockIdx.y * (int)chunk;
    int strips = (ow + 3) / 4, width = 4 * strips + up4(K - 1), height = oh + K - 1, groups = (int)chunk / B;
    W *by = (W*)room, *image = by + ci * K * K * (int)chunk;
#pragma unroll 4
    for (int e = threadIdx.x; e < ci * K * K * (int)chunk; e += blockDim.x) {
        int b = first + e % (int)chunk, k = e / (int)chunk % (K * K), c = e / ((int)chunk * K * K);
        i64 at = turned ? ((i64)c * co + b) * K * K + (K * K - 1 - k) : ((i64)b * ci + c) * K * K + k;
        by[e] = b < co ? (W)wide(weight[at]) : (W)0;
    }
    for (i64 n = blockIdx.x; n < g.n; n += gridDim.x) {
        __syncthreads();
        lay(x + n * ci * g.ih * g.iw, image, ci, (int)g.ih, (int)g.iw, -(int)g.ph, (int)g.pw, height, width, (int)g.ih);
        __syncthreads();
        for (int item = threadIdx.x; item < groups * oh * strips; item += blockDim.x) {
            int strip = item % strips, rest = item / strips, h = rest % oh, group = rest / oh;
            W sum[B][4];
#pragma unroll
            for (int b = 0; b < B; b++)
#pragma unroll
                for (int s = 0; s < 4; s++) sum[b][s] = 0;
            for (int c = 0; c < ci; c++)
#pragma unroll
                for (int i = 0; i < K; i++) {
                    W v[4 + 4 * ((K + 2) / 4)];
                    const W* row = image + (c * height + h + i) * width + 4 * strip;
#pragma unroll
                    for (int q = 0; q < 1 + (K + 2) / 4; q++) {
                        few<W, 4> u = *(const few<W, 4>*)(row + 4 * q);
#pragma unroll
                        for (int s = 0; s < 4; s++) v[4 * q + s] = u.v[s];
                    }
#pragma unroll
                    for (int j = 0; j < K; j++) {
                        few<W, B> f = *(const few<W, B>*)(by + (c * K * K + i * K + j) * (int)chunk + B * group);
#pragma unroll
                        for (int b = 0; b < B; b++)
#pragma unroll
                            for (int s = 0; s < 4; s++) sum[b][s] = fma_of(f.v[b], v[s + j], sum[b][s]);
                    }
                }
            int channel = first + B * group;
#pragma unroll
            for (int b = 0; b < B; b++)
#pragma unroll
                for (int s = 0; s < 4; s++)
                    if (channel + b < co && 4 * strip + s < ow)
                        y[((n * co + channel + b) * oh + h) * ow + 4 * strip + s] = narrow<T>(sum[b][s]);
        }
    }
}

// The weights' gradient, a row of sums for each block. Images are taken in bands of rows; a thread has a row of the window of one
// input and B output channels, and some rows of each band.
template <typename T, int K, int B>
__global__ void __launch_bounds__(256) image_to_weight(const __grid_constant__ geometry g, i64 band, const T* __restrict__ x,
                                                       const T* __restrict__ y, typename of<T>::wide* __restrict__ sums) {
    begin();
    typedef typename of<T>::wide W;
    __shared__ alignas(16) char room[ROOM];
    int ci = (int)g.ci, co = (int)g.co, oh = (int)g.oh, ow = (int)g.ow, rows = (int)band;
    int across = up4(ow), width = across + up4(K - 1), height = rows + K - 1;
    int pieces = co / B * ci * K, splits = blockDim.x / pieces, bands = (oh + rows - 1) / rows;
    int piece = threadIdx.x % pieces, split = threadIdx.x / pieces;
    int i = piece % K, c = piece / K % ci, first = piece / (K * ci) * B;
    W *up = (W*)room, *image = up + co * rows * across;
    W sum[B][K];
#pragma unroll
    for (int b = 0; b < B; b++)
#pragma unroll
        for (int j = 0; j < K; j++) sum[b][j] = 0;
    for (i64 e = blockIdx.x; e < g.n * bands; e += gridDim.x) {
        i64 n = e / bands;
        int top = (int)(e % bands) * rows;
        __syncthreads();
        lay(y + n * co * oh * ow, up, co, oh < top + rows ? oh : top + rows, ow, top, 0, rows, across, oh);
        lay(x + n * ci * g.ih * g.iw, image, ci, (int)g.ih, (int)g.iw, top - (int)g.ph, (int)g.pw, height, width, (int)g.ih);
        __syncthreads();
        if (split < splits)
            for (int h = split; h < rows; h += splits)
                for (int w = 0; w < across; w += 4) {
                    W v[4 + 4 * ((K + 2) / 4)];
                    const W* row = image + (c * height + h + i) * width + w;
#pragma unroll
                    for (int q = 0; q < 1 + (K + 2) / 4; q++) {
                        few<W, 4> u = *(const few<W, 4>*)(row + 4 * q);
#pragma unroll
                        for (int s = 0; s < 4; s++) v[4 * q + s] = u.v[s];
                    }
#pragma unroll
                    for (int b = 0; b < B; b++) {
                        few<W, 4> f = *(const few<W, 4>*)(up + ((first + b) * rows + h) * across + w);
#pragma unroll
                        for (int j = 0; j < K; j++)
#pragma unroll
                            for (int s = 0; s < 4; s++) sum[b][j] = fma_of(f.v[s], v[s + j], sum[b][j]);
                    }
                }
    }
    // Over the threads that shared the rows.
    W* shared = (W*)room;
    __syncthreads();
    if (split < splits)
#pragma unroll
        for (int b = 0; b < B; b++)
#pragma unroll
            for (int j = 0; j < K; j++) shared[(split * pieces + piece) * B * K + b * K + j] = sum[b][j];
    __syncthreads();
    for (int e = threadIdx.x; e < pieces * B * K; e += blockDim.x) {
        W total = 0;
        for (int s = 0; s < splits; s++) total += shared[s * pieces * B * K + e];
        int j = e % K, b = e / K % B, piece = e / (K * B);
        int i = piece % K, c = piece / K % ci, first = piece / (K * ci) * B;
        sums[blockIdx.x * ((i64)co * ci * K * K) + (((i64)(first + b) * ci + c) * K + i) * K + j] = total;
    }
}

// ---- each channel for itself ----

// Four neighbours of a row in each thread, in steps of S. For the gradient of the data (S is 1) the window is read the other way
// round.
template <typename T, int K, int S>
__global__ void depth_forward(i64 total, const __grid_constant__ geometry g, i64 turned, const T* __restrict__ x,
                              const T* __restrict__ weight, T* __restrict__ y) {
    begin();
    typedef typename of<T>::wide W;
    u32 ih = (u32)g.ih, iw = (u32)g.iw, oh = (u32)g.oh, ow = (u32)g.ow, strips = (ow + 3) / 4, channels = (u32)g.groups;
    constexpr int WIDE = 3 * S + K;
    EACH(e, total) {
        i64 strip, h, plane = split(split(e, strips, strip), oh, h);
        const T *from = x + plane * ih * iw, *by = weight + plane % channels * (K * K);
        int top = (int)h * S - (int)g.ph, left = 4 * (int)strip * S - (int)g.pw;
        W sum[4] = {0, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < K; i++) {
            bool inside = (u32)(top + i) < ih;
            W v[WIDE];
#pragma unroll
            for (int w = 0; w < WIDE; w++) v[w] = inside && (u32)(left + w) < iw ? (W)wide(from[(top + i) * (int)iw + left + w]) : (W)0;
#pragma unroll
            for (int j = 0; j < K; j++) {
                W f = wide(by[turned ? K * K - 1 - i * K - j : i * K + j]);
#pragma unroll
                for (int s = 0; s < 4; s++) sum[s] = fma_of(v[s * S + j], f, sum[s]);
            }
        }
        T* to = y + (plane * oh + h) * ow + 4 * strip;
#pragma unroll
        for (int s = 0; s < 4; s++)
            if (4 * strip + s < ow) to[s] = narrow<T>(sum[s]);
    }
}
// The gradient of the data of steps of two: a place is led to by every other row and column of the window. P is the padding's
// remainder.
template <typename T, int K, int P>
__global__ void depth_back2(i64 total, const __grid_constant__ geometry g, const T* __restrict__ weight, const T* __restrict__ y,
                            T* __restrict__ x) {
    begin();
    typedef typename of<T>::wide W;
    u32 ih = (u32)g.ih, iw = (u32)g.iw, oh = (u32)g.oh, ow = (u32)g.ow, strips = (iw + 3) / 4, channels = (u32)g.groups;
    // From the first of the neighbours, outputs from LOW to HIGH lead there.
    constexpr int LOW = -((K - 1) / 2), HIGH = (3 + P) / 2, WIDE = HIGH - LOW + 1;
    EACH(e, total) {
        i64 strip, h, plane = split(split(e, strips, strip), ih, h);
        const T *from = y + plane * oh * ow, *by = weight + plane % channels * (K * K);
        int base = (4 * (int)strip + (int)g.pw) / 2, row = (int)h + (int)g.ph;
        W sum[4] = {0, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < K; i++) {
            if ((row - i) & 1) continue;
            int o = (row - i) >> 1;
            bool inside = (u32)o < oh;
            W v[WIDE];
#pragma unroll
            for (int w = 0; w < WIDE; w++)
                v[w] = inside && (u32)(base + LOW + w) < ow ? (W)wide(from[o * (int)ow + base + LOW + w]) : (W)0;
#pragma unroll
            for (int j = 0; j < K; j++) {
                W f = wide(by[i * K + j]);
#pragma unroll
                for (int s = 0; s < 4; s++)
                    if (((s + P - j) & 1) == 0) sum[s] = fma_of(v[(s + P - j) / 2 - LOW], f, sum[s]);
            }
        }
        T* to = x + (plane * ih + h) * iw + 4 * strip;
#pragma unroll
        for (int s = 0; s < 4; s++)
            if (4 * strip + s < iw) to[s] = narrow<T>(sum[s]);
    }
}

// The weights of one input and B output channels in each block, from one of gridDim.y parts of the positions: a row of sums for
// each part. The window has K rows and columns.
template <typename T, int K, int B>
__global__ void direct_to_weight(const __grid_constant__ geometry g, const T* __restrict__ x, const T* __restrict__ y,
                                 typename of<T>::wide* __restrict__ sums) {
    begin();
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
                for (int b = 0; b < B; b++) sum[b][i * K + j] = fma_of(v, up[b], sum[b][i * K + j]);
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
// Joins the parts: 32 neighbours and 8 threads for each of them in a block.
template <typename T>
__global__ void direct_joined(i64 all, i64 parts, const typename of<T>::wide* __restrict__ sums, T* __restrict__ weight) {
    begin();
    __shared__ double shared[8][32];
    int lane = threadIdx.x % 32, line = threadIdx.x / 32;
    for (i64 start = blockIdx.x * 32ll; start < all; start += gridDim.x * 32ll) {
        double sum = 0;
        if (start + lane < all)
#pragma unroll 4
            for (i64 p = line; p < parts; p += 8) sum += (double)sums[p * all + start + lane];
        __syncthreads();
        shared[line][lane] = sum;
        __syncthreads();
        if (line == 0 && start + lane < all) {
            for (int k = 1; k < 8; k++) sum += shared[k][lane];
            weight[start + lane] = narrow<T>((typename of<T>::wide)sum);
        }
    }
}
