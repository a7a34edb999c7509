/* Files beside the answers: --time-meta has their times, by a column that both files share;
 * --item-meta has the skills and groups of items. */
#include "base/memory.h"
#include "data_tools/import_columns.h"

/* Reads the times of --time-meta by key. */
enum status import_columns_read_moments(struct columns *c)
{
    const struct import_flags *flags = c->import->flags;
    struct moments *moments = &c->moments;
    TRY(csv_open(&c->csv, flags->time_meta, 0, false));
    TRY(csv_read_header(&c->csv));
    struct field key, time;
    TRY(import_columns_find_field(&c->csv, "time-meta", "", c->preset->key, true, &key));
    TRY(import_columns_find_field(&c->csv, "time", flags->time, c->preset->key_time, true,
                                  &time));
    TRY(import_columns_learn_times(c, &time));
    for (bool got = true;;) {
        TRY(csv_next(&c->csv, &got));
        if (!got)
            break;
        bool is_bad = false;
        int64_t microseconds = 0;
        TRY(import_columns_check_shape(c, &is_bad));
        if (!is_bad)
            TRY(import_columns_read_time(c, &time, &microseconds, &is_bad));
        if (is_bad)
            continue;
        const struct span name = import_columns_cell(c, &key);
        const size_t n_known = moments->keys.names.n;
        const uint32_t number = name_index_add(&moments->keys, name.start, name.n);
        if (number == n_known)
            GROW(moments->microseconds, n_known, moments->capacity);
        else
            c->import->n_retimed += moments->microseconds[number] != microseconds;
        moments->microseconds[number] = microseconds;
    }
    c->import->n_bytes += c->csv.text.n_bytes;
    return OK;
}

/* Reads skills and groups of the known items from --item-meta. */
enum status import_columns_read_items(struct columns *c)
{
    struct import *import = c->import;
    const struct import_flags *flags = import->flags;
    TRY(csv_open(&c->csv, flags->item_meta, 0, false));
    TRY(csv_read_header(&c->csv));
    TRY(import_columns_find_field(&c->csv, "item", flags->item, c->preset->item, true,
                                  &c->item));
    TRY(import_columns_find_field(&c->csv, "skills", flags->skills, c->preset->meta_skills,
                                  flags->group[0] == '\0', &c->skills));
    TRY(import_columns_find_field(&c->csv, "group", flags->group, NULL, false, &c->group));
    const size_t n_items = builder_items(import->builder)->n;
    bool *described = NEW(bool, n_items);
    enum status status = OK;
    for (bool got = true;;) {
        bool is_bad = false;
        status = csv_next(&c->csv, &got);
        if (status == OK && got)
            status = import_columns_check_shape(c, &is_bad);
        if (status != OK || !got)
            break;
        if (is_bad)
            continue;
        const struct span name = import_columns_cell(c, &c->item);
        const uint32_t item = builder_find_item(import->builder, name.start, name.n);
        if (item == INDEX_NONE)
            continue;
        described[item] = true;
        import_columns_read_item(c, item);
    }
    import->n_undescribed = n_items;
    for (size_t i = 0; i < n_items; i++)
        import->n_undescribed -= described[i];
    memory_free(described);
    return status;
}
