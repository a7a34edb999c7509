/* Every line asks for the chance of a right answer at an item; a line with an outcome is then
 * learned:
 *
 *     student,item,outcome        line,student,item,probability,note,error
 *     ann,17,1               ->   2,ann,17,0.64,,          17 is now known to be right
 *     ann,18,                ->   3,ann,18,0.71,,          a question: nothing is learned
 *
 * Lines that are waiting are read together. As long as their students differ they form a batch:
 * all are asked, then all are told in one matrix product (learn/live.h), then answered in order.
 * Answers are written when nothing is waiting in the input, so that many lines at once are fast
 * and a single line is answered at once.
 *
 * An item that the model has never seen gets the mean chance of the items of its skills (field
 * `skills`) or, without skills known to the model, of all items. Its outcome is learned as that of
 * the one among them whose chance is nearest to the mean (runs/stand_ins.c has several of them,
 * which needs all attempts at once). */
#include "runs/follow.h"
#include "base/csv_quote.h"
#include "base/fail.h"
#include "base/json_quote.h"
#include "base/memory.h"
#include "data/name_index.h"
#include "data/skill_items.h"
#include "data_tools/csv_cell.h"
#include "learn/live.h"
#include "runs/follow_line.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BATCH = 48, LONGEST_LINE = 1 << 20, READ_SIZE = 1 << 16, MOST_WAITING = 1 << 20 };

/* A line and its answer. */
struct entry {
    uint64_t line;
    size_t student;
    struct live_attempt attempt;
    bool asked, told; /* asked: there is an answer; told: it has an outcome */
    real p;
    const char *note;
    char *student_text, *item_text; /* as in the line, where it has them */
    char error[256];
};

struct follow {
    const struct inference *inference;
    struct live *live;
    struct name_index students, items, skills;
    struct name_index *levels; /* of each covariate */
    struct skill_items of_skill;
    size_t most_students;
    bool needs_time;
    uint64_t *batch_of; /* of each student: the last batch it was in */
    size_t batch_room;
    uint64_t n_batches;
    size_t n_columns, together;
    double *covariates; /* MOST_BATCH x n_columns */
    struct entry entries[MOST_BATCH];
    size_t n_entries;
    struct follow_reader reader;
    bool begun;
    struct follow_line line;
    uint32_t *unseen; /* items that stand for an unseen one */
    real *unseen_p;
    char *answer; /* open_memstream */
    size_t n_answer;
    FILE *out;
    struct follow_counts counts;
    uint64_t line_number;
    char first_error[320];
};

static void index_names(struct name_index *index, const struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        name_index_add(index, names_get(names, i), strlen(names_get(names, i)));
}

struct follow *follow_create(const struct inference *inference, size_t most_students,
                             bool needs_time)
{
    const struct dataset *dataset = &inference->dataset;
    struct follow *follow = NEW(struct follow, 1);
    follow->inference = inference;
    follow->most_students = most_students;
    follow->needs_time = needs_time;
    follow->live = live_create(inference->model, inference->work, dataset);
    follow->together = size_min(live_together(follow->live), MOST_BATCH);
    follow->n_columns = dataset->covariates.names.n;
    follow->covariates = NEW(double, MOST_BATCH * follow->n_columns);
    follow->levels = NEW(struct name_index, follow->n_columns);
    for (size_t k = 0; k < follow->n_columns; k++)
        index_names(&follow->levels[k], &dataset->covariates.levels[k]);
    index_names(&follow->items, &dataset->items);
    index_names(&follow->skills, &dataset->skills);
    skill_items_make(&follow->of_skill, dataset, false);
    follow->line.fields = NEW(struct span, N_FOLLOW_FIELDS + follow->n_columns);
    follow->unseen = NEW(uint32_t, dataset->n_items);
    follow->unseen_p = NEW(real, dataset->n_items);
    return follow;
}

void follow_destroy(struct follow *follow)
{
    if (follow == NULL)
        return;
    live_destroy(follow->live);
    for (size_t k = 0; k < follow->n_columns; k++)
        name_index_free(&follow->levels[k]);
    name_index_free(&follow->students);
    name_index_free(&follow->items);
    name_index_free(&follow->skills);
    skill_items_free(&follow->of_skill);
    follow_reader_free(&follow->reader);
    void *const parts[] = {follow->levels,      follow->batch_of, follow->covariates,
                           follow->line.fields, follow->unseen,   follow->unseen_p};
    for (size_t k = 0; k < COUNT(parts); k++)
        memory_free(parts[k]);
    memory_free(follow);
}

