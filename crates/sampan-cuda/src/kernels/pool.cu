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
