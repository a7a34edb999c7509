/* Features of training attempts, kept between passes.
 *
 * Training needs the same features in every pass, about a dozen passes per epoch, and making
 * them costs as much as the rest of a pass. So they are kept once made: 8 bytes per entry and 8
 * per attempt. They lie in large pieces in the order of the students, so later passes read
 * memory sequentially. A rank that has reached its limit makes the features of its other
 * students again in every pass. Only the running time depends on that. */
#include "base/machine.h"
#include "base/memory.h"
#include "models/ktm/ktm_internal.h"
#include <string.h>

enum { PIECE = 1 << 22 };

struct ktm_cache {
    struct ktm_seen *seen; /* of the shard's students; attempts.first is NULL: not kept */
    char **pieces;
    size_t n_pieces, piece_room;
    char *next;
    size_t left, n_bytes, most; /* bytes left in the last piece; in all pieces; allowed */
};

struct ktm_cache *ktm_cache_create(size_t n_students, size_t most)
{
    struct ktm_cache *kept = NEW(struct ktm_cache, 1);
    kept->seen = NEW(struct ktm_seen, n_students);
    kept->most = most;
    return kept;
}

size_t ktm_cache_most(const struct comm *comm)
{
    const double n_ranks = comm_neighbours(comm), memory = machine_memory();
    return memory < 0x1p60 ? size_max(KTM_KEPT_LEAST, (size_t)(memory / 3 / n_ranks))
                           : KTM_KEPT_LEAST;
}

void ktm_cache_free(struct ktm_cache *kept)
{
    if (kept == NULL)
        return;
    for (size_t p = 0; p < kept->n_pieces; p++)
        memory_free(kept->pieces[p]);
    memory_free(kept->pieces);
    memory_free(kept->seen);
    memory_free(kept);
}

/* Room for a student; NULL if the limit is reached. */
static char *take(struct ktm_cache *kept, size_t n)
{
    if (n > kept->left) {
        const size_t size = size_max(n, size_min(PIECE, kept->most));
        if (kept->n_bytes + size > kept->most)
            return NULL;
        GROW(kept->pieces, kept->n_pieces, kept->piece_room);
        kept->next = kept->pieces[kept->n_pieces++] = memory_scratch(size, 1);
        kept->left = size;
        kept->n_bytes += size;
    }
    char *room = kept->next;
    kept->next += n;
    kept->left -= n;
    return room;
}

static const void *put(char **room, const void *from, size_t n)
{
    char *to = *room;
    memcpy(to, from, n);
    *room += n;
    return to;
}

struct ktm_seen ktm_cache_student(struct ktm_cache *kept, struct ktm_walk *walk,
                                  const struct shard *shard, size_t s, size_t student_row)
{
    struct ktm_seen *seen = &kept->seen[s];
    if (seen->attempts.first != NULL)
        return *seen;
    ktm_walk_student(walk, shard, s, 1u << TRAIN, true, student_row);
    const struct fm_features *made = &walk->attempts;
    const size_t n = made->n, n_entries = made->first[n];
    const size_t whole = n_entries * (sizeof *made->x + sizeof *made->row) +
                         (n + 1) * sizeof *made->first + n * sizeof *walk->place;
    char *room = take(kept, (whole + 7) / 8 * 8);
    if (room == NULL)
        return (struct ktm_seen){*made, walk->place};
    seen->attempts.n = n;
    seen->attempts.x = put(&room, made->x, n_entries * sizeof *made->x);
    seen->attempts.first = put(&room, made->first, (n + 1) * sizeof *made->first);
    seen->attempts.row = put(&room, made->row, n_entries * sizeof *made->row);
    seen->place = put(&room, walk->place, n * sizeof *walk->place);
    return *seen;
}
