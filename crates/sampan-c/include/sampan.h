/* sampan: runs networks that were saved as .pdmodel, .json or .onnx.
 *
 * Every function may be called from any thread, and one model may run in many threads at a time. What can fail gives a
 * status, SAMPAN_OK if it did not; sampan_last_error() then has a sentence about it, for the thread that made the call.
 * NULL where a pointer is needed, a number outside its range and a buffer of another size are such failures. A function
 * that fails gives nothing: what it would have written is as it was before.
 */
#ifndef SAMPAN_H
#define SAMPAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What went wrong. */
typedef enum sampan_status {
    SAMPAN_OK = 0,
    SAMPAN_INVALID_ARGUMENT = 1, /* a wrong value, shape or size */
    SAMPAN_INVALID_TYPE = 2,     /* a wrong dtype */
    SAMPAN_OUT_OF_RANGE = 3,     /* an index outside */
    SAMPAN_NOT_FOUND = 4,        /* no such file */
    SAMPAN_PRECONDITION = 5,     /* not allowed in this state */
    SAMPAN_UNIMPLEMENTED = 6,    /* an op that is not known here */
    SAMPAN_UNAVAILABLE = 7,      /* a device or library is missing */
    SAMPAN_NOT_FINITE = 8,       /* NaN or infinity where that is watched for */
    SAMPAN_EXTERNAL = 9,         /* the operating system said no */
    SAMPAN_INTERNAL = 10         /* a mistake in sampan */
} sampan_status;

/* What the elements of a tensor are. */
typedef enum sampan_dtype {
    SAMPAN_BOOL = 0, /* a byte, 0 or 1 */
    SAMPAN_UINT8 = 1,
    SAMPAN_INT8 = 2,
    SAMPAN_INT16 = 3,
    SAMPAN_INT32 = 4,
    SAMPAN_INT64 = 5,
    SAMPAN_FLOAT16 = 6,
    SAMPAN_BFLOAT16 = 7,
    SAMPAN_FLOAT32 = 8,
    SAMPAN_FLOAT64 = 9,
    SAMPAN_COMPLEX64 = 10,
    SAMPAN_COMPLEX128 = 11
} sampan_dtype;

/* A network that is ready to run. */
typedef struct sampan_model sampan_model;

/* What a run gave. */
typedef struct sampan_results sampan_results;

/* What a model takes or gives. The pointers are the model's and live as long as it does. */
typedef struct sampan_port {
    const char *name;
    const int64_t *dims; /* -1 for any extent */
    size_t rank;
    int32_t dtype; /* a sampan_dtype */
} sampan_port;

/* Values in row-major order: an input, which is read while the call lasts, or a result. */
typedef struct sampan_tensor {
    const void *data;
    size_t bytes;
    const int64_t *dims;
    size_t rank;
    int32_t dtype; /* a sampan_dtype */
} sampan_tensor;

/* Memory that results are written into. */
typedef struct sampan_buffer {
    void *data;
    size_t bytes;
} sampan_buffer;

/* The version of the library, such as "0.1.0". */
const char *sampan_version(void);

/* What went wrong in the last call of this thread that failed, or "". It stays until the next such call. */
const char *sampan_last_error(void);

/* Bytes of an element; 0 for a number that is no sampan_dtype. */
size_t sampan_dtype_size(int32_t dtype);

/* How many threads of this process compute: all cores unless it was set. Results do not depend on it. */
size_t sampan_threads(void);
sampan_status sampan_set_threads(size_t threads);

/* Reads a network by one of its files (.pdmodel or .json with the .pdiparams beside it, .onnx), or by the path of the
 * former without an ending, in UTF-8. */
sampan_status sampan_model_load(const char *path, sampan_model **model);

/* Another handle of the same network. Weights and plans are shared; each handle is freed by itself. */
sampan_status sampan_model_clone(const sampan_model *model, sampan_model **clone);

/* Gives a model back; NULL is no matter. Results of its runs stay. */
void sampan_model_free(sampan_model *model);

/* How many inputs and outputs there are; 0 for NULL. */
size_t sampan_model_inputs(const sampan_model *model);
size_t sampan_model_outputs(const sampan_model *model);

/* What is known of an input or output. */
sampan_status sampan_model_input(const sampan_model *model, size_t index, sampan_port *port);
sampan_status sampan_model_output(const sampan_model *model, size_t index, sampan_port *port);

/* Runs the network on inputs in the order of sampan_model_input. */
sampan_status sampan_model_run(const sampan_model *model, const sampan_tensor *inputs, size_t count,
                               sampan_results **results);

/* The same, with the results copied into memory of the caller, each of exactly its size. */
sampan_status sampan_model_run_into(const sampan_model *model, const sampan_tensor *inputs, size_t count,
                                    const sampan_buffer *outputs, size_t output_count);

/* How many results there are; 0 for NULL. */
size_t sampan_results_count(const sampan_results *results);

/* A result; its pointers live as long as `results`. */
sampan_status sampan_results_get(const sampan_results *results, size_t index, sampan_tensor *tensor);

/* Gives results back; NULL is no matter. */
void sampan_results_free(sampan_results *results);

#ifdef __cplusplus
}
#endif
#endif
