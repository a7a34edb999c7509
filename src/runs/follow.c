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
 * An item that the model has never seen is predicted by the rule of `predict` (stand_ins.c): the
 * mean over N_STAND_INS trained items. Its outcome is learned as theirs, so from then on the
 * student exists as often, one for each stand-in, and every chance is a mean over them:
 *
 *     ann   item 3, new item 9, ...      ann(1)   3, 14, ...      ann(2)   3, 20, ...   and so on
 */
#include "runs/follow.h"
#include "base/fail.h"
#include "base/memory.h"
#include "data/origin.h"
#include "runs/follow_internal.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_LINE = 1 << 20, READ_SIZE = 1 << 16, MOST_WAITING = 1 << 20 };

struct follow *follow_create(const struct inference *inference, size_t most_students,
                             const struct follow_times *times)
{
    const struct dataset *dataset = &inference->dataset;
    struct follow *follow = NEW(struct follow, 1);
    follow->inference = inference;
    follow->most_students = most_students;
    follow->needs_time = (model_uses(inference->model) & MODEL_TIMES) != 0;
    follow->times = *times;
    follow->live = live_create(inference->model, inference->work, dataset);
    follow->together = size_min(live_together(follow->live), MOST_BATCH);
    follow->n_columns = dataset->covariates.names.n;
    follow->covariates = NEW(double, MOST_BATCH * follow->n_columns);
    follow->levels = NEW(struct name_index, follow->n_columns);
    for (size_t k = 0; k < follow->n_columns; k++)
        name_index_add_all(&follow->levels[k], &dataset->covariates.levels[k]);
    follow_items_make(&follow->items, inference);
    follow->line.fields = NEW(struct span, N_FOLLOW_FIELDS + follow->n_columns);
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
    follow_items_free(&follow->items);
    follow_reader_free(&follow->reader);
    void *const parts[] = {follow->levels, follow->list, follow->covariates,
                           follow->line.fields};
    for (size_t k = 0; k < COUNT(parts); k++)
        memory_free(parts[k]);
    memory_free(follow);
}

void follow_pseudonyms(struct follow *follow, const struct pseudonym_key *key)
{
    follow->key = key;
}

void follow_refuse_unseen(struct follow *follow)
{
    follow->strict = true;
}

size_t follow_student_number(struct follow *follow, const char *name, size_t length)
{
    const uint32_t known = name_index_find(&follow->students, name, length);
    if (known != INDEX_NONE)
        return known;
    if (follow->students.names.n >= follow->most_students)
        return SIZE_MAX;
    const size_t s = name_index_add(&follow->students, name, length);
    GROW(follow->list, s, follow->list_room);
    follow->list[s] = (struct follow_student){.live = live_add(follow->live)};
    return s;
}

/* The student as it exists with stand-in `pass`. */
static size_t live_of(const struct follow_student *student, size_t pass)
{
    return pass == 0 || student->copies == 0 ? student->live : student->copies + pass - 1;
}

static void make_copies(struct follow *follow, struct follow_student *student)
{
    if (student->copies > 0)
        return;
    student->copies = live_copy(follow->live, student->live);
    for (size_t pass = 2; pass < N_STAND_INS; pass++)
        live_copy(follow->live, student->live);
}

/* Tells attempt t of the shard. */
static void start_with(struct follow *follow, struct follow_student *student, uint64_t t)
{
    const struct inference *inference = follow->inference;
    const struct shard *shard = &inference->shard;
    const uint32_t item = stand_ins_asked(&inference->stand_ins, shard, t);
    uint32_t asks_at[N_STAND_INS];
    follow_items_passes(&follow->items, item, asks_at);
    if (item >= inference->dataset.n_items)
        make_copies(follow, student);
    for (size_t pass = 0; pass < (student->copies > 0 ? N_STAND_INS : 1); pass++) {
        const size_t live = live_of(student, pass);
        const struct live_attempt attempt = {
            asks_at[pass], shard->mark[t], shard->time != NULL ? shard->time[t] : 0,
            follow->n_columns > 0 ? shard->covariate + t * follow->n_columns : NULL};
        live_tell(follow->live, 1, &live, &attempt);
    }
}

enum status follow_start_from_data(struct follow *follow)
{
    const struct shard *shard = &follow->inference->shard;
    struct names names = {0};
    struct origin origin = {0};
    TRY(origin_read(shard, &origin));
    follow->data_times = origin.time_format;
    origin_free(&origin);
    TRY(inference_students(follow->inference, 0, shard->n_students, &names));
    for (size_t s = 0; s < shard->n_students; s++) {
        const char *name = names_get(&names, s);
        const size_t student = follow_student_number(follow, name, strlen(name));
        if (student == SIZE_MAX) {
            names_free(&names);
            return fail(BAD_USER,
                        "%s: it has %zu students, more than --students %zu; raise that number",
                        follow->inference->dataset.path, shard->n_students,
                        follow->most_students);
        }
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++)
            start_with(follow, &follow->list[student], t);
    }
    names_free(&names);
    return OK;
}

