/* Describes a data set. It is read in pieces of some million attempts, so the file may be larger
 * than memory. */
#include "base/cell_text.h"
#include "base/fail.h"
#include "base/h5.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "commands/inspect_internal.h"
#include "data/dataset.h"
#include "data/split.h"
#include "data_tools/csv_cell.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 22 };

struct outcomes {
    int64_t n, known, correct;
};

struct counts {
    struct outcomes splits[N_SPLITS];
    int64_t n_students[N_SPLITS]; /* with an attempt in the split */
    int64_t n_shown, n_steps;
    int64_t earliest, latest;
    struct outcomes *items;
    struct outcomes *students; /* of those that are listed */
    size_t n_listed;
};

static void outcomes_add(struct outcomes *outcomes, uint8_t mark)
{
    outcomes->n++;
    outcomes->known += mark_outcome(mark) != UNKNOWN;
    outcomes->correct += mark_outcome(mark) == CORRECT;
}

static double share(const struct outcomes *outcomes)
{
    return outcomes->known > 0 ? (double)outcomes->correct / (double)outcomes->known : NAN;
}

static void count(const struct shard *shard, struct counts *counts)
{
    for (size_t s = 0; s < shard->n_students; s++) {
        bool has[N_SPLITS] = {false};
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            const uint8_t mark = shard->mark[t];
            has[mark_split(mark)] = true;
            counts->n_shown += mark_is_shown(mark);
            counts->n_steps += (mark & MARK_STEP) != 0;
            outcomes_add(&counts->splits[mark_split(mark)], mark);
            outcomes_add(&counts->items[shard->item[t]], mark);
            if (shard->first_student + s < counts->n_listed)
                outcomes_add(&counts->students[shard->first_student + s], mark);
        }
        for (int split = 0; split < N_SPLITS; split++)
            counts->n_students[split] += has[split];
    }
    for (uint64_t t = 0; shard->time != NULL && t < shard->n_attempts; t++) {
        counts->earliest =
            shard->time[t] < counts->earliest ? shard->time[t] : counts->earliest;
        counts->latest = shard->time[t] > counts->latest ? shard->time[t] : counts->latest;
    }
}

