/* Parses a cell of a table: an outcome, a time, a list of skills. */
#ifndef COHORT_CSV_CELL_H
#define COHORT_CSV_CELL_H

#include "base/base.h"
#include "data/dataset.h"
#include "data_tools/text.h"

/* 1/0, 1.0/0.0, true/false, correct/incorrect, right/wrong, yes/no, t/f and y/n, ignoring case;
 * empty, NULL, NA, NaN, None: unknown. False if it is none of these. */
bool csv_cell_outcome(struct span cell, enum outcome *outcome);
bool csv_cell_is_missing(struct span cell);

/* A time in milliseconds: a number with units_per_second, or a date as in ISO 8601. For columns
 * of times see time_reader.h. */
bool csv_cell_time(struct span cell, int64_t units_per_second, int64_t *milliseconds);

/* A list of skills: "[0, 1, 5]" is split at commas, anything else at `separator`: a text, or
 * one of the words none, space, comma, semicolon and auto. none keeps every cell whole. auto means ~~, ; or | if the cell
 * has one of them, else a space or a comma if it separates only numbers ("62 91 127"), else the
 * cell is one skill. */
struct csv_cell_list {
    struct span rest;
    const char *separator;
};
struct csv_cell_list csv_cell_list(struct span cell, const char *separator);

/* The next piece that is not missing; false at the end. */
bool csv_cell_list_next(struct csv_cell_list *list, struct span *piece);

bool csv_cell_integer(struct span cell, int64_t *value);
bool csv_cell_number(struct span cell, double *value); /* up to DATASET_MOST */

/* Writes "YYYY-MM-DD HH:MM:SS" for seconds since 1970, or the number if the year is
 * unlikely. */
enum { CELL_TIME_ROOM = 64 };
void csv_cell_say_time(int64_t seconds, char text[CELL_TIME_ROOM]);

#endif
