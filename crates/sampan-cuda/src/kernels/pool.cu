// Pooling over planes. `table` has for each of three axes, for each output: where its window begins and ends inside the input,
// and its extent with padding; then, for each input, the first output whose window holds it and one past the last.

struct extents { i64 input[3], output[3]; };

__device__ __forceinline__ const int* windows(const extents& s, const int* table, int axis) {
    for (int a = 0; a < axis; a++) table += 3 * s.output[a] + 2 * s.input[a];
    return table;
}

struct window { int start[3], end[3], full; };
__device__ __forceinline__ window window_of(const extents& s, const int* table, i64 at) {
    window w;
    w.full = 1;
    for (int a = 2; a >= 0; a--) {
        i64 o;
        at = split(at, s.output[a], o);
        const int* t = windows(s, table, a) + 3 * o;
        w.start[a] = t[0]; w.end[a] = t[1]; w.full *= t[2];
    }
    return w;
}
__device__ __forceinline__ void holders(const extents& s, const int* table, i64 at, int first[3], int past[3]) {
    for (int a = 2; a >= 0; a--) {
        i64 i;
        at = split(at, s.input[a], i);
        const int* t = windows(s, table, a) + 3 * s.output[a] + 2 * i;
        first[a] = t[0]; past[a] = t[1];
    }
}
__device__ __forceinline__ i64 volume(const i64 n[3]) { return n[0] * n[1] * n[2]; }

// The largest of each window and its place; of equals the first, and NaN before all others. Either result may be left out.
template <typename T>
__global__ void max_pool(i64 total, extents s, const int* __restrict__ table, const T* __restrict__ x, T* __restrict__ y,
                         i64* __restrict__ index) {
    begin();
    typedef typename of<T>::wide W;
    i64 out = volume(s.output), in = volume(s.input);
    EACH(e, total) {
        i64 at_out;
        const T* plane = x + split(e, out, at_out) * in;
        window w = window_of(s, table, at_out);
        W best = (W)-INFINITY;
        i64 where = (w.start[0] * s.input[1] + w.start[1]) * s.input[2] + w.start[2];
        bool any = false;
        for (int d = w.start[0]; d < w.end[0]; d++)
            for (int h = w.start[1]; h < w.end[1]; h++)
                for (int c = w.start[2]; c < w.end[2]; c++) {
                    i64 at = ((i64)d * s.input[1] + h) * s.input[2] + c;
                    W v = wide(plane[at]);
                    if (!any || v > best || (v != v && best == best)) { best = v; where = at; any = true; }
                }
        if (y) y[e] = narrow<T>(best);
        if (index) index[e] = where;
    }
}

// Each output's gradient goes to the place of its largest input.
template <typename T>
__global__ void max_unpool_windows(i64 total, extents s, const int* __restrict__ table, const i64* __restrict__ index,
                                   const T* __restrict__ dy, T* __restrict__ dx) {
    begin();
    typedef typename of<T>::wide W;
    i64 out = volume(s.output), in = volume(s.input);
    EACH(e, total) {
        i64 at, plane = split(e, in, at);
        int first[3], past[3];
        holders(s, table, at, first, past);
        W sum = 0;
        for (int d = first[0]; d < past[0]; d++)
            for (int h = first[1]; h < past[1]; h++)
                for (int c = first[2]; c < past[2]; c++) {
                    i64 o = plane * out + ((i64)d * s.output[1] + h) * s.output[2] + c;
                    if (index[o] == at) sum += wide(dy[o]);
                }
        dx[e] = narrow<T>(sum);
    }
}

__device__ __forceinline__ double divisor(i64 kind, double fixed, i64 inside, i64 full) { return kind == 0 ? (double)inside : kind == 1 ? (double)full : fixed; }

template <typename T>
__global__ void avg_pool(i64 total, extents s, const int* __restrict__ table, i64 kind, double fixed, const T* __restrict__ x,
                         T* __restrict__ y) {
    begin();
    typedef typename of<T>::wide W;
    i64 out = volume(s.output), in = volume(s.input);
    EACH(e, total) {
        i64 at_out;
        const T* plane = x + split(e, out, at_out) * in;
        window w = window_of(s, table, at_out);
        W sum = 0;
        for (int d = w.start[0]; d < w.end[0]; d++)
            for (int h = w.start[1]; h < w.end[1]; h++)
                for (int c = w.start[2]; c < w.end[2]; c++) sum += wide(plane[((i64)d * s.input[1] + h) * s.input[2] + c]);
        i64 inside = (i64)(w.end[0] - w.start[0]) * (w.end[1] - w.start[1]) * (w.end[2] - w.start[2]);
        y[e] = narrow<T>(inside <= 0 ? (W)0 : sum / (W)divisor(kind, fixed, inside, w.full));
    }
}

template <typename T>
__global__ void avg_unpool(i64 total, extents s, const int* __restrict__ table, i64 kind, double fixed, const T* __restrict__ dy,
                           T* __restrict__ dx) {
    begin();
    typedef typename of<T>::wide W;
    i64 out = volume(s.output), in = volume(s.input);
    EACH(e, total) {
        i64 at, plane = split(e, in, at);
        int first[3], past[3];
        holders(s, table, at, first, past);
        W sum = 0;
        for (int d = first[0]; d < past[0]; d++)
            for (int h = first[1]; h < past[1]; h++)
                for (int c = first[2]; c < past[2]; c++) {
                    i64 o = ((i64)d * s.output[1] + h) * s.output[2] + c;
                    window w = window_of(s, table, o);
                    i64 inside = (i64)(w.end[0] - w.start[0]) * (w.end[1] - w.start[1]) * (w.end[2] - w.start[2]);
                    sum += wide(dy[plane * out + o]) / (W)divisor(kind, fixed, inside, w.full);
                }
        dx[e] = narrow<T>(sum);
    }
}

