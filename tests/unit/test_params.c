/* builds: float double */
/* The flat vector: panels, their tensors, padding, cuts. */
#include "base/memory.h"
#include "learn/params.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A panel with two tensors side by side, an empty one, one of a single row, one of many. */
static void open_params(struct params *params)
{
    *params = (struct params){0};
    size_t panel = params_panel(params, 6, 5); /* 3 units x 2, 4 weights and a bias each */
    params_tensor(params, &(struct tensor){"weights", panel, 0, 4, 3, {3, 2, 4}, true});
    params_tensor(params, &(struct tensor){"bias", panel, 4, 1, 2, {3, 2}, false});
    params_panel(params, 0, 7);
    panel = params_panel(params, 1, 17);
    params_tensor(params, &(struct tensor){"row", panel, 0, 17, 1, {17}, false});
    panel = params_panel(params, 100, 16);
    params_tensor(params, &(struct tensor){"table", panel, 0, 16, 2, {100, 16}, true});
    params_allocate(params);
}

static void test_layout(void **state)
{
    (void)state;
    struct params params;
    open_params(&params);
    assert_int_equal(params.n, 6 * 16 + 0 + 32 + 100 * 16);
    assert_int_equal(params_size(&params, &params.tensors[0]), 24);
    assert_int_equal(params_size(&params, &params.tensors[1]), 6);
    assert_int_equal(params_count(&params), 24 + 6 + 17 + 1600);
    for (size_t p = 0; p < params.n_panels; p++) {
        assert_int_equal(params.panels[p].offset % WIDTH, 0);
        assert_int_equal(params.panels[p].stride % WIDTH, 0);
        assert_ptr_equal(params_rows(&params, p), params.value + params.panels[p].offset);
    }
    assert_int_equal((uintptr_t)params.value % 64, 0);
    for (size_t i = 0; i < params.n; i++)
        assert_true(params.value[i] == 0);
    params_free(&params);
    assert_null(params.value);
}

/* Every number of every tensor has one place, and params_find finds it; the rest is padding. */
static void test_take_put_find(void **state)
{
    (void)state;
    struct params params;
    open_params(&params);
    real *flat = NEW(real, params.n);
    size_t n_found = 0;
    for (size_t t = 0; t < params.n_tensors; t++) {
        const struct tensor *tensor = &params.tensors[t];
        const size_t n = params_size(&params, tensor);
        real *dense = NEW(real, n), *back = NEW(real, n);
        for (size_t i = 0; i < n; i++)
            dense[i] = (real)(10000 * (t + 1) + i);
        params_put(&params, tensor, dense, flat);
        params_take(&params, tensor, flat, back);
        assert_memory_equal(back, dense, n * sizeof(real));
        memory_free(dense);
        memory_free(back);
    }
    for (size_t i = 0; i < params.n; i++) {
        const struct tensor *tensor = params_find(&params, i);
        if (tensor == NULL) {
            assert_true(flat[i] == 0);
            continue;
        }
        n_found++;
        const size_t t = (size_t)(tensor - params.tensors);
        assert_int_equal((size_t)flat[i] / 10000, t + 1);
    }
    assert_int_equal(n_found, params_count(&params));
    assert_null(params_find(&params, params.n));

    /* A tensor is stored in the order of its shape, row by row. */
    const struct panel *panel = &params.panels[0];
    for (size_t row = 0; row < 6; row++) {
        for (size_t c = 0; c < 4; c++)
            assert_true(flat[panel->offset + row * panel->stride + c] ==
                        (real)(10000 + row * 4 + c));
        assert_true(flat[panel->offset + row * panel->stride + 4] == (real)(20000 + row));
    }
    memory_free(flat);
    params_free(&params);
}

/* Cuts are at the beginnings of rows, ascend, cover everything, and are about even. */
static void test_cuts(void **state)
{
    (void)state;
    struct params params;
    open_params(&params);
    for (size_t n = 1; n <= 200; n++) {
        size_t last = 0;
        assert_int_equal(params_cut(&params, 0, n), 0);
        assert_int_equal(params_cut(&params, n, n), params.n);
        for (size_t w = 0; w <= n; w++) {
            const size_t cut = params_cut(&params, w, n);
            assert_true(cut >= last);
            assert_true(cut - last <= params.n / n + 1 + 32);
            last = cut;
            bool at_row = cut == params.n;
            for (size_t p = 0; p < params.n_panels; p++) {
                const struct panel *panel = &params.panels[p];
                at_row |= cut >= panel->offset &&
                          cut < panel->offset + panel->n_rows * panel->stride &&
                          (cut - panel->offset) % panel->stride == 0;
            }
            assert_true(at_row);
        }
    }
    params_free(&params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_take_put_find),
        cmocka_unit_test(test_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
