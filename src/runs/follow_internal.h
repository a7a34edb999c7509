/* What the files of `predict --follow` share. Nothing else includes this. */
#ifndef COHORT_FOLLOW_INTERNAL_H
#define COHORT_FOLLOW_INTERNAL_H

#include "base/output_stream.h"
#include "data/name_index.h"
#include "data_tools/time_reader.h"
#include "learn/live.h"
#include "runs/follow.h"
#include "runs/follow_entry.h"
#include "runs/follow_items.h"
#include "runs/follow_line.h"
#include <stdio.h>

enum { MOST_BATCH = 48 };

/* A student: `live` and, after an answer to a new item, the copies from `copies` on. */
struct follow_student {
    uint64_t batch;      /* the last one it was in */
    size_t live, copies; /* copies 0: none */
};

struct follow {
    const struct inference *inference;
    struct live *live;
    struct name_index students;
    struct name_index *levels; /* of each covariate */
    struct follow_items items;
    struct time_reader time_reader;
    struct follow_times times; /* as they are given */
    struct time_format data_times;
    size_t most_students;
    bool needs_time, strict;
    const struct pseudonym_key *key; /* NULL: students keep their names */
    struct follow_student *list;     /* of the students */
    size_t list_room;
    uint64_t n_batches;
    size_t n_columns, together;
    double *covariates; /* MOST_BATCH x n_columns */
    struct follow_entry entries[MOST_BATCH];
    size_t n_entries;
    struct follow_reader reader;
    bool begun;
    struct follow_line line;
    struct output_stream standard;
    char *answer; /* memory_stream */
    size_t n_answer;
    FILE *out;
    struct follow_counts counts;
    uint64_t line_number;
    char first_error[320];
};

/* The number of a student, new or known; SIZE_MAX: there are too many. */
size_t follow_student_number(struct follow *follow, const char *name, size_t length);

/* follow_read.c: reads a line into an entry; false, with an error, if it cannot be answered. */
bool follow_read_entry(struct follow *follow, struct span text, struct follow_entry *entry);

#endif
