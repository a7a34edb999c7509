/* ranks: 1 3 */
/* The origin of attempts reads back on any number of ranks, is optional, and damage is
 * detected; times are printed as they were read. */
#include "base/file.h"
#include "base/h5.h"
#include "data/origin.h"
#include "tiny.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct comm world;

enum { N_STUDENTS = 70, LENGTH = 1000, N_ITEMS = 5, N = N_STUDENTS * LENGTH };

/* More than one piece of 64 Ki attempts, from two files, in reverse order of their rows. */
static void open_class(struct tiny *class, struct origin *origin)
{
    tiny_begin(class, N_ITEMS, false);
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        tiny_student(class);
        for (uint32_t t = 0; t < LENGTH; t++)
            tiny_attempt(class, t % N_ITEMS, mark_make(CORRECT, TRAIN, true, true));
    }
    *origin = (struct origin){.time_format = {"%d.%m.%Y %H:%M%z", 120}};
    names_add(&origin->files, "a.csv", 5);
    names_add(&origin->files, "b.csv", 5);
    origin->first = NEW(uint64_t, 3);
    origin->first[1] = 40;
    origin->first[2] = N;
    origin->row = NEW(uint32_t, N);
    origin->microsecond = NEW(uint32_t, N);
    for (uint32_t t = 0; t < N; t++) {
        origin->row[t] = N - 1 - t;
        origin->microsecond[t] = t;
    }
    class->draft.origin = origin;
    tiny_finish(class, &world);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct tiny class;
    struct origin written, got;
    open_class(&class, &written);
    const size_t first = N_STUDENTS * (size_t)world.rank / (size_t)world.size;
    const size_t n = N_STUDENTS * ((size_t)world.rank + 1) / (size_t)world.size - first;
    struct shard shard;
    tiny_must(dataset_read(&class.dataset, first, n, &shard));
    tiny_must(origin_read(&shard, &got));
    assert_int_equal(got.files.n, 2);
    assert_string_equal(got.time_format.text, "%d.%m.%Y %H:%M%z");
    assert_int_equal(got.time_format.offset, 120);
    assert_memory_equal(got.row, written.row + first * LENGTH, 4 * shard.n_attempts);
    assert_memory_equal(got.microsecond, written.microsecond + first * LENGTH,
                        4 * shard.n_attempts);
    uint64_t number = 0;
    static const struct {
        uint32_t row;
        size_t file;
        uint64_t number;
    } places[] = {{0, 0, 1}, {39, 0, 40}, {40, 1, 1}, {N - 1, 1, N - 40}};
    for (size_t p = 0; p < COUNT(places); p++) {
        assert_int_equal(origin_place(&got, places[p].row, &number), places[p].file);
        assert_int_equal(number, places[p].number);
    }
    char text[TIME_FORMAT_ROOM];
    origin_print_time(&got, &shard, 0, text);
    assert_string_equal(text, ""); /* no times */
    origin_free(&got);
    shard_free(&shard);
    /* The digest of what models see does not depend on it. */
    if (world.rank == 0) {
        char digest[33];
        snprintf(digest, sizeof digest, "%s", class.draft.head.digest);
        tiny_must(dataset_verify(class.path, NULL));
        class.draft.origin = NULL;
        tiny_must(dataset_write(&class.draft, class.path));
        assert_string_equal(class.draft.head.digest, digest);
    }
    comm_barrier(&world);
    tiny_must(origin_read(&class.shard, &got)); /* as of earlier versions: none */
    assert_true(got.row == NULL && got.files.n == 0 && got.time_format.text[0] == '\0');
    origin_free(&got);
    origin_free(&written);
    tiny_close(&class);
}

static void test_damage(void **state)
{
    (void)state;
    static const struct {
        const char *array, *attribute;
    } changes[] = {{"/attempts/row", NULL}, {"/attempts/microsecond", NULL},
                   {"/origin/first", NULL}, {"/digests/row", NULL},
                   {NULL, "time_offset"},   {NULL, "origin_digest"}};
    struct tiny class;
    struct origin written, got;
    open_class(&class, &written);
    for (size_t c = 0; c < COUNT(changes); c++) {
        if (world.rank == 0) {
            tiny_must(dataset_write(&class.draft, class.path));
            hid_t file = H5Fopen(class.path, H5F_ACC_RDWR, H5P_DEFAULT);
            if (changes[c].array != NULL) {
                hid_t array = H5Dopen2(file, changes[c].array, H5P_DEFAULT);
                hid_t space = H5Dget_space(array);
                const hsize_t at = 1, one = 1;
                const uint64_t value = 7;
                hid_t memory = H5Screate_simple(1, &one, NULL);
                H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &one, NULL);
                H5Dwrite(array, H5T_NATIVE_UINT64, memory, space, H5P_DEFAULT, &value);
                H5Sclose(memory);
                H5Sclose(space);
                H5Dclose(array);
            } else {
                H5Adelete(file, changes[c].attribute);
                if (strcmp(changes[c].attribute, "time_offset") == 0)
                    tiny_must(h5_write_integer(file, changes[c].attribute, 60));
            }
            H5Fclose(file);
        }
        comm_barrier(&world);
        assert_int_equal(origin_read(&class.shard, &got), BAD_DATA);
        assert_non_null(strstr(fail_sentence(), "damaged or was changed"));
        fail_clear();
        comm_barrier(&world);
    }
    origin_free(&written);
    tiny_close(&class);
}