/* Says what a new item is predicted from. */
static void note_unseen(struct follow *follow, struct follow_entry *entry)
{
    static const char *const notes[N_BASES] = {
        [BASIS_SKILL] = "unseen item: mean over items of its skills",
        [BASIS_GROUP] = "unseen item: mean over items of its group",
        [BASIS_MEAN] = "unseen item: mean over all items"};
    const size_t n_items = follow->inference->dataset.n_items;
    if (entry->item < n_items)
        return;
    entry->note = notes[follow->items.unseen[entry->item - n_items].basis];
    follow->counts.n_unseen++;
}

/* Attempts to be told together. */
struct telling {
    size_t n, students[MOST_BATCH];
    struct live_attempt attempts[MOST_BATCH];
};

static void tell(struct follow *follow, struct telling *telling)
{
    live_tell(follow->live, telling->n, telling->students, telling->attempts);
    telling->n = 0;
}

/* Asks about an entry, in every pass that it needs, and tells it; a model without a state per
 * student is told at once, before it is asked about another. The mean has the digits of
 * inference_predict. */
static void ask_entry(struct follow *follow, struct follow_entry *entry,
                      struct telling *telling)
{
    struct follow_student *student = &follow->list[entry->student];
    const bool is_new = entry->item >= follow->inference->dataset.n_items;
    if (is_new && entry->told)
        make_copies(follow, student);
    const size_t n_passes = is_new || student->copies > 0 ? N_STAND_INS : 1;
    float first = 0;
    double rest = 0;
    for (size_t pass = 0; pass < n_passes; pass++) {
        const size_t live = live_of(student, pass);
        entry->attempt.item = entry->asks_at[pass];
        live_ask(follow->live, live, &entry->attempt, &entry->attempt.item, 1, &entry->p);
        if (pass == 0)
            first = (float)entry->p;
        else
            rest += (double)(float)entry->p;
        if (!entry->told)
            continue;
        telling->students[telling->n] = live;
        telling->attempts[telling->n++] = entry->attempt;
        if (telling->n == follow->together)
            tell(follow, telling);
    }
    if (n_passes > 1)
        entry->p = (real)(((double)first + rest) / (double)n_passes);
    entry->asked = true;
}

/* Asks, tells and answers the batch. */
static void finish_batch(struct follow *follow)
{
    struct telling telling = {.n = 0};
    for (size_t e = 0; e < follow->n_entries; e++)
        if (follow->entries[e].error[0] == '\0')
            ask_entry(follow, &follow->entries[e], &telling);
    tell(follow, &telling);
    for (size_t e = 0; e < follow->n_entries; e++) {
        struct follow_entry *entry = &follow->entries[e];
        follow_entry_print(entry, follow->reader.json, follow->out);
        memory_free(entry->student_text);
        memory_free(entry->item_text);
    }
    follow->n_entries = 0;
    follow->n_batches++;
}

static void note_bad(struct follow *follow, const struct follow_entry *entry)
{
    if (follow->counts.n_bad++ == 0)
        snprintf(follow->first_error, sizeof follow->first_error, "%" PRIu64 ": %s",
                 entry->line, entry->error);
}

static void take_line(struct follow *follow, struct span text, const char *error)
{
    if (follow->n_entries >= follow->together)
        finish_batch(follow);
    struct follow_entry entry = {.line = follow->line_number};
    bool good = false;
    if (error != NULL)
        snprintf(entry.error, sizeof entry.error, "%s", error);
    else
        good = follow_read_entry(follow, text, &entry);
    follow->counts.n_lines++;
    if (!good) {
        entry.told = false;
        note_bad(follow, &entry);
    } else if (follow->list[entry.student].batch == follow->n_batches + 1) {
        const size_t columns = follow->n_columns; /* its covariates move to the first place */
        const double *from = follow->covariates + follow->n_entries * columns;
        finish_batch(follow);
        if (columns > 0)
            memmove(follow->covariates, from, columns * sizeof(double));
        entry.attempt.covariate = follow->covariates;
    }
    if (good) {
        follow->list[entry.student].batch = follow->n_batches + 1;
        follow->counts.n_outcomes += entry.told;
        note_unseen(follow, &entry);
    }
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
        if (text.n > LONGEST_LINE && text.start[0] != '{')
            return fail(
                BAD_DATA,
                "standard input:1: the line is too long for a header; expected one with "
                "student, item and outcome, or JSON objects");
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

static enum status write_answers(struct follow *follow)
{
    finish_batch(follow);
    if (fflush(follow->out) != 0)
        fail_abort(BAD_IO, "out of memory while answering");
    const enum status status =
        output_stream_add(&follow->standard, follow->answer, follow->n_answer);
    rewind(follow->out);
    return status;
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

static enum status run(struct follow *follow, struct input *input, int in)
{
    for (bool at_end = false; !at_end;) {
        fflush(follow->out);
        if (follow->n_answer > MOST_WAITING || !is_waiting(in))
            TRY(write_answers(follow));
        if (input->begin > 0) /* before the first read there is no buffer */
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
    return write_answers(follow);
}

enum status follow_run(struct follow *follow, int in)
{
    struct input input = {0};
    follow->out = memory_stream(&follow->answer, &follow->n_answer);
    enum status status =
        follow->times.format[0] != '\0' ? time_format_check(follow->times.format) : OK;
    if (status == OK)
        status = output_stream_begin(&follow->standard, "-");
    if (status == OK)
        status = output_stream_end(&follow->standard, run(follow, &input, in));
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