/* The number of a student, new or known; SIZE_MAX: there are too many. */
static size_t student_of(struct follow *follow, const char *name, size_t length)
{
    const uint32_t known = name_index_find(&follow->students, name, length);
    if (known != INDEX_NONE)
        return known;
    if (follow->students.names.n >= follow->most_students)
        return SIZE_MAX;
    const size_t s = name_index_add(&follow->students, name, length);
    GROW(follow->batch_of, s, follow->batch_room);
    follow->batch_of[s] = 0;
    return live_add(follow->live);
}

enum status follow_start_from_data(struct follow *follow)
{
    const struct shard *shard = &follow->inference->shard;
    struct names names = {0};
    TRY(inference_students(follow->inference, 0, shard->n_students, &names));
    for (size_t s = 0; s < shard->n_students; s++) {
        const char *name = names_get(&names, s);
        const size_t student = student_of(follow, name, strlen(name));
        if (student == SIZE_MAX) {
            names_free(&names);
            return fail(BAD_USER,
                        "%s: it has %zu students, more than --students %zu; raise that number",
                        follow->inference->dataset.path, shard->n_students,
                        follow->most_students);
        }
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            const struct live_attempt attempt = {
                shard->item[t], shard->mark[t], shard->time != NULL ? shard->time[t] : 0,
                follow->n_columns > 0 ? shard->covariate + t * follow->n_columns : NULL};
            live_tell(follow->live, 1, &student, &attempt);
        }
    }
    names_free(&names);
    return OK;
}

#define BAD(entry, ...) (snprintf((entry)->error, sizeof(entry)->error, __VA_ARGS__), false)
#define SHOWN(field) (int)size_min((field).n, 80), (field).start

static bool read_outcome(const struct follow *follow, struct entry *entry)
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

static bool read_time(const struct follow *follow, struct entry *entry)
{
    const struct span cell = follow->line.fields[FOLLOW_TIME];
    int64_t milliseconds = 0;
    if (cell.start == NULL)
        return !follow->needs_time ||
               BAD(entry, "no time; this model uses the times of attempts");
    if (!csv_cell_time(cell, 1, &milliseconds))
        return BAD(entry, "time '%.*s' is neither seconds nor YYYY-MM-DD HH:MM:SS",
                   SHOWN(cell));
    entry->attempt.time = milliseconds / 1000 - (milliseconds % 1000 < 0);
    return true;
}

static bool read_covariates(const struct follow *follow, struct entry *entry, double *values)
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

/* Reads a line into an entry; false, with an error, if it cannot be answered. */
static bool read_entry(struct follow *follow, struct span text, struct entry *entry)
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
    entry->attempt.item = name_index_find(&follow->items, item.start, item.n);
    entry->student = student_of(follow, student.start, student.n);
    if (entry->student == SIZE_MAX)
        return BAD(entry, "%zu students are kept already, as many as --students allows",
                   follow->most_students);
    return true;
}

/* The chance at an item that the model has not seen. */
static void ask_unseen(struct follow *follow, struct entry *entry)
{
    const struct skill_items *of_skill = &follow->of_skill;
    const size_t n_items = follow->inference->dataset.n_items;
    struct csv_cell_list list = csv_cell_list(follow->line.fields[FOLLOW_SKILLS], "auto");
    struct span name;
    size_t n = 0;
    while (follow->line.fields[FOLLOW_SKILLS].start != NULL &&
           csv_cell_list_next(&list, &name)) {
        const uint32_t k = name_index_find(&follow->skills, name.start, name.n);
        for (uint64_t i = k != INDEX_NONE ? of_skill->first[k] : 0;
             k != INDEX_NONE && i < of_skill->first[k + 1] && n < n_items; i++)
            follow->unseen[n++] = of_skill->item[i];
    }
    const bool has_skills = n > 0;
    entry->note = has_skills ? "unseen item: mean over the items of its skills"
                             : "unseen item: mean over all items";
    for (uint32_t i = 0; !has_skills && i < n_items; i++)
        follow->unseen[n++] = i;
    live_ask(follow->live, entry->student, &entry->attempt, follow->unseen, n,
             follow->unseen_p);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)follow->unseen_p[i];
    entry->p = (real)(sum / (double)n);
    size_t nearest = 0;
    for (size_t i = 1; i < n; i++)
        if (fabs((double)(follow->unseen_p[i] - entry->p)) <
            fabs((double)(follow->unseen_p[nearest] - entry->p)))
            nearest = i;
    entry->attempt.item = follow->unseen[nearest];
    entry->asked = true;
    follow->counts.n_unseen++;
}