static enum status count_all(const struct dataset *dataset, struct counts *counts)
{
    for (size_t first = 0, end = 0; first < dataset->n_students; first = end) {
        for (end = first + 1; end < dataset->n_students &&
                              dataset->first[end + 1] - dataset->first[first] <= PIECE;)
            end++;
        struct shard shard;
        TRY(dataset_read(dataset, first, end - first, &shard));
        count(&shard, counts);
        shard_free(&shard);
    }
    return OK;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* How many attempts students have. */
static json_t *lengths_json(const struct dataset *dataset)
{
    const size_t n = dataset->n_students;
    json_t *object = json_object();
    if (n == 0)
        return object;
    uint64_t *length = NEW_SCRATCH(uint64_t, n);
    for (size_t s = 0; s < n; s++)
        length[s] = dataset->first[s + 1] - dataset->first[s];
    qsort(length, n, sizeof *length, compare);
    json_object_set_new(object, "least", json_integer((json_int_t)length[0]));
    json_object_set_new(object, "median", json_integer((json_int_t)length[n / 2]));
    json_object_set_new(object, "mean", json_real((double)dataset->n_attempts / (double)n));
    json_object_set_new(object, "most", json_integer((json_int_t)length[n - 1]));
    memory_free(length);
    return object;
}

static json_t *splits_json(const struct counts *counts)
{
    json_t *object = json_object();
    for (int split = 0; split < N_SPLITS; split++) {
        const struct outcomes *outcomes = &counts->splits[split];
        json_t *one = json_object();
        json_object_set_new(one, "attempts", json_integer(outcomes->n));
        json_object_set_new(one, "known", json_integer(outcomes->known));
        json_object_set_new(one, "students", json_integer(counts->n_students[split]));
        json_object_set_new(one, "correct", command_json_number(share(outcomes)));
        json_object_set_new(object, split_names[split], one);
    }
    return object;
}

struct truths {
    hid_t file;
    json_t *array;
};

static enum status add_truth(const char *name, void *arg)
{
    struct truths *truths = arg;
    char path[256];
    int rank = 0;
    uint64_t shape[4] = {0};
    snprintf(path, sizeof path, "/truth/%s", name);
    TRY(h5_shape(truths->file, path, &rank, shape));
    json_t *object = json_object(), *sizes = json_array();
    for (int d = 0; d < rank; d++)
        json_array_append_new(sizes, json_integer((json_int_t)shape[d]));
    json_object_set_new(object, "name", command_json_text(name));
    json_object_set_new(object, "shape", sizes);
    json_array_append_new(truths->array, object);
    return OK;
}

static enum status truths_json(const char *path, json_t *object)
{
    struct truths truths = {.file = h5_open(path, MPI_COMM_SELF, 1), .array = json_array()};
    json_object_set_new(object, "truth", truths.array);
    if (truths.file < 0)
        return fail(BAD_DATA,
                    "%s: HDF5 cannot open the file a second time; was it removed or replaced? "
                    "Run the same command again",
                    path);
    enum status status = h5_each(truths.file, "/truth", add_truth, &truths);
    h5_let_go(truths.file);
    return status;
}

static json_t *outcomes_json(const char *name, const struct outcomes *outcomes)
{
    json_t *object = json_object();
    json_object_set_new(object, "name", command_json_text(name));
    json_object_set_new(object, "attempts", json_integer(outcomes->n));
    json_object_set_new(object, "correct", command_json_number(share(outcomes)));
    return object;
}

static json_t *items_json(const struct dataset *dataset, const struct counts *counts)
{
    json_t *array = json_array();
    for (size_t i = 0; i < dataset->n_items; i++) {
        json_t *object = outcomes_json(names_get(&dataset->items, i), &counts->items[i]);
        const int32_t group = dataset->item_group[i];
        json_t *skills = json_array();
        for (uint64_t k = dataset->item_first[i]; k < dataset->item_first[i + 1]; k++)
            json_array_append_new(skills, command_json_text(names_get(
                                              &dataset->skills, dataset->item_skills[k])));
        json_object_set_new(
            object, "group",
            group < 0 ? json_null()
                      : command_json_text(names_get(&dataset->groups, (size_t)group)));
        json_object_set_new(object, "skills", skills);
        json_array_append_new(array, object);
    }
    return array;
}

static enum status students_json(const struct dataset *dataset, const struct counts *counts,
                                 json_t *object)
{
    struct names names;
    enum status status = dataset_read_names(dataset, 0, counts->n_listed, &names);
    json_t *array = json_array();
    for (size_t s = 0; status == OK && s < counts->n_listed; s++)
        json_array_append_new(array, outcomes_json(names_get(&names, s), &counts->students[s]));
    json_object_set_new(object, "student_list", array);
    names_free(&names);
    return status == OK ? OK : fail_context(status, "%s", dataset->path);
}

/* Targets of whole students; null where there are none. */
static json_t *targets_json(const struct dataset *dataset)
{
    if (dataset->target == NULL)
        return json_null();
    int64_t n = 0;
    double least = INFINITY, most = -INFINITY, sum = 0;
    for (size_t s = 0; s < dataset->n_students; s++)
        if (!isnan(dataset->target[s])) {
            n++;
            sum += dataset->target[s];
            least = fmin(least, dataset->target[s]);
            most = fmax(most, dataset->target[s]);
        }
    json_t *object = json_object();
    json_object_set_new(object, "n", json_integer(n));
    json_object_set_new(object, "least", command_json_number(least));
    json_object_set_new(object, "mean", command_json_number(sum / (double)n));
    json_object_set_new(object, "most", command_json_number(most));
    return object;
}

/* Covariates of attempts: their names, and how many levels they have if they are factors. */
static json_t *covariates_json(const struct covariates *covariates)
{
    json_t *array = json_array();
    for (size_t k = 0; k < covariates->names.n; k++) {
        const size_t n_levels = covariates_n_levels(covariates, k);
        json_t *object = json_object();
        json_object_set_new(object, "name",
                            command_json_text(names_get(&covariates->names, k)));
        json_object_set_new(object, "levels",
                            n_levels > 0 ? json_integer((json_int_t)n_levels) : json_null());
        json_array_append_new(array, object);
    }
    return array;
}

static enum status describe(const struct dataset *dataset, const struct inspect_flags *flags,
                            const struct counts *counts, json_t *object)
{
    struct outcomes all = {0};
    for (int split = 0; split < N_SPLITS; split++) {
        all.n += counts->splits[split].n;
        all.known += counts->splits[split].known;
        all.correct += counts->splits[split].correct;
    }
    json_object_set_new(object, "students", json_integer((json_int_t)dataset->n_students));
    json_object_set_new(object, "attempts", json_integer((json_int_t)dataset->n_attempts));
    json_object_set_new(object, "items", json_integer((json_int_t)dataset->n_items));
    json_object_set_new(object, "skills", json_integer((json_int_t)dataset->n_skills));
    json_object_set_new(object, "groups", json_integer((json_int_t)dataset->n_groups));
    json_object_set_new(object, "correct", command_json_number(share(&all)));
    json_object_set_new(object, "known", json_integer(all.known));
    json_object_set_new(object, "unknown", json_integer(all.n - all.known));
    json_object_set_new(object, "digest", json_string(dataset->digest));
    json_object_set_new(object, "attempts_per_student", lengths_json(dataset));
    json_object_set_new(object, "steps", json_integer(counts->n_steps));
    json_object_set_new(object, "splits", splits_json(counts));
    json_object_set_new(object, "withheld", json_boolean(dataset->withheld));
    json_object_set_new(object, "shown", json_integer(counts->n_shown));
    json_t *span = json_null();
    if (dataset->has_time && dataset->n_attempts > 0) {
        span = json_object();
        json_object_set_new(span, "from", json_integer(counts->earliest));
        json_object_set_new(span, "to", json_integer(counts->latest));
    }
    json_object_set_new(object, "time", span);
    json_object_set_new(object, "targets", targets_json(dataset));
    json_object_set_new(object, "covariates", covariates_json(&dataset->covariates));
    json_object_set_new(object, "source",
                        command_json_text(dataset->source ? dataset->source : ""));
    TRY(truths_json(dataset->path, object));
    if (flags->items)
        json_object_set_new(object, "item_list", items_json(dataset, counts));
    return counts->n_listed > 0 ? students_json(dataset, counts, object) : OK;
}

enum status inspect_dataset(const char *path, const struct inspect_flags *flags, json_t *object)
{
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    struct dataset dataset;
    TRY(dataset_open(&dataset, path, &self));
    struct counts counts = {.earliest = INT64_MAX,
                            .latest = INT64_MIN,
                            .items = NEW(struct outcomes, dataset.n_items),
                            .n_listed =
                                size_min((size_t)flags->n_students, dataset.n_students)};
    counts.students = NEW(struct outcomes, counts.n_listed);
    enum status status = count_all(&dataset, &counts);
    if (status == OK)
        status = describe(&dataset, flags, &counts, object);
    memory_free(counts.items);
    memory_free(counts.students);
    dataset_close(&dataset);
    return status;
}

static void say_share(const json_t *object)
{
    const double correct = inspect_number(object, "correct");
    if (isnan(correct))
        printf("%9s", "-");
    else
        printf("%8.2f%%", 100 * correct);
}

static void say_list(const json_t *array, const char *title, bool with_items)
{
    if (array == NULL)
        return;
    printf("\n%-24s  %10s  %9s%s\n", title, "attempts", "correct",
           with_items ? "  group; skills" : "");
    size_t i = 0;
    const json_t *one = NULL;
    json_array_foreach(array, i, one)
    {
        cell_text_left(inspect_text(one, "name"), 24, 0);
        printf("  %10lld  ", inspect_integer(one, "attempts"));
        say_share(one);
        if (with_items) {
            const bool none = json_is_null(json_object_get(one, "group"));
            printf("  ");
            cell_text_left(none ? "-" : inspect_text(one, "group"), 0, 0);
            putchar(';');
        }
        size_t k = 0;
        const json_t *skill = NULL;
        json_array_foreach(json_object_get(one, "skills"), k, skill)
        {
            printf("%s ", k > 0 ? "," : "");
            cell_text_left(json_string_value(skill), 0, 0);
        }
        putchar('\n');
    }
}

static void say_truths(const json_t *array)
{
    size_t i = 0;
    const json_t *truth = NULL;
    json_array_foreach(array, i, truth)
    {
        printf("%s%s [", i > 0 ? ", " : "  truth               ", inspect_text(truth, "name"));
        size_t d = 0;
        const json_t *size = NULL;
        json_array_foreach(json_object_get(truth, "shape"), d, size)
            printf("%s%lld", d > 0 ? ", " : "", (long long)json_integer_value(size));
        putchar(']');
    }
    if (json_array_size(array) > 0)
        putchar('\n');
}

static void say_covariates(const json_t *array)
{
    size_t i = 0;
    const json_t *covariate = NULL;
    json_array_foreach(array, i, covariate)
    {
        const json_t *levels = json_object_get(covariate, "levels");
        printf("%s", i > 0 ? ", " : "  covariates          ");
        cell_text_left(inspect_text(covariate, "name"), 0, 0);
        if (json_is_integer(levels))
            printf(" (factor, levels: %lld)", (long long)json_integer_value(levels));
    }
    if (json_array_size(array) > 0)
        putchar('\n');
}

void inspect_dataset_say(const json_t *object)
{
    const json_t *lengths = json_object_get(object, "attempts_per_student");
    printf("%s: a data set\n\n", inspect_text(object, "path"));
    printf("  students            %lld\n", inspect_integer(object, "students"));
    printf("  attempts            %lld; a student has %lld to %lld, median %lld, mean %.1f\n",
           inspect_integer(object, "attempts"), inspect_integer(lengths, "least"),
           inspect_integer(lengths, "most"), inspect_integer(lengths, "median"),
           inspect_number(lengths, "mean"));
    const long long n_skills = inspect_integer(object, "skills");
    const long long n_groups = inspect_integer(object, "groups");
    printf("  items               %lld, with %lld skill%s, in %lld group%s\n",
           inspect_integer(object, "items"), n_skills, inspect_plural(n_skills), n_groups,
           inspect_plural(n_groups));
    printf("  outcomes            %lld known, %lld unknown; %.2f %% of the known are correct\n",
           inspect_integer(object, "known"), inspect_integer(object, "unknown"),
           100 * inspect_number(object, "correct"));
    for (int split = 0; split < N_SPLITS; split++) {
        const json_t *one =
            json_object_get(json_object_get(object, "splits"), split_names[split]);
        const long long n = inspect_integer(one, "attempts");
        const long long n_students = inspect_integer(one, "students");
        printf(
            "  for %-5s           %lld attempt%s of %lld student%s, %lld with a known outcome",
            split_names[split], n, inspect_plural(n), n_students, inspect_plural(n_students),
            inspect_integer(one, "known"));
        if (inspect_integer(one, "known") > 0)
            printf(", %.2f %% correct", 100 * inspect_number(one, "correct"));
        putchar('\n');
    }
    printf("  shown               outcomes shown to later attempts: %lld (%s)\n",
           inspect_integer(object, "shown"),
           json_is_true(json_object_get(object, "withheld")) ? "single attempts are withheld"
                                                             : "whole students are held out");
    if (inspect_integer(object, "steps") < inspect_integer(object, "attempts"))
        printf("  steps               %lld\n", inspect_integer(object, "steps"));
    const json_t *span = json_object_get(object, "time");
    if (json_is_object(span)) {
        char from[CELL_TIME_ROOM], to[CELL_TIME_ROOM];
        csv_cell_say_time(inspect_integer(span, "from"), from);
        csv_cell_say_time(inspect_integer(span, "to"), to);
        printf("  time                from %s to %s\n", from, to);
    }
    const json_t *targets = json_object_get(object, "targets");
    if (json_is_object(targets))
        printf("  targets             students: %lld, range %g to %g, mean %g\n",
               inspect_integer(targets, "n"), inspect_number(targets, "least"),
               inspect_number(targets, "most"), inspect_number(targets, "mean"));
    say_covariates(json_object_get(object, "covariates"));
    say_truths(json_object_get(object, "truth"));
    printf("  source              ");
    cell_text_left(inspect_text(object, "source"), 0, 0);
    putchar('\n');
    printf("  digest              %s\n", inspect_text(object, "digest"));
    say_list(json_object_get(object, "item_list"), "item", true);
    say_list(json_object_get(object, "student_list"), "student", false);
}
