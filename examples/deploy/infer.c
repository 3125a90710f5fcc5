/* Runs a saved network: infer MODEL
 *
 *   cargo build --release -p sampan-c
 *   cc -O2 -I crates/sampan-c/include examples/deploy/infer.c -L target/release -lsampan_c -Wl,-rpath,$PWD/target/release -o infer
 *   ./infer inference/net.pdmodel
 *
 * Every input is filled with numbers from 0 up to 1, and an extent that may be anything is 1. */
#include <sampan.h>
#include <stdio.h>
#include <stdlib.h>

static void check(sampan_status status, const char *what) {
    if (status != SAMPAN_OK) {
        fprintf(stderr, "%s: %s\n", what, sampan_last_error());
        exit(1);
    }
}

static void print_shape(const int64_t *dims, size_t rank) {
    printf("[");
    for (size_t i = 0; i < rank; i++) {
        printf(i ? ", %lld" : "%lld", (long long)dims[i]);
    }
    printf("]");
}

/* Memory that must be there. */
static void *room(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return memory;
}

static sampan_tensor ramp(const sampan_port *port) {
    if (port->dtype != SAMPAN_FLOAT32) {
        fprintf(stderr, "the input %s is not float32\n", port->name);
        exit(1);
    }
    int64_t *dims = room(port->rank * sizeof *dims);
    size_t count = 1;
    for (size_t i = 0; i < port->rank; i++) {
        dims[i] = port->dims[i] < 0 ? 1 : port->dims[i];
        count *= (size_t)dims[i];
    }
    float *values = room(count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)i / (float)count;
    }
    sampan_tensor tensor = {values, count * sizeof *values, dims, port->rank, SAMPAN_FLOAT32};
    return tensor;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s MODEL\n", argv[0]);
        return 2;
    }
    sampan_model *model;
    check(sampan_model_load(argv[1], &model), argv[1]);

    size_t count = sampan_model_inputs(model);
    sampan_tensor *inputs = room(count * sizeof *inputs);
    for (size_t i = 0; i < count; i++) {
        sampan_port port;
        check(sampan_model_input(model, i, &port), "input");
        inputs[i] = ramp(&port);
        printf("input %s ", port.name);
        print_shape(inputs[i].dims, inputs[i].rank);
        printf("\n");
    }

    sampan_results *results;
    check(sampan_model_run(model, inputs, count, &results), "run");
    for (size_t i = 0; i < sampan_results_count(results); i++) {
        sampan_tensor output;
        check(sampan_results_get(results, i, &output), "result");
        printf("output %zu ", i);
        print_shape(output.dims, output.rank);
        if (output.dtype == SAMPAN_FLOAT32) {
            const float *values = output.data;
            for (size_t k = 0; k < output.bytes / sizeof *values && k < 10; k++) {
                printf(" %.4f", values[k]);
            }
        }
        printf("\n");
    }

    sampan_results_free(results);
    for (size_t i = 0; i < count; i++) {
        free((void *)inputs[i].data);
        free((void *)inputs[i].dims);
    }
    free(inputs);
    sampan_model_free(model);
    return 0;
}