static void print_entry(struct follow *follow, const struct entry *entry)
{
    FILE *out = follow->out;
    if (follow->reader.json) {
        fprintf(out, "{\"line\": %" PRIu64, entry->line);
        const char *const texts[] = {entry->student_text, entry->item_text};
        static const char *const names[] = {"student", "item"};
        for (size_t k = 0; k < COUNT(texts); k++)
            if (texts[k] != NULL) {
                fprintf(out, ", \"%s\": ", names[k]);
                json_quote(out, texts[k]);
            }
        if (entry->asked)
            fprintf(out, ", \"probability\": %.9g", (double)(float)entry->p);
        if (entry->note != NULL)
            fprintf(out, ", \"note\": \"%s\"", entry->note);
        if (entry->error[0] != '\0') {
            fputs(", \"error\": ", out);
            json_quote(out, entry->error);
        }
        fputs("}\n", out);
        return;
    }
    fprintf(out, "%" PRIu64 ",", entry->line);
    csv_quote(out, entry->student_text != NULL ? entry->student_text : "");
    fputc(',', out);
    csv_quote(out, entry->item_text != NULL ? entry->item_text : "");
    fputc(',', out);
    if (entry->asked)
        fprintf(out, "%.9g", (double)(float)entry->p);
    fprintf(out, ",%s,", entry->note != NULL ? entry->note : "");
    csv_quote(out, entry->error);
    fputc('\n', out);
}

/* Asks, tells and answers the batch. */
static void finish_batch(struct follow *follow)
{
    size_t n = 0, students[MOST_BATCH];
    struct live_attempt attempts[MOST_BATCH];
    for (size_t e = 0; e < follow->n_entries; e++) {
        struct entry *entry = &follow->entries[e];
        if (entry->error[0] == '\0' && !entry->asked) {
            live_ask(follow->live, entry->student, &entry->attempt, &entry->attempt.item, 1,
                     &entry->p);
            entry->asked = true;
        }
        if (entry->told && entry->error[0] == '\0') {
            students[n] = entry->student;
            attempts[n++] = entry->attempt;
        }
    }
    live_tell(follow->live, n, students, attempts);
    for (size_t e = 0; e < follow->n_entries; e++) {
        struct entry *entry = &follow->entries[e];
        print_entry(follow, entry);
        memory_free(entry->student_text);
        memory_free(entry->item_text);
    }
    follow->n_entries = 0;
    follow->n_batches++;
}

static void note_bad(struct follow *follow, const struct entry *entry)
{
    if (follow->counts.n_bad++ == 0)
        snprintf(follow->first_error, sizeof follow->first_error, "%" PRIu64 ": %s",
                 entry->line, entry->error);
}

static void take_line(struct follow *follow, struct span text, const char *error)
{
    if (follow->n_entries >= follow->together)
        finish_batch(follow);
    struct entry entry = {.line = follow->line_number};
    bool good = false;
    if (error != NULL)
        good = BAD(&entry, "%s", error);
    else
        good = read_entry(follow, text, &entry);
    follow->counts.n_lines++;
    if (!good) {
        entry.told = false;
        note_bad(follow, &entry);
    } else if (follow->batch_of[entry.student] == follow->n_batches + 1) {
        const size_t columns = follow->n_columns; /* its covariates move to the first place */
        const double *from = follow->covariates + follow->n_entries * columns;
        finish_batch(follow);
        if (columns > 0)
            memmove(follow->covariates, from, columns * sizeof(double));
        entry.attempt.covariate = follow->covariates;
    }
    if (good)
        follow->batch_of[entry.student] = follow->n_batches + 1;
    if (good && entry.attempt.item == INDEX_NONE)
        ask_unseen(follow, &entry);
    follow->entries[follow->n_entries++] = entry;
}

