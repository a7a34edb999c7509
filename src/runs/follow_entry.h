/* A line of attempts as they come, with its answer. */
#ifndef COHORT_FOLLOW_ENTRY_H
#define COHORT_FOLLOW_ENTRY_H

#include "learn/live.h"
#include "runs/stand_ins.h"
#include <stdio.h>

struct follow_entry {
    uint64_t line;
    size_t student;
    uint32_t item;                 /* from n_items on: a new one */
    uint32_t asks_at[N_STAND_INS]; /* in each pass: the item itself, or those for a new one */
    struct live_attempt attempt;
    bool asked, told; /* asked: there is an answer; told: it has an outcome */
    real p;
    const char *note;
    char *student_text, *item_text; /* as in the line, where it has them */
    char error[256];
};

void follow_entry_print(const struct follow_entry *entry, bool json, FILE *out);

#endif
