/* Where attempts came from: the rows of the source files, and how these wrote times. */
#ifndef COHORT_ORIGIN_H
#define COHORT_ORIGIN_H

#include "base/base.h"
#include "data/dataset.h"
#include "data/time_format.h"

/* Loaded on request only, never for training. Arrays are NULL where the file has none: data
 * sets of earlier versions and simulated ones have no rows. */
struct origin {
    struct names files;    /* of the import, in its order, without their directories */
    uint64_t *first;       /* files.n + 1: file f has the rows first[f] .. first[f+1] */
    uint32_t *row;         /* of each attempt of the shard, from 0, counted over all files */
    uint32_t *microsecond; /* of each attempt: what its time has beyond whole seconds */
    struct time_format time_format;
};

/* Collective. Reads the origin of a shard's attempts: row[t] and microsecond[t] belong to
 * shard->item[t]. */
CHECKED enum status origin_read(const struct shard *shard, struct origin *origin);
void origin_free(struct origin *origin);

/* The file of a row, as an index of `files`, and the number of the row in it. Rows count from 1
 * and do not include the header of a table. */
size_t origin_place(const struct origin *origin, uint32_t row, uint64_t *number);

/* Writes the time of attempt t of the shard as the source did; "" if it has no times. */
void origin_print_time(const struct origin *origin, const struct shard *shard, size_t t,
                       char text[TIME_FORMAT_ROOM]);

#endif