/* The next line, without its end; the first one is the header unless it is JSON. */
static enum status next_line(struct follow *follow, struct span text)
{
    follow->line_number++;
    if (follow->line_number == 1 && text.n >= 3 && memcmp(text.start, "\xef\xbb\xbf", 3) == 0) {
        text.start += 3;
        text.n -= 3;
    }
    if (text.n > 0 && text.start[text.n - 1] == '\r')
        text.n--;
    if (span_trim(text).n == 0)
        return OK;
    if (!follow->begun) {
        follow->begun = true;
        TRY(follow_reader_begin(&follow->reader, text,
                                &follow->inference->dataset.covariates.names));
        if (!follow->reader.json) {
            fputs("line,student,item,probability,note,error\n", follow->out);
            return OK;
        }
    }
    take_line(follow, text, text.n > LONGEST_LINE ? "the line is too long" : NULL);
    return OK;
}

static enum status write_answers(struct follow *follow, int out)
{
    finish_batch(follow);
    if (fflush(follow->out) != 0)
        fail_abort(BAD_IO, "out of memory while answering");
    for (size_t done = 0; done < follow->n_answer;) {
        const ssize_t n = write(out, follow->answer + done, follow->n_answer - done);
        if (n < 0 && errno != EINTR)
            return fail(BAD_IO, "standard output: cannot write: %s", strerror(errno));
        done += n > 0 ? (size_t)n : 0;
    }
    rewind(follow->out);
    return OK;
}

/* Whether a read would return at once. */
static bool is_waiting(int in)
{
    struct pollfd one = {.fd = in, .events = POLLIN};
    return poll(&one, 1, 0) > 0;
}

/* Unread bytes: buffer[begin .. end]. A line longer than LONGEST_LINE is cut. */
struct input {
    char *buffer;
    size_t begin, end, room;
    bool skipping; /* the rest of a line that is too long */
};

static enum status take_lines(struct follow *follow, struct input *input, bool at_end)
{
    while (input->begin < input->end) {
        char *start = input->buffer + input->begin;
        const size_t n = input->end - input->begin;
        const char *stop = memchr(start, '\n', n);
        if (stop == NULL && !at_end && n <= LONGEST_LINE)
            return OK;
        const size_t length = stop != NULL ? (size_t)(stop - start) : n;
        if (!input->skipping)
            TRY(next_line(follow, (struct span){start, length}));
        input->skipping = stop == NULL && !at_end;
        input->begin += length + (stop != NULL);
    }
    return OK;
}

static enum status run(struct follow *follow, struct input *input, int in, int out)
{
    for (bool at_end = false; !at_end;) {
        fflush(follow->out);
        if (follow->n_answer > MOST_WAITING || !is_waiting(in))
            TRY(write_answers(follow, out));
        memmove(input->buffer, input->buffer + input->begin, input->end - input->begin);
        input->end -= input->begin;
        input->begin = 0;
        if (input->end + READ_SIZE > input->room) {
            input->room = 2 * (input->end + READ_SIZE);
            input->buffer = memory_resize(input->buffer, input->room, 1);
        }
        const ssize_t n = read(in, input->buffer + input->end, READ_SIZE);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail(BAD_IO, "standard input: cannot read: %s", strerror(errno));
        input->end += (size_t)n;
        at_end = n == 0;
        TRY(take_lines(follow, input, at_end));
    }
    return write_answers(follow, out);
}

enum status follow_run(struct follow *follow, int in, int out)
{
    struct input input = {0};
    follow->out = open_memstream(&follow->answer, &follow->n_answer);
    if (follow->out == NULL)
        fail_abort(BAD_IO, "out of memory while answering");
    enum status status = run(follow, &input, in, out);
    fclose(follow->out);
    free(follow->answer);
    memory_free(input.buffer);
    if (status == OK && follow->counts.n_bad > 0)
        status = fail(BAD_DATA,
                      "%" PRIu64 " of %" PRIu64 " lines could not be answered; the first is "
                      "standard input:%s",
                      follow->counts.n_bad, follow->counts.n_lines, follow->first_error);
    return status;
}

struct follow_counts follow_counts(const struct follow *follow)
{
    struct follow_counts counts = follow->counts;
    counts.n_students = follow->students.names.n;
    counts.n_bytes = live_bytes(follow->live);
    return counts;
}