static void test_times(void **state)
{
    (void)state;
    static const struct {
        const char *format, *text;
        int64_t microseconds; /* INT64_MIN: not read */
        const char *printed;  /* NULL: as it was read */
    } times[] = {
        {"%d.%m.%Y %H:%M", "28.09.2012 15:11", 1348845060000000, NULL},
        {"%-m/%-d/%Y %-I:%M %p", "9/28/2012 3:11 PM", 1348845060000000, NULL},
        {"%-m/%-d/%Y %-I:%M %p", "9/28/2012 12:00 AM", 1348790400000000, NULL},
        {"%-m/%-d/%Y %-I:%M %p", "9/28/2012 13:00 AM", INT64_MIN, NULL},
        {"%Y-%m-%dT%H:%M:%S.%3f%:z", "2012-09-28T17:11:00.250+02:00", 1348845060250000, NULL},
        {"%F %T", "2012-09-28 15:11:00", 1348845060000000, NULL},
        {"%F %T", "2012-09-28 15:11:00.5", 1348845060500000, "2012-09-28 15:11:00"},
        {"%a %d %b %Y", "Fri 28 Sep 2012", 1348790400000000, NULL},
        {"%A, %B %d, %y", "Friday, September 28, 12", 1348790400000000, NULL},
        {"%s", "1348845060", 1348845060000000, NULL},
        {"%d.%m.%Y %H:%M", "28.13.2012 15:11", INT64_MIN, NULL},
        {"%d.%m.%Y %H:%M", "28.09.2012 15:11x", INT64_MIN, NULL},
        {"%d.%m.%Y %H:%M", "28.09.2012", INT64_MIN, NULL},
        {"%d.%m.%Y", "29.02.2024", 1709164800000000, NULL},
        {"%d.%m.%Y", "29.02.2023", INT64_MIN, NULL},
    };
    for (size_t t = 0; t < COUNT(times); t++) {
        struct time_reading reading;
        char text[TIME_FORMAT_ROOM];
        tiny_must(time_format_check(times[t].format));
        const bool got =
            time_format_read(times[t].format, times[t].text, strlen(times[t].text), &reading);
        assert_int_equal(got, times[t].microseconds != INT64_MIN);
        if (!got)
            continue;
        assert_int_equal(reading.microseconds, times[t].microseconds);
        struct time_format format = {.offset = reading.offset};
        snprintf(format.text, sizeof format.text, "%s", times[t].format);
        time_format_print(&format, reading.microseconds / 1000000,
                          (uint32_t)(reading.microseconds % 1000000), text);
        assert_string_equal(text, times[t].printed != NULL ? times[t].printed : times[t].text);
    }
    static const struct {
        const char *text;
        int64_t microseconds;
    } iso[] = {{"2012-09-28", 1348790400000000},
               {"2012-09-28 15:11", 1348845060000000},
               {"2012-09-28T15:11:00Z", 1348845060000000},
               {"2012-09-28T17:11:00.125+02:00", 1348845060125000},
               {"2012-09-28 10:11:00.1234567-0500", 1348845060123456},
               {"2012-09-28 15:11:00+25:00", INT64_MIN},
               {"2012-09-28 15", INT64_MIN},
               {"2012-13-28", INT64_MIN},
               {"2000-02-29", 951782400000000},
               {"2024-02-29", 1709164800000000},
               {"1900-02-29", INT64_MIN},
               {"2023-02-29", INT64_MIN},
               {"2024-02-30", INT64_MIN}};
    for (size_t t = 0; t < COUNT(iso); t++) {
        struct time_reading reading;
        const bool got = time_format_read_iso(iso[t].text, strlen(iso[t].text), &reading);
        assert_int_equal(got, iso[t].microseconds != INT64_MIN);
        if (got)
            assert_int_equal(reading.microseconds, iso[t].microseconds);
    }
    static const char *const bad[] = {"%Y-%m", "%Q", "%d.%m.%Y %I:%M", "%H:%M"};
    for (size_t b = 0; b < COUNT(bad); b++) {
        assert_int_equal(time_format_check(bad[b]), BAD_USER);
        fail_clear();
    }
    static const struct {
        const char *format;
        int64_t seconds;
        uint32_t microseconds;
        const char *text;
    } numbers[] = {
        {"", 17, 0, "17"},           {"s", -2, 750000, "-2"},   {"s.2", -2, 750000, "-1.25"},
        {"s.1", -1, 500000, "-0.5"}, {"ms", 1, 250000, "1250"}, {"ms", -2, 750000, "-1250"},
        {"us", 1, 7, "1000007"},     {"ns", 1, 7, "1000007000"}};
    for (size_t n = 0; n < COUNT(numbers); n++) {
        struct time_format format = {.offset = 0};
        char text[TIME_FORMAT_ROOM];
        snprintf(format.text, sizeof format.text, "%s", numbers[n].format);
        time_format_print(&format, numbers[n].seconds, numbers[n].microseconds, text);
        assert_string_equal(text, numbers[n].text);
    }
    /* The calendar there and back, over leap years and centuries. */
    for (int64_t day = -800000; day < 800000; day += 17) {
        int64_t year = 0;
        int month = 0, of_month = 0;
        time_format_date(day, &year, &month, &of_month);
        assert_int_equal(time_format_day(year, month, of_month), day);
    }
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_times),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
