/* A model uses the skills and groups it declares, and no others. This decides whether data
 * whose items have other skills or groups than the model's are refused. */
#include "base/h5.h"
#include "tiny.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct comm world;

enum { N_ITEMS = 7, N_STUDENTS = 9 };

/* With every kind's default settings and these. */
static const struct {
    const char *kind, *options;
    unsigned uses;
} variants[] = {
    {"rbm", "hidden=4", 0},
    {"dkt", "hidden=4", 0},
    {"dkt", "hidden=4, input=skill", MODEL_SKILLS},
    {"dkt", "hidden=4, input=both", MODEL_SKILLS},
    {"rtrbm", "hidden=4", 0},
    {"rtrbm", "hidden=4, structure=items", 0},
    {"rtrbm", "hidden=4, structure=skills", MODEL_SKILLS},
    {"vae", "hidden=4, dimensions=2", 0},
    {"vae", "hidden=4", MODEL_SKILLS},
    {"lme", "factors=item", 0},
    {"lme", "factors=skill", MODEL_SKILLS},
    {"lme", "factors=item group", MODEL_GROUPS},
    {"bkt", "trace=item", 0},
    {"bkt", "", MODEL_SKILLS},
    {"ktm", "features=student item wins previous_item", 0},
    {"ktm", "features=item skill", MODEL_SKILLS},
    {"ktm", "features=item previous_skill", MODEL_SKILLS},
    {"ktm", "features=item wins:by_skill", MODEL_SKILLS},
    {"blend",
     "members=[{\"kind\":\"rbm\",\"hidden\":\"4\"},{\"kind\":\"dkt\",\"hidden\":\"5\"}]", 0},
    {"blend",
     "members=[{\"kind\":\"lme\",\"factors\":\"group\"},{\"kind\":\"bkt\",\"prior\":\"1\"}]",
     MODEL_SKILLS | MODEL_GROUPS},
};

static void predict(const struct model *model, const struct shard *shard, real *p)
{
    void *work = model->kind->attach(model, shard, TO_TRAIN);
    for (size_t s = 0; s < shard->n_students; s++)
        model->kind->predict(model, work, s, 7, p + shard->first[s]);
    model->kind->detach(work);
}

static void check(const char *kind, const char *options, const unsigned *expected)
{
    struct tiny class;
    struct tiny_model tiny;
    tiny_begin(&class, N_ITEMS, false);
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        const struct rng rng = {.seed = 21, .purpose = RNG_SIMULATE, .who = s};
        tiny_random(&class, &rng, 3 + s, 6);
    }
    tiny_finish(&class, &world);
    tiny_model_open(&tiny, kind, options, &class.dataset);
    int64_t counts[2 * N_ITEMS] = {0};
    const struct item_counts item_counts = {N_ITEMS, counts, counts + N_ITEMS};
    tiny.model->kind->init(tiny.model, 5, &item_counts);
    tiny_model_scatter(&tiny, 0.5, 3);
    const unsigned uses = model_uses(tiny.model);
    if (expected != NULL)
        assert_int_equal(uses, *expected);
    const size_t n = class.shard.n_attempts;
    real *p = NEW(real, n), *other = NEW(real, n);
    predict(tiny.model, &class.shard, p);
    for (size_t i = 0; i < N_ITEMS; i++) {
        if ((uses & MODEL_SKILLS) == 0)
            class.dataset.item_skills[i] = i < 3;
        if ((uses & MODEL_GROUPS) == 0)
            class.dataset.item_group[i] = i < 3 ? -1 : 0;
    }
    predict(tiny.model, &class.shard, other);
    assert_memory_equal(other, p, n * sizeof *p);
    memory_free(p);
    memory_free(other);
    tiny_model_close(&tiny);
    tiny_close(&class);
}

static void test_declared_uses(void **state)
{
    (void)state;
    for (size_t v = 0; v < COUNT(variants); v++)
        check(variants[v].kind, variants[v].options, &variants[v].uses);
    for (size_t k = 0; k < n_model_kinds; k++)
        if (model_kinds[k]->made_by == NULL)
            check(model_kinds[k]->name, "", NULL);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_declared_uses)};
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
