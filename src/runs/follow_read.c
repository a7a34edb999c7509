/* Reads a line of `predict --follow` into an entry: outcome, time, covariates, student and item.
 * A line that cannot be read is answered with an error and changes nothing. */
#include "base/fail.h"
#include "base/memory.h"
#include "data/origin.h"
#include "data_tools/csv_cell.h"
#include "data_tools/pseudonym.h"
#include "runs/follow_internal.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define BAD(entry, ...) (snprintf((entry)->error, sizeof(entry)->error, __VA_ARGS__), false)
#define SHOWN(field) (int)size_min((field).n, 80), (field).start

static bool read_outcome(const struct follow *follow, struct follow_entry *entry)
{
    const struct span cell = follow->line.fields[FOLLOW_OUTCOME];
    const struct span step = follow->line.fields[FOLLOW_STEP];
    enum outcome outcome = UNKNOWN, begins = CORRECT;
    if (step.start != NULL && (!csv_cell_outcome(step, &begins) || begins == UNKNOWN))
        return BAD(entry, "step '%.*s' is not 0/1 or true/false", SHOWN(step));
    const bool lost = cell.start != NULL && span_is(cell, "unknown");
    if (cell.start != NULL && !lost && !csv_cell_outcome(cell, &outcome))
        return BAD(entry,
                   "outcome '%.*s' is not 0/1, true/false, correct/incorrect, yes/no, unknown "
                   "or empty",
                   SHOWN(cell));
    entry->told = lost || outcome != UNKNOWN;
    entry->attempt.mark = mark_make(outcome, TEST, outcome != UNKNOWN, begins == CORRECT);
    return true;
}

/* The unit of the data set's times, if they are numbers: "ms", or with decimals "s.3". */
static enum time_unit unit_of_data(const struct follow *follow)
{
    const size_t n = strcspn(follow->data_times.text, ".");
    for (int unit = UNIT_S; unit <= UNIT_NS; unit++)
        if (strlen(time_reader_units[unit]) == n &&
            strncmp(time_reader_units[unit], follow->data_times.text, n) == 0)
            return (enum time_unit)unit;
    return UNIT_AUTO;
}

/* Decides how times are written: as the options tell, else like those of the data set, else by
 * the first one. */
static bool learn_times(struct follow *follow, struct span cell)
{
    struct time_reading reading;
    double number;
    const char *format = follow->times.format;
    enum time_unit unit = (enum time_unit)follow->times.unit;
    /* ISO 8601 is recognized line by line: fractions and offsets may come and go. */
    if (format[0] == '\0' && strchr(follow->data_times.text, '%') != NULL &&
        !time_format_read_iso(cell.start, cell.n, &reading) &&
        time_format_read(follow->data_times.text, cell.start, cell.n, &reading))
        format = follow->data_times.text;
    const bool as_data =
        format[0] == '\0' && unit == UNIT_AUTO && csv_cell_number(cell, &number);
    if (as_data)
        unit = unit_of_data(follow);
    struct names cells = {0};
    names_add(&cells, cell.start, cell.n);
    const enum status status =
        time_reader_learn(&follow->time_reader, "standard input", &cells, unit, format);
    names_free(&cells);
    /* Numbers of the size of milliseconds are no seconds, even if the data have seconds. */
    follow->time_reader.unit_is_guessed |= as_data;
    return status == OK && follow->time_reader.kind != TIME_UNKNOWN;
}

static bool read_time(struct follow *follow, struct follow_entry *entry)
{
    const struct span cell = follow->line.fields[FOLLOW_TIME];
    int64_t microseconds = 0;
    if (cell.start == NULL)
        return !follow->needs_time ||
               BAD(entry, "no time; this model uses the times of attempts");
    if (follow->time_reader.kind == TIME_UNKNOWN && !learn_times(follow, cell))
        return BAD(entry,
                   "time '%.*s' is neither a number nor a known form of date; set "
                   "--time-format, as in '%%d.%%m.%%Y %%H:%%M'",
                   SHOWN(cell));
    if (!time_reader_read(&follow->time_reader, cell, &microseconds)) {
        char expected[256];
        time_reader_describe(&follow->time_reader, expected);
        return BAD(entry, "time '%.*s' %.150s", SHOWN(cell), expected);
    }
    entry->attempt.time = microseconds / 1000000 - (microseconds % 1000000 < 0);
    return true;
}

static bool read_covariates(const struct follow *follow, struct follow_entry *entry,
                            double *values)
{
    const struct covariates *covariates = &follow->inference->dataset.covariates;
    for (size_t k = 0; k < follow->n_columns; k++) {
        const struct span cell = follow->line.fields[N_FOLLOW_FIELDS + k];
        values[k] = NAN;
        if (cell.start == NULL)
            continue;
        if (covariates_n_levels(covariates, k) > 0) {
            const uint32_t level = name_index_find(&follow->levels[k], cell.start, cell.n);
            values[k] = level != INDEX_NONE ? (double)level : NAN;
        } else if (!csv_cell_number(cell, &values[k])) {
            return BAD(entry, "%s '%.*s' is not a number", names_get(&covariates->names, k),
                       SHOWN(cell));
        }
    }
    entry->attempt.covariate = values;
    return true;
}

/* The number of a student; with a key, by the pseudonym that `cohort import` gives to the name. */
static size_t find_student(struct follow *follow, struct span name)
{
    if (follow->key == NULL)
        return follow_student_number(follow, name.start, name.n);
    char *pseudonym = pseudonym_of_cell(follow->key, name.start, name.n);
    const size_t s = follow_student_number(follow, pseudonym, strlen(pseudonym));
    memory_free(pseudonym);
    return s;
}

/* Reads a line into an entry; false, with an error, if it cannot be answered. */
bool follow_read_entry(struct follow *follow, struct span text, struct follow_entry *entry)
{
    const struct span *fields = follow->line.fields;
    follow_reader_line(&follow->reader, text, &follow->line);
    const struct span student = fields[FOLLOW_STUDENT], item = fields[FOLLOW_ITEM];
    if (student.start != NULL)
        entry->student_text = memory_text("%.*s", (int)student.n, student.start);
    if (item.start != NULL)
        entry->item_text = memory_text("%.*s", (int)item.n, item.start);
    if (follow->line.error[0] != '\0')
        return BAD(entry, "%s", follow->line.error);
    if (student.start == NULL || item.start == NULL)
        return BAD(entry, "no %s", student.start == NULL ? "student" : "item");
    if (!read_outcome(follow, entry) || !read_time(follow, entry) ||
        !read_covariates(follow, entry,
                         follow->covariates + follow->n_entries * follow->n_columns))
        return false;
    entry->item = name_index_find(&follow->items.items, item.start, item.n);
    const bool is_new = entry->item == INDEX_NONE;
    if (is_new && follow->strict)
        return BAD(entry, "the model was not trained on item '%.*s' (--strict)", SHOWN(item));
    if (is_new && follow_items_is_full(&follow->items, item))
        return BAD(entry,
                   "already following %d items that are new to the model, the most it can; "
                   "restart to ask about others",
                   FOLLOW_MOST_UNSEEN);
    entry->student = find_student(follow, student);
    if (entry->student == SIZE_MAX)
        return BAD(entry, "already following %zu students; raise --students",
                   follow->most_students);
    if (is_new)
        entry->item = follow_items_unseen(&follow->items, item, fields[FOLLOW_SKILLS],
                                          fields[FOLLOW_GROUP]);
    follow_items_passes(&follow->items, entry->item, entry->asks_at);
    return true;
}
