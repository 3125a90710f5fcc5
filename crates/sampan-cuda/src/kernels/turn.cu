// A copy in which the rows become columns: y[b, r, c] = x[b, r, c], where elements of x lie side by side along r and those of y
// along c. A tile goes through shared memory, so that both are read and written side by side.
template <typename T>
__global__ void turn(i64 tiles, i64 rows, i64 columns, i64 x_batch, i64 x_column, i64 y_batch, i64 y_row, const T* __restrict__ x,
                     T* __restrict__ y) {
    begin();
    __shared__ T tile[32][33];
    i64 down = (rows + 31) / 32, across = (columns + 31) / 32;
    int lane = threadIdx.x % 32, line = threadIdx.x / 32;
    for (i64 t = blockIdx.x; t < tiles; t += gridDim.x) {
        i64 tr, tc, b = split(split(t, down, tr), across, tc);
        const T* from = x + b * x_batch;
        T* to = y + b * y_batch;
        i64 r = tr * 32 + lane;
#pragma unroll
        for (int k = 0; k < 32; k += 8) {
            i64 c = tc * 32 + line + k;
            if (r < rows && c < columns) tile[line + k][lane] = from[r + c * x_column];
        }
        __syncthreads();
        i64 c = tc * 32 + lane;
#pragma unroll
        for (int k = 0; k < 32; k += 8) {
            i64 row = tr * 32 + line + k;
            if (row < rows && c < columns) to[row * y_row + c] = tile[lane][line + k];
        }
        __syncthreads();
    }
}
