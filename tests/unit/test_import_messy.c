/* What `cohort import` finds out by itself, what it merges and what it hides. */
#include "data/origin.h"
#include "data_tools/pseudonym.h"
#include "imported.h"

static struct class class;

/* Columns with usual names are found, their format of times too. */
static void test_csv_without_options(void **state)
{
    (void)state;
    write_text("o.csv", "User ID,Problem ID,Is Correct,Timestamp,skill_name,skill_id\n"
                        "a,q1,1,28.09.2012 15:11,k1,1\n"
                        "a,q2,0,28.09.2012 15:10,k1~~k2,1\n");
    import_class("csv @/o.csv --split none", &class);
    assert_string_equal(story(&class, "a", false), "q2- q1+");
    assert_int_equal(time_of(&class, "a", 1), 1348845060);
    assert_string_equal(item_story(&class, "q2"), "k1 k2");
    struct origin origin;
    char text[TIME_FORMAT_ROOM];
    assert_int_equal(origin_read(&class.shard, &origin), OK);
    origin_print_time(&origin, &class.shard, 0, text);
    assert_string_equal(text, "28.09.2012 15:10");
    assert_int_equal(origin.row[0], 1);
    assert_int_equal(origin.row[1], 0);
    assert_string_equal(names_get(&origin.files, 0), "o.csv");
    origin_free(&origin);
    free_class(&class);
    import_class("csv @/o.csv --time none --skills none --split none", &class);
    assert_string_equal(story(&class, "a", false), "q1+ q2-");
    assert_false(class.dataset.has_time);
    assert_int_equal(class.dataset.n_skills, 0);
    free_class(&class);

    /* Without items, skills are the items; an empty column is no time. */
    write_text("o.csv", "user_id,skill_name,correct,time\na,k1,1,\na,k2,0,\n");
    import_class("csv @/o.csv --split none", &class);
    assert_string_equal(story(&class, "a", false), "k1+ k2-");
    assert_false(class.dataset.has_time);
    free_class(&class);
    write_text("o.csv", "user_id,item,correct,correct\na,q,1,0\n");
    import_fails("csv @/o.csv", BAD_DATA, "columns 3 and 4 are both called 'correct'");
}

static void test_formats_of_times(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second; /* the second is ten seconds, minutes or days later */
        const char *options;
        int64_t seconds; /* of the first */
    } cases[] = {
        {"9/28/2012 3:11 PM", "9/28/2012 3:21 PM", "", 1348845060},
        {"28/9/2012 15:11", "28/9/2012 15:21", "", 1348845060},
        {"4/3/2012 00:00", "4/4/2012 00:00", "", 1333411200},  /* month first */
        {"4-3-2012 00:00", "14-3-2012 00:00", "", 1330819200}, /* day first */
        {"2012-09-28T17:11:00.5+02:00", "2012-09-28T15:11:10Z", "", 1348845060},
        {"1348845060123", "1348845070123", "", 1348845060},
        {"1348845060", "1348845070", "", 1348845060},
        {"20120928151100", "20120928151110", "", 1348845060},
        {"201209281511", "201209281521", "", 1348845060},
        {"20120928", "20120929", "", 1348790400},
        {"20120928", "20121332", "", 20120928}, /* no month 13: seconds */
        {"20120928", "20120929", "--time-unit s", 20120928},
        {"1348845060123", "1348845070123", "--time-unit us", 1348845},
        {"28 September 2012, 3:11 PM", "28 September 2012, 3:21 PM", "", 1348845060},
        {"12|28|09", "12|29|09", "--time-format %y|%d|%m", 1348790400},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        char text[512];
        snprintf(text, sizeof text, "student,item,correct,time\na,q2,1,\"%s\"\na,q1,1,\"%s\"\n",
                 cases[c].second, cases[c].first);
        write_text("t.csv", text);
        snprintf(text, sizeof text, "csv @/t.csv --split none %s", cases[c].options);
        import_class(text, &class);
        assert_string_equal(story(&class, "a", false), "q1+ q2+");
        assert_int_equal(time_of(&class, "a", 0), cases[c].seconds);
        struct origin origin;
        assert_int_equal(origin_read(&class.shard, &origin), OK);
        char printed[TIME_FORMAT_ROOM];
        origin_print_time(&origin, &class.shard, 1, printed);
        if (strchr(cases[c].second, 'Z') == NULL) /* offsets differ there */
            assert_string_equal(printed, cases[c].second);
        else
            assert_string_equal(printed, "2012-09-28T15:11:10.0Z");
        origin_free(&origin);
        free_class(&class);
    }
    write_text("t.csv", "student,item,correct,time\na,q,1,9/28/2012\na,q,1,28/9/2012\n"
                        "a,q,1,9/30/2012\n");
    import_fails("csv @/t.csv", BAD_DATA, "t.csv:3: time '28/9/2012' does not have the form");
    write_text("t.csv", "student,item,correct,time\na,q,1,1348845060\na,q,1,1348845060123\n");
    import_fails("csv @/t.csv", BAD_DATA, "t.csv:3: time '1348845060123' is not a number of s");
    write_text("t.csv", "student,item,correct,time\na,q,1,yesterday\n");
    import_fails("csv @/t.csv", BAD_DATA, "set --time-format");
    import_fails("csv @/t.csv --time-format %H:%M", BAD_USER, "does not determine a day");
    write_text("t.csv", "student,item,correct,time\na,q1,1,0\na,q1,1,0\na,q2,0,0\n");
    import_class("csv @/t.csv --split none", &class);
    assert_false(class.dataset.has_time);
    assert_int_equal(class.dataset.n_attempts, 3);
    free_class(&class);
}

