/* The origin of attempts, in the data set file beside them:
 *
 *     /attempts/row           uint32   row of each attempt, from 0, counted over all files
 *     /attempts/microsecond   uint32   optional: the part of each time below a second
 *     /origin/names           names    of the files
 *     /origin/first           uint64   [files + 1]: file f has the rows first[f] .. first[f+1]
 *     /digests/row            uint64   [2 x pieces]: XXH3 of every 65,536 rows
 *     /digests/microsecond    uint64   likewise
 *     time_format, time_offset, origin_digest    attributes of the file
 *
 * Models do not see any of this, so the data set's digest does not cover it: the same answers
 * have the same digest whatever file they came from. Instead
 *
 *     origin_digest = XXH3(digests of pieces, files, format of times)
 *
 * which is checked when the origin is read. Until then it costs nothing: no array is read. */
#include "data/origin.h"
#include "base/fail.h"
#include "base/memory.h"
#include "data/dataset_internal.h"
#include <string.h>
#include <xxhash.h>

static const char *const columns[] = {"row", "microsecond"};
enum { N_COLUMNS = COUNT(columns) };

/* Digests of the pieces of one array that are read or written. */
static void of_piece(const uint32_t *values, size_t n, uint64_t digest[2])
{
    const XXH128_hash_t hash = XXH3_128bits(values, n * sizeof *values);
    digest[0] = hash.high64;
    digest[1] = hash.low64;
}

static void add(XXH3_state_t *state, const void *bytes, uint64_t n)
{
    XXH3_128bits_update(state, &n, sizeof n); /* so that arrays cannot run into each other */
    if (n > 0)
        XXH3_128bits_update(state, bytes, n);
}

