// Products of small float32 matrices, with a bias for each column: tiles of 32 by 32, of which several blocks may make parts
// along k that the last one to come adds up, in order.

#define BM 32
#define BN 32
#define BK 32
#define TM 2
#define TN 4
#define THREADS (BM / TM * (BN / TN))

// Where a matrix begins, and its steps from row to row and from column to column.
struct operand { const float* at; i64 row, column; };

// A_LINE: the elements of a row of `a` lie side by side, else those of a column. B_LINE: the same of `b`. VEC: four at a time.
template <int A_LINE, int B_LINE, int VEC>
__global__ void __launch_bounds__(THREADS) small_product(i64 m, i64 n, i64 k, i64 parts, i64 chunk, const __grid_constant__ operand a,
                                                         const __grid_constant__ operand b, const float* __restrict__ bias,
                                                         float* __restrict__ y, float* __restrict__ partial, int* __restrict__ arrived) {
    begin();
    // Tiles are kept with k outside, so that a thread reads its rows and columns side by side; a pad where that turns them.
    __shared__ alignas(16) float as[2][BK][BM + (A_LINE ? 4 : 0)];
    __shared__ alignas(16) float bs[2][BK][BN + (B_LINE ? 0 : 4)];
    int t = threadIdx.x, tx = t % (BN / TN), ty = t / (BN / TN), part = blockIdx.y % (int)parts;
    i64 across = (n + BN - 1) / BN, m0 = blockIdx.x / across * BM, n0 = blockIdx.x % across * BN;
    i64 k0 = part * chunk, k1 = k0 + chunk < k ? k0 + chunk : k;
    constexpr int W = VEC ? 4 : 1, NA = BM * BK / W / THREADS, NB = BN * BK / W / THREADS;
    float ra[NA][4], rb[NB][4];
    auto load = [](const float* p, bool in, float (&to)[4]) {
        if (VEC) {
            float4 v = in ? *(const float4*)p : make_float4(0, 0, 0, 0);
            to[0] = v.x; to[1] = v.y; to[2] = v.z; to[3] = v.w;
        } else to[0] = in ? *p : 0.0f;
    };
    // Element e of a tile: how far along the lines that lie side by side, and which line.
    auto along = [](int e, int extent, int& line) { line = e / (extent / W); return e % (extent / W) * W; };
    auto fetch = [&](i64 from) {
#pragma unroll
        for (int i = 0; i < NA; i++) {
            int line, at = along(t + i * THREADS, A_LINE ? BK : BM, line);
            i64 row = m0 + (A_LINE ? line : at), column = from + (A_LINE ? at : line);
            load(a.at + row * a.row + column * a.column, row < m && column < k1, ra[i]);
        }
#pragma unroll
        for (int i = 0; i < NB; i++) {
            int line, at = along(t + i * THREADS, B_LINE ? BN : BK, line);
            i64 row = from + (B_LINE ? line : at), column = n0 + (B_LINE ? at : line);
            load(b.at + row * b.row + column * b.column, column < n && row < k1, rb[i]);
        }
    };
    auto put = [&](int s) {
#pragma unroll
        for (int i = 0; i < NA; i++) {
            int line, at = along(t + i * THREADS, A_LINE ? BK : BM, line);
            if (A_LINE)
#pragma unroll
                for (int j = 0; j < W; j++) as[s][at + j][line] = ra[i][j];
            else if (VEC) *(float4*)&as[s][line][at] = make_float4(ra[i][0], ra[i][1], ra[i][2], ra[i][3]);
            else as[s][line][at] = ra[i][0];
        }
#pragma unroll
        for (int i = 0; i < NB; i++) {
            int line, at = along(t + i * THREADS, B_LINE ? BN : BK, line);
            if (!B_LINE)
#pragma unroll
                for (int j = 0; j < W; j++) bs[s][at + j][line] = rb[i][j];
            else if (VEC) *(float4*)&bs[s][line][at] = make_float4(rb[i][0], rb[i][1], rb[i][2], rb[i][3]);
            else bs[s][line][at] = rb[i][0];
        }
    };
    float sum[TM][TN];
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) sum[i][j] = 0;
    int s = 0;
    if (k0 < k1) { fetch(k0); put(0); }
    __syncthreads();
    for (i64 from = k0; from < k1; from += BK) {
        bool more = from + BK < k1;
        if (more) fetch(from + BK);
#pragma unroll
        for (int q = 0; q < BK; q++) {
            float2 u = *(const float2*)&as[s][q][ty * TM];
            float4 v = *(const float4*)&bs[s][q][tx * TN];
            float va[TM] = {u.x, u.y}, vb[TN] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++) sum[i][j] = fmaf(va[i], vb[j], sum[i][j]);
        }
        if (more) put(s ^ 1);
        __syncthreads();
        s ^= 1;
    }
    if (parts > 1) {
        float* all = partial + (i64)blockIdx.x * parts * BM * BN;
        float* mine = all + (i64)part * BM * BN;
#pragma unroll
        for (int i = 0; i < TM; i++) *(float4*)&mine[(i * THREADS + t) * 4] = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
        if (!is_last(arrived + blockIdx.x, (int)parts)) return;
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j++) sum[i][j] = 0;
        for (int p = 0; p < (int)parts; p++)
#pragma unroll
            for (int i = 0; i < TM; i++) {
                float4 v = __ldcg((const float4*)&all[(i64)p * BM * BN + (i * THREADS + t) * 4]);
                sum[i][0] += v.x; sum[i][1] += v.y; sum[i][2] += v.z; sum[i][3] += v.w;
            }
    }
#pragma unroll
    for (int i = 0; i < TM; i++) {
        i64 row = m0 + ty * TM + i;
#pragma unroll
        for (int j = 0; j < TN; j++) {
            i64 column = n0 + tx * TN + j;
            if (row < m && column < n) y[row * n + column] = bias ? sum[i][j] + bias[column] : sum[i][j];
        }
    }
}