// The same for planes of two axes, with the place as 32 bits, for the way back.
struct window2 { int top, bottom, left, right; };
__device__ __forceinline__ window2 window2_of(const extents& s, const int* rows, const int* columns, u32 o) {
    u32 h = o / (u32)s.output[2], w = o - h * (u32)s.output[2];
    return {rows[3 * h], rows[3 * h + 1], columns[3 * w], columns[3 * w + 1]};
}
// Windows of at most K rows and columns, whose elements are read all at once. Either result may be left out.
template <typename T, int K>
__global__ void max_small(i64 total, extents s, const int* __restrict__ table, const T* __restrict__ x, T* __restrict__ y,
                          int* __restrict__ index) {
    begin();
    typedef typename of<T>::wide W;
    u32 out = (u32)(s.output[1] * s.output[2]);
    i64 in = s.input[1] * s.input[2];
    int width = (int)s.input[2];
    const int *rows = windows(s, table, 1), *columns = windows(s, table, 2);
    EACH(e, total) {
        i64 o;
        const T* plane = x + split(e, (i64)out, o) * in;
        window2 w = window2_of(s, rows, columns, (u32)o);
        W v[K * K];
#pragma unroll
        for (int k = 0; k < K * K; k++) {
            int h = w.top + k / K, c = w.left + k % K;
            v[k] = h < w.bottom && c < w.right ? (W)wide(plane[h * width + c]) : (W)-INFINITY;
        }
        W best = v[0];
        int which = 0;
#pragma unroll
        for (int k = 1; k < K * K; k++)
            if (v[k] > best || (v[k] != v[k] && best == best)) { best = v[k]; which = k; }
        if (y) y[e] = narrow<T>(best);
        if (index) index[e] = (w.top + which / K) * width + w.left + which % K;
    }
}
template <typename T>
__global__ void max_places(i64 total, extents s, const int* __restrict__ table, const T* __restrict__ x, int* __restrict__ index) {
    begin();
    typedef typename of<T>::wide W;
    u32 out = (u32)(s.output[1] * s.output[2]);
    i64 in = s.input[1] * s.input[2];
    int width = (int)s.input[2];
    const int *rows = windows(s, table, 1), *columns = windows(s, table, 2);
    EACH(e, total) {
        i64 o;
        const T* plane = x + split(e, (i64)out, o) * in;
        window2 w = window2_of(s, rows, columns, (u32)o);
        W best = (W)-INFINITY;
        int where = w.top * width + w.left;
        bool any = false;
        for (int h = w.top; h < w.bottom; h++)
            for (int c = w.left; c < w.right; c++) {
                W v = wide(plane[h * width + c]);
                if (!any || v > best || (v != v && best == best)) { best = v; where = h * width + c; any = true; }
            }
        index[e] = where;
    }
}
// The same for four neighbours in a row, if rows consist of fours.
template <typename T>
__global__ void max_back4(i64 total, extents s, const int* __restrict__ table, const int* __restrict__ index,
                          const T* __restrict__ dy, T* __restrict__ dx) {
    begin();
    typedef typename of<T>::wide W;
    struct alignas(sizeof(T) * 4) fours { T v[4]; };
    u32 width = (u32)s.input[2], each = width / 4, high = (u32)s.input[1];
    int across = (int)s.output[2];
    const int *rows = windows(s, table, 1) + 3 * s.output[1], *columns = windows(s, table, 2) + 3 * s.output[2];
    EACH(e, total / 4) {
        i64 c4, h, plane = split(split(e, each, c4), high, h);
        i64 first = plane * s.output[1] * across;
        int c = 4 * (int)c4, at = (int)h * (int)width + c;
        // Windows from the first that holds one of them to the last; an input that none holds has no windows.
        int from = 0x7fffffff, past = 0;
#pragma unroll
        for (int q = 0; q < 4; q++) {
            int f = columns[2 * (c + q)], p = columns[2 * (c + q) + 1];
            if (p > f) { from = f < from ? f : from; past = p > past ? p : past; }
        }
        W sum[4] = {0, 0, 0, 0};
        for (int i = rows[2 * h]; i < rows[2 * h + 1]; i++)
            for (int j = from; j < past; j++) {
                int d = index[first + i * across + j] - at;
                if (d >= 0 && d < 4) {
                    W g = wide(dy[first + i * across + j]);
#pragma unroll
                    for (int q = 0; q < 4; q++) sum[q] += d == q ? g : (W)0;
                }
            }
        fours out;
#pragma unroll
        for (int q = 0; q < 4; q++) out.v[q] = narrow<T>(sum[q]);
        ((fours*)dx)[e] = out;
    }
}
template <typename T>
__global__ void max_back(i64 total, extents s, const int* __restrict__ table, const int* __restrict__ index,
                         const T* __restrict__ dy, T* __restrict__ dx) {
    begin();
    typedef typename of<T>::wide W;
    u32 in = (u32)(s.input[1] * s.input[2]), width = (u32)s.input[2];
    int across = (int)s.output[2];
    const int *rows = windows(s, table, 1) + 3 * s.output[1], *columns = windows(s, table, 2) + 3 * s.output[2];
    EACH(e, total) {
        i64 rest;
        i64 first = split(e, (i64)in, rest) * s.output[1] * across;
        u32 at = (u32)rest, h = at / width, c = at - h * width;
        const int* places = index + first;
        W sum = 0;
        for (int i = rows[2 * h]; i < rows[2 * h + 1]; i++)
            for (int j = columns[2 * c]; j < columns[2 * c + 1]; j++)
                if (places[i * across + j] == (int)at) sum += wide(dy[first + i * across + j]);
        dx[e] = narrow<T>(sum);
    }
}