static void of_all(const struct origin *origin, uint64_t *const digests[N_COLUMNS],
                   size_t n_pieces, char text[33])
{
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL)
        fail_abort(BAD_IO, "out of memory for a digest");
    XXH3_128bits_reset(state);
    for (size_t c = 0; c < N_COLUMNS; c++)
        add(state, digests[c], digests[c] != NULL ? 2 * n_pieces * sizeof(uint64_t) : 0);
    add(state, origin->files.bytes, names_size(&origin->files));
    add(state, origin->first,
        origin->files.n > 0 ? (origin->files.n + 1) * sizeof *origin->first : 0);
    add(state, origin->time_format.text, strlen(origin->time_format.text));
    add(state, &origin->time_format.offset, sizeof origin->time_format.offset);
    const XXH128_hash_t hash = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    snprintf(text, 33, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

static enum status write_column(hid_t file, size_t c, const uint32_t *values, uint64_t n,
                                uint64_t *digests)
{
    char name[64];
    const uint64_t n_digests = 2 * dataset_n_pieces(n);
    for (size_t p = 0; p < dataset_n_pieces(n); p++) {
        const size_t start = p * DATASET_PIECE;
        of_piece(values + start, size_min(DATASET_PIECE, n - start), digests + 2 * p);
    }
    snprintf(name, sizeof name, "/attempts/%s", columns[c]);
    TRY(h5_write(file, name, H5T_STD_U32LE, H5T_NATIVE_UINT32, 1, &n, values));
    snprintf(name, sizeof name, "/digests/%s", columns[c]);
    return h5_write(file, name, H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, &n_digests, digests);
}

static enum status write_all(hid_t file, const struct origin *origin, uint64_t n,
                             uint64_t *const digests[N_COLUMNS])
{
    const uint32_t *const values[N_COLUMNS] = {origin->row, origin->microsecond};
    for (size_t c = 0; c < N_COLUMNS; c++)
        if (values[c] != NULL)
            TRY(write_column(file, c, values[c], n, digests[c]));
    if (origin->files.n > 0) {
        const uint64_t n_first = origin->files.n + 1;
        TRY(names_write(file, "/origin", &origin->files));
        TRY(h5_write(file, "/origin/first", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, &n_first,
                     origin->first));
    }
    char digest[33];
    of_all(origin, digests, dataset_n_pieces(n), digest);
    TRY(h5_write_text(file, "time_format", origin->time_format.text));
    TRY(h5_write_integer(file, "time_offset", origin->time_format.offset));
    return h5_write_text(file, "origin_digest", digest);
}

enum status origin_write(hid_t file, const struct dataset_content *content)
{
    const struct origin *origin = content->origin;
    if (origin == NULL)
        return OK;
    const size_t n_digests = 2 * dataset_n_pieces(content->head.n_attempts);
    uint64_t *const digests[N_COLUMNS] = {origin->row != NULL ? NEW(uint64_t, n_digests) : NULL,
                                          origin->microsecond != NULL ? NEW(uint64_t, n_digests)
                                                                      : NULL};
    const enum status status = write_all(file, origin, content->head.n_attempts, digests);
    for (size_t c = 0; c < N_COLUMNS; c++)
        memory_free(digests[c]);
    return status;
}

static enum status damaged(const char *what)
{
    return fail(BAD_DATA, "%s: the file is damaged or was changed; import it again", what);
}

static enum status read_files(hid_t file, struct origin *origin)
{
    if (!h5_exists(file, "/origin"))
        return OK;
    uint64_t n_first = 0;
    TRY(names_read(file, "/origin", &origin->files));
    TRY(h5_length(file, "/origin/first", &n_first));
    if (n_first != origin->files.n + 1)
        return damaged("/origin/first does not match the number of source files");
    origin->first = NEW(uint64_t, n_first);
    TRY(h5_read(file, "/origin/first", H5T_NATIVE_UINT64, n_first, origin->first));
    for (size_t f = 0; f < origin->files.n; f++)
        if (origin->first[0] != 0 || origin->first[f + 1] < origin->first[f])
            return damaged("/origin/first decreases");
    return OK;
}

static enum status read_format(hid_t file, struct time_format *format)
{
    char *text = h5_text(file, "time_format");
    const bool fits = text != NULL && strlen(text) < sizeof format->text;
    snprintf(format->text, sizeof format->text, "%s", text != NULL ? text : "");
    memory_free(text);
    if (!fits)
        return damaged("the attribute time_format is missing or too long");
    TRY(h5_integer(file, "time_offset", &format->offset));
    return format->offset >= -24 * 60 && format->offset <= 24 * 60
               ? OK
               : damaged("the attribute time_offset is not within a day");
}

/* Pieces that lie partly in the range are read entirely: only checked numbers are used. */
static enum status read_column(hid_t file, size_t c, const uint64_t *digests,
                               const struct shard *shard, uint32_t *values)
{
    const struct dataset *dataset = shard->dataset;
    const uint64_t first = dataset->first[shard->first_student],
                   end = first + shard->n_attempts;
    uint32_t *piece = NEW_SCRATCH(uint32_t, DATASET_PIECE);
    enum status status = OK;
    char name[64];
    snprintf(name, sizeof name, "/attempts/%s", columns[c]);
    for (uint64_t p = first / DATASET_PIECE;
         status == OK && first < end && p <= (end - 1) / DATASET_PIECE; p++) {
        const uint64_t start = p * DATASET_PIECE;
        const size_t n = size_min(DATASET_PIECE, dataset->n_attempts - start);
        uint64_t digest[2];
        status = h5_read_range(file, name, H5T_NATIVE_UINT32, start, n, piece, NULL);
        if (status != OK)
            break;
        of_piece(piece, n, digest);
        if (memcmp(digest, digests + 2 * p, sizeof digest) != 0)
            status = damaged(name);
        const uint64_t from = size_max(first, start), to = size_min(end, start + n);
        if (status == OK)
            memcpy(values + (from - first), piece + (from - start),
                   (to - from) * sizeof *values);
    }
    memory_free(piece);
    return status;
}

static enum status read_columns(hid_t file, const struct shard *shard, struct origin *origin,
                                uint64_t *digests[N_COLUMNS])
{
    const size_t n_pieces = dataset_n_pieces(shard->dataset->n_attempts);
    uint32_t **const values[N_COLUMNS] = {&origin->row, &origin->microsecond};
    char name[64], digest[33];
    for (size_t c = 0; c < N_COLUMNS; c++) {
        uint64_t n = 0;
        snprintf(name, sizeof name, "/attempts/%s", columns[c]);
        if (!h5_exists(file, name))
            continue;
        TRY(h5_length(file, name, &n));
        if (n != shard->dataset->n_attempts)
            return damaged(name);
        snprintf(name, sizeof name, "/digests/%s", columns[c]);
        digests[c] = NEW(uint64_t, 2 * n_pieces);
        *values[c] = NEW_SCRATCH(uint32_t, shard->n_attempts);
        TRY(h5_read(file, name, H5T_NATIVE_UINT64, 2 * n_pieces, digests[c]));
    }
    char *stored = h5_text(file, "origin_digest");
    of_all(origin, digests, n_pieces, digest);
    const bool same = stored != NULL && strcmp(stored, digest) == 0;
    memory_free(stored);
    if (!same)
        return damaged("the rows of the source do not match their stored digest");
    for (size_t c = 0; c < N_COLUMNS; c++)
        if (*values[c] != NULL)
            TRY(read_column(file, c, digests[c], shard, *values[c]));
    return OK;
}

/* Every row belongs to a file, and no time has more than a second of microseconds. */
static enum status check(const struct shard *shard, const struct origin *origin)
{
    const uint64_t n_rows = origin->files.n > 0 ? origin->first[origin->files.n] : 0;
    for (size_t t = 0; t < shard->n_attempts; t++)
        if ((origin->row != NULL && origin->row[t] >= n_rows) ||
            (origin->microsecond != NULL && origin->microsecond[t] >= 1000000))
            return damaged("an attempt has a row or a time that does not exist");
    return OK;
}

/* Without origin_digest nothing of an origin may be there. */
static enum status check_absent(hid_t file)
{
    static const char *const parts[] = {"/attempts/row", "/attempts/microsecond", "/origin",
                                        "/digests/row", "/digests/microsecond"};
    char *format = h5_text(file, "time_format");
    bool some = format != NULL;
    memory_free(format);
    for (size_t p = 0; p < COUNT(parts); p++)
        some |= h5_exists(file, parts[p]);
    return some ? damaged("the attribute origin_digest is missing") : OK;
}

static enum status read_all(const struct shard *shard, struct origin *origin)
{
    hid_t file = -1;
    TRY(dataset_open_again(shard->dataset, &file));
    char *stored = h5_text(file, "origin_digest");
    enum status status = stored == NULL ? check_absent(file) : OK;
    if (stored != NULL) {
        uint64_t *digests[N_COLUMNS] = {NULL};
        status = read_files(file, origin);
        if (status == OK)
            status = read_format(file, &origin->time_format);
        if (status == OK)
            status = read_columns(file, shard, origin, digests);
        if (status == OK)
            status = check(shard, origin);
        for (size_t c = 0; c < N_COLUMNS; c++)
            memory_free(digests[c]);
    }
    memory_free(stored);
    h5_let_go(file);
    return status;
}

enum status origin_read(const struct shard *shard, struct origin *origin)
{
    *origin = (struct origin){0};
    enum status status = comm_agree(shard->dataset->comm, read_all(shard, origin));
    if (status != OK) {
        origin_free(origin);
        return fail_context(status, "%s", shard->dataset->path);
    }
    return OK;
}

void origin_free(struct origin *origin)
{
    names_free(&origin->files);
    memory_free(origin->first);
    memory_free(origin->row);
    memory_free(origin->microsecond);
    *origin = (struct origin){0};
}

size_t origin_place(const struct origin *origin, uint32_t row, uint64_t *number)
{
    size_t low = 0, high = origin->files.n; /* the last file that begins at or before the row */
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (origin->first[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    *number = row - origin->first[low] + 1;
    return low;
}

void origin_print_time(const struct origin *origin, const struct shard *shard, size_t t,
                       char text[TIME_FORMAT_ROOM])
{
    text[0] = '\0';
    if (shard->time != NULL)
        time_format_print(&origin->time_format, shard->time[t],
                          origin->microsecond != NULL ? origin->microsecond[t] : 0, text);
}
