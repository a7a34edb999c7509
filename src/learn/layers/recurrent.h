/* A stack of recurrent layers over a block of students in time-major order. */
#ifndef COHORT_RECURRENT_H
#define COHORT_RECURRENT_H

#include "data/sequence.h"
#include "kernels/matmul.h"
#include "learn/exact_sum.h"
#include "learn/layers/dense.h"
#include "learn/params.h"

enum recurrent_kind { CELL_RNN, CELL_LSTM, CELL_GRU };

/* What a stack is made of, and where its parameters are. Layer l has a panel of recurrent
 * weights (H rows) and a dense layer from the layer below; layer 0's has biases only, since its
 * input comes as rows of gates. A gate is `width` columns. */
struct recurrent {
    enum recurrent_kind kind;
    size_t n_layers, hidden, width, n_gates;
    size_t recurrent_panel[8];
    struct dense input[8];
};

void recurrent_declare(struct recurrent *stack, enum recurrent_kind kind, size_t n_layers,
                       size_t hidden, struct params *params);
void recurrent_init(const struct recurrent *stack, struct params *params, uint64_t seed);

/* Tensors of one panel whose columns are gates: NAME_GATE for each gate. */
void recurrent_gate_tensors(const struct recurrent *stack, struct params *params, size_t panel,
                            const char *name, int rank, const uint64_t *shape);

/* The matrices of all layers, packed for products; `fresh`: the gru's third gate, whose input
 * is not h; `back`: transposed. */
struct recurrent_packed {
    struct packed recurrent[8], recurrent_back[8], fresh[8], fresh_back[8];
    struct dense_packed input[8];
};
void recurrent_pack(const struct recurrent *stack, const struct params *params,
                    struct recurrent_packed *packed, bool backward);
void recurrent_unpack(struct recurrent_packed *packed);

/* Everything the stack computes for a block: row r of h[l] is the state BEFORE the attempt of
 * row r, so h at step 0 is zero and step t comes from the input of attempt t - 1. */
struct recurrent_run {
    size_t capacity; /* rows there is memory for */
    real *z[8];      /* gates (forward), derivatives by their inputs (backward) */
    real *h[8], *c[8], *gated[8];
    real *dh, *d_below; /* derivatives by the states of a layer and of the one below */
    real *before, *dc, *d_gated, *dh_before; /* scratch */
    real *gradient;                          /* of one panel */
    struct recurrent_packed packed;
};
void recurrent_reserve(const struct recurrent *stack, struct recurrent_run *run,
                       const struct sequence *sequence);
void recurrent_free(struct recurrent_run *run);

/* z[0] holds the inputs of layer 0 in the rows of steps 1, 2, ...; all h follow. */
void recurrent_forward(const struct recurrent *stack, const struct params *params,
                       const struct sequence *sequence, struct recurrent_run *run);

/* run->dh holds derivatives by the top layer's h. Adds the gradients of all panels to the tally
 * and leaves the derivatives by layer 0's inputs in z[0]. Derivatives are cut at steps that are
 * multiples of `window` (0: never). */
void recurrent_backward(const struct recurrent *stack, const struct params *params,
                        const struct sequence *sequence, struct recurrent_run *run,
                        size_t window, struct tally *tally);

/* One step of n students that keeps no earlier steps: z (inputs of layer 0, n rows) and the
 * states h, c (a table of `room` rows per layer) are replaced. `scratch`: 2 tables. The states
 * have the bits that recurrent_forward gives. */
void recurrent_advance(const struct recurrent *stack, const struct params *params,
                       const struct recurrent_packed *packed, size_t n, size_t room, real *z,
                       real *h, real *c, real *scratch);

#endif