/* One row per skill; repeats; scores. */
static void test_repeats_and_scores(void **state)
{
    (void)state;
    write_text("r.csv", "student,item,correct,time,skill\na,q,1,5,k1\na,q,1,5,k2\na,q,1,5,k1\n"
                        "a,q,0,5,k3\na,q,1,6,k1\n");
    import_class("csv @/r.csv --split none", &class);
    assert_string_equal(story(&class, "a", false), "q+ q+ q- q+"); /* the third repeats k1 */
    assert_string_equal(item_story(&class, "q"), "k1 k2 k3");
    struct origin origin;
    assert_int_equal(origin_read(&class.shard, &origin), OK);
    static const uint32_t rows[] = {0, 2, 3, 4};
    assert_memory_equal(origin.row, rows, sizeof rows);
    origin_free(&origin);
    free_class(&class);
    import_class("csv @/r.csv --split none --merge-repeats", &class);
    assert_string_equal(story(&class, "a", false), "q+ q+");
    free_class(&class);
    import_class("csv @/r.csv --split none --keep-repeats", &class);
    assert_int_equal(class.dataset.n_attempts, 5);
    free_class(&class);
    import_class("csv @/r.csv --split none --time none --merge-repeats", &class);
    assert_string_equal(story(&class, "a", false), "q+ q- q+"); /* adjacent rows */
    free_class(&class);
    import_fails("csv @/r.csv --keep-repeats --merge-repeats", BAD_USAGE, "contradicts");

    /* Without times, or with equal ones: adjacent rows, each with a skill of its own. */
    write_text("r.csv", "student,item,correct,time,skill\na,q,1,5,k1\na,q,1,5,k2\na,q,1,5,k1\n"
                        "b,q,1,5,k1\na,q,1,5,k2\na,p,1,5,k2\na,q,1,5,k2\na,q,0,5,k1\n");
    static const char *const untimed[] = {"", "--time none"};
    for (size_t u = 0; u < COUNT(untimed); u++) {
        char line[100];
        snprintf(line, sizeof line, "csv @/r.csv --split none %s", untimed[u]);
        import_class(line, &class);
        assert_string_equal(story(&class, "a", false), "q+ q+ p+ q+ q-");
        free_class(&class);
    }
    import_class("csv @/r.csv --split none --time none --keep-repeats", &class);
    assert_int_equal(class.dataset.n_attempts, 8);
    free_class(&class);
    write_text("r.csv", "student,item,correct,skill\na,q,1,k1\n");
    write_text("r2.csv", "student,item,correct,skill\na,q,1,k2\n"); /* another part */
    import_class("csv --train @/r.csv --test @/r2.csv", &class);
    assert_int_equal(class.dataset.n_attempts, 2);
    free_class(&class);

    write_text("s.csv", "student,item,score\na,q1,0.5\na,q2,0.25\na,q3,\na,q4,1\n");
    import_fails("csv @/s.csv", BAD_DATA, "(scores need --threshold)");
    import_class("csv @/s.csv --split none --threshold 0.5", &class);
    assert_string_equal(story(&class, "a", false), "q1+ q2- q3? q4+");
    free_class(&class);
    import_fails("csv @/s.csv --threshold half", BAD_USER, "expected a number");

    write_text("q.csv", "item,k1,k2\nq4,1,1\nq1,0,1\nq9,1,1\n");
    import_class("csv @/s.csv --split none --threshold 1 --q-matrix @/q.csv", &class);
    assert_string_equal(item_story(&class, "q4"), "k1 k2");
    assert_string_equal(item_story(&class, "q1"), "k2");
    assert_string_equal(item_story(&class, "q2"), "");
    free_class(&class);
    write_text("q.csv", "1,0\n0,1\n");
    import_fails("csv @/s.csv --threshold 1 --q-matrix @/q.csv", BAD_DATA,
                 "add a first column with the items' names");
}

static void test_four_line(void **state)
{
    (void)state;
    write_text("f.txt", "7,anna\n1,1,2\n4,5,-1\n1,1,0\n8,bert\n2\n6\n1\n");
    import_class("four-line @/f.txt --split none", &class);
    assert_string_equal(story(&class, "anna", false), "1+ 1+ 2-");
    assert_string_equal(item_story(&class, "1"), "4 5");
    assert_string_equal(item_story(&class, "2"), "6");
    free_class(&class);
    import_class("four-line @/f.txt --split none --merge-repeats", &class);
    assert_string_equal(story(&class, "anna", false), "1+ 2-");
    free_class(&class);
    write_text("f.txt", "7,anna\n1,1\n4\n1,1\n");
    import_fails("four-line @/f.txt", BAD_DATA, "found 2 items, 1 skills and 2 outcomes");
    write_text("f.txt", "7,anna\n1,1\n4,4\n");
    import_fails("four-line @/f.txt", BAD_DATA, "expected four lines per student");
}

static void test_validation_from_training_files(void **state)
{
    (void)state;
    char text[4000] = "student,item,correct\n";
    for (int s = 0; s < 100; s++)
        snprintf(text + strlen(text), 32, "s%d,q1,1\ns%d,q2,0\n", s, s);
    write_text("train.csv", text);
    write_text("test.csv", "student,item,correct\ns1,q3,1\nnew,q3,0\n");
    import_class("csv @/train.csv --test @/test.csv --split by-student=90/10", &class);
    size_t n[N_SPLITS] = {0};
    for (size_t t = 0; t < class.shard.n_attempts; t++)
        n[mark_split(class.shard.mark[t])]++;
    assert_int_equal(n[TRAIN], 180);
    assert_int_equal(n[VALID], 20);
    assert_int_equal(n[TEST], 2);
    assert_string_equal(story(&class, "new", true), "q3-test*");
    free_class(&class);
    import_class("csv @/train.csv --test @/test.csv --split by-last", &class);
    assert_string_equal(story(&class, "s1", true), "q1+train* q2-valid q3+test");
    free_class(&class);
    import_fails("csv @/train.csv --test @/test.csv --split by-student=80/10/10", BAD_USER,
                 "as in by-student=90/10");
    import_fails("csv @/train.csv --test @/test.csv --split folds=5", BAD_USER, "--test");
}

static void test_pseudonyms(void **state)
{
    (void)state;
    /* FIPS 180-4 and RFC 4231 (test case 2). */
    uint8_t digest[32];
    pseudonym_sha256("a", 1, "bc", 2, digest);
    static const uint8_t abc[] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea};
    assert_memory_equal(digest, abc, sizeof abc);
    pseudonym_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, "", 0,
                     digest);
    static const uint8_t longer[] = {0x24, 0x8d, 0x6a, 0x61, 0xd2, 0x06, 0x38, 0xb8};
    assert_memory_equal(digest, longer, sizeof longer);
    const struct pseudonym_key key = {.bytes = "Jefe"};
    char *name = pseudonym_make(&key, "what do ya want for nothing?", 28);
    assert_string_equal(name, "5bdcc146bf60754e6a042426");
    memory_free(name);

    write_text("p.csv", "student,item,correct,score\nanna,q1,1,3\nbert,q1,0,4\nanna,q2,0,3\n");
    import_class("csv @/p.csv --target score --pseudonyms @/key --split none", &class);
    char path[512], first[64];
    struct stat found;
    snprintf(path, sizeof path, "%s/key", home);
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
    assert_int_equal(class.dataset.n_students, 2);
    snprintf(first, sizeof first, "%s", names_get(&class.students, 0));
    assert_int_equal(strlen(first), 24);
    const size_t anna = class.shard.first[1] == 2 ? 0 : 1;
    assert_true(class.dataset.target[anna] == 3 && class.dataset.target[1 - anna] == 4);
    free_class(&class);
    import_class("csv @/p.csv --pseudonyms @/key --split none", &class);
    assert_string_equal(names_get(&class.students, 0), first); /* the same the next night */
    free_class(&class);
    write_text("short", "secret\n");
    import_fails("csv @/p.csv --pseudonyms @/short", BAD_USER, "can be guessed");
    import_fails("csv @/p.csv --pseudonyms @/p.csv", BAD_USER, "is not a key");
    import_fails("csv @/p.csv --pseudonyms @/out.h5", BAD_USER, "a key is one line of at most");
    write_bytes("zeros", "0123456789abcdef\0\0", 18);
    import_fails("csv @/p.csv --pseudonyms @/zeros", BAD_USER, "is not a key");

    /* Targets find names in Latin-1, too. */
    write_text("p.csv", "student,item,correct,score\nRen\xe9,q1,1,3\n");
    import_class("csv @/p.csv --target score --pseudonyms @/key --split none", &class);
    assert_true(class.dataset.target[0] == 3);
    free_class(&class);
}

int main(int argc, char **argv)
{
    settle(&argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv_without_options),
        cmocka_unit_test(test_formats_of_times),
        cmocka_unit_test(test_repeats_and_scores),
        cmocka_unit_test(test_four_line),
        cmocka_unit_test(test_validation_from_training_files),
        cmocka_unit_test(test_pseudonyms),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    leave();
    return failed;
}
