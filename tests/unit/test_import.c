/* Every format of `cohort import` on files small enough to check by eye. */
#include "imported.h"

static struct class class;

static void test_csv(void **state)
{
    (void)state;
    write_text("a.csv", "user,when,q,ok,skill,part\n"
                        "anna,30,q2,0,s1~~s2,algebra\n"
                        "bert,5,q1,true,,geometry\n"
                        "anna,10,q10,1,s1,algebra\n"
                        "anna,20,q9,,s3;s1,NULL\n"
                        "bert,4,q9,Incorrect,s3,\n");
    import_class("csv @/a.csv --student user --item q --outcome ok --time when --skills skill "
                 "--group part --split none",
                 &class);
    assert_int_equal(class.dataset.n_students, 2);
    assert_int_equal(class.dataset.n_attempts, 5);
    assert_string_equal(story(&class, "anna", false), "q10+ q9? q2-");
    assert_string_equal(story(&class, "anna", true), "q10+train* q9?train q2-train*");
    assert_string_equal(story(&class, "bert", false), "q9- q1+");
    assert_int_equal(time_of(&class, "anna", 0), 10);
    assert_int_equal(time_of(&class, "anna", 2), 30);
    assert_string_equal(item_story(&class, "q2"), "s1 s2 (algebra)");
    assert_string_equal(item_story(&class, "q9"), "s1 s3");
    assert_string_equal(item_story(&class, "q1"), "(geometry)");
    /* Items are in natural order. */
    assert_string_equal(names_get(&class.dataset.items, 2), "q9");
    assert_string_equal(names_get(&class.dataset.items, 3), "q10");
    assert_false(class.dataset.withheld);
    free_class(&class);
}

static void test_csv_shapes(void **state)
{
    (void)state;
    /* A byte order mark, CR LF, quoted fields with delimiters, quotes and line ends, blank
     * lines. */
    static const char text[] = "\xef\xbb\xbf\"student\", item ,\"correct\",note\r\n"
                               "\"Doe, Jane\",\"say \"\"x\"\"\",1,\"two\r\nlines\"\r\n"
                               "\r\n"
                               " Bob ,q,0,\r\n"
                               "\"Doe, Jane\",q,\"0\",\"\"";
    write_text("b.csv", text);
    import_class("csv @/b.csv --split none", &class);
    assert_string_equal(story(&class, "Doe, Jane", false), "say \"x\"+ q-");
    assert_string_equal(story(&class, "Bob", false), "q-");
    free_class(&class);

    write_gzip("b.csv.gz", text);
    import_class("csv @/b.csv.gz --split none", &class);
    assert_string_equal(story(&class, "Doe, Jane", false), "say \"x\"+ q-");
    free_class(&class);

    write_text("b.tsv", "student\titem\tcorrect\nx, y\tq;1\t1\n");
    import_class("csv @/b.tsv --split none", &class);
    assert_string_equal(story(&class, "x, y", false), "q;1+");
    free_class(&class);

    write_text("b.txt", "student item correct\nx q 1\n");
    import_class("csv @/b.txt --delimiter space --split none", &class);
    assert_string_equal(story(&class, "x", false), "q+");
    free_class(&class);
}

/* Records that straddle the reader's blocks of a megabyte, quoted or not, are read
 * correctly. */
static void test_csv_records_across_blocks(void **state)
{
    (void)state;
    enum { N_ROWS = 100000 };
    char *text = NEW(char, 64 * N_ROWS);
    size_t n = (size_t)sprintf(text, "student,item,correct,time,note\n");
    for (int r = 0; r < N_ROWS; r++)
        n += (size_t)sprintf(text + n, "s%d,\"q%d\",%d,%d,\"a \"\"%d\"\",\n%d\"\n", r % 7,
                             r % 100, r % 3 == 0, r, r, r * 37);
    write_bytes("long.csv", text, n);
    memory_free(text);
    import_class("csv @/long.csv --time time --split none", &class);
    assert_int_equal(class.dataset.n_attempts, N_ROWS);
    for (size_t s = 0; s < 7; s++)
        for (uint64_t t = class.shard.first[s]; t < class.shard.first[s + 1]; t++) {
            const int64_t r = class.shard.time[t];
            char item[32];
            snprintf(item, sizeof item, "q%d", (int)(r % 100));
            assert_string_equal(names_get(&class.dataset.items, class.shard.item[t]), item);
            assert_int_equal(mark_outcome(class.shard.mark[t]), r % 3 == 0);
            assert_int_equal(names_get(&class.students, s)[1] - '0', r % 7);
        }
    free_class(&class);
}

static void test_csv_times(void **state)
{
    (void)state;
    write_text("t.csv", "student,item,correct,time\n"
                        "a,q1,1,2010-08-18 20:17:13\n"
                        "a,q2,1,2010-08-18 20:17:12.900\n"
                        "a,q3,1,2010-08-18T20:17:12.100Z\n"
                        "a,q4,1,2010-08-18T22:17:11+02:00\n"
                        "a,q5,1,\"2010-08-18 20:17:10,5\"\n"
                        "a,q6,1,2000-02-29\n");
    import_class("csv @/t.csv --time time --split none", &class);
    assert_string_equal(story(&class, "a", false), "q6+ q5+ q4+ q3+ q2+ q1+");
    assert_int_equal(time_of(&class, "a", 0), 951782400);
    assert_int_equal(time_of(&class, "a", 1), 1282162630);
    assert_int_equal(time_of(&class, "a", 3), 1282162632);
    assert_int_equal(time_of(&class, "a", 5), 1282162633);
    free_class(&class);

    /* Equal times keep the order of the rows; milliseconds decide the order and are then stored
     * as seconds. */
    write_text("t.csv", "student,item,correct,time\na,q1,1,2000\na,q2,0,1500\na,q3,0,2000\n"
                        "a,q4,0,1400\na,q5,0,9000\n");
    import_class("csv @/t.csv --time time --time-unit ms --split none --step time", &class);
    assert_string_equal(story(&class, "a", true),
                        "q4-train* q2-train* q1+train* |q3-train* q5-train*");
    assert_int_equal(time_of(&class, "a", 1), 1);
    free_class(&class);
    import_class("csv @/t.csv --time time --split none --step session --session-gap 600",
                 &class);
    assert_string_equal(story(&class, "a", true),
                        "q4-train* |q2-train* |q1+train* |q3-train* q5-train*");
    free_class(&class);

    import_class("csv @/t.csv --order time --split none", &class);
    assert_string_equal(story(&class, "a", false), "q4- q2- q1+ q3- q5-");
    assert_false(class.dataset.has_time);
    free_class(&class);
    import_fails("csv @/t.csv --time none --step time", BAD_USER, "needs times");
}

static void test_csv_skills(void **state)
{
    (void)state;
    static const struct {
        const char *cell, *separator, *skills;
    } cases[] = {
        {"62 91 127", "auto", "62 91 127"},
        {"\"Find Y, any form\"", "auto", "Find Y, any form"},
        {"\"3, 15\"", "auto", "3 15"},
        {"\"[0, 1, 5]\"", "auto", "0 1 5"},
        {"\"['a b', 'c']\"", "auto", "a b c"},
        {"a|b", "auto", "a b"},
        {"a b", "auto", "a b"},
        {"a b", "space", "a b"},
        {"10_12", "auto", "10_12"},
        {"10_12", "_", "10 12"},
        {"a;b", "none", "a;b"},
        {"[a]", "none", "[a]"},
        {"NULL", "auto", ""},
    };
    static const int n_skills[COUNT(cases)] = {3, 1, 2, 3, 2, 2, 1, 2, 1, 2, 1, 1, 0};
    for (size_t c = 0; c < COUNT(cases); c++) {
        char text[256];
        snprintf(text, sizeof text, "student,item,correct,skill\na,q,1,%s\n", cases[c].cell);
        write_text("k.csv", text);
        snprintf(text, sizeof text,
                 "csv @/k.csv --skills skill --skill-separator %s --split none",
                 cases[c].separator);
        import_class(text, &class);
        assert_string_equal(item_story(&class, "q"), cases[c].skills);
        assert_int_equal(class.dataset.n_skills, n_skills[c]);
        free_class(&class);
    }
}

static void test_split_by_files_and_columns(void **state)
{
    (void)state;
    write_text("train.csv", "student,item,correct\na,q1,1\nb,q1,0\n");
    write_text("valid.csv", "student,item,correct\na,q2,1\n");
    write_text("test.csv", "item,student,correct\nq3,a,0\nq3,c,\n");
    import_class("csv --test @/test.csv --train @/train.csv --valid @/valid.csv", &class);
    assert_string_equal(story(&class, "a", true), "q1+train* q2+valid* q3-test*");
    assert_string_equal(story(&class, "c", true), "q3?test");
    assert_false(class.dataset.withheld);
    free_class(&class);
    import_class("csv --test @/test.csv --train @/train.csv --valid @/valid.csv --withheld",
                 &class);
    assert_string_equal(story(&class, "a", true), "q1+train* q2+valid q3-test");
    assert_true(class.dataset.withheld);
    free_class(&class);
    import_fails("csv @/train.csv --valid @/test.csv --split by-last", BAD_USAGE,
                 "contradicts");

    write_text("s.csv", "student,item,correct,set\na,q1,1,train\na,q2,1,Val\na,q3,0,TEST\n");
    import_class("csv @/s.csv --split-column set", &class);
    assert_string_equal(story(&class, "a", true), "q1+train* q2+valid* q3-test*");
    free_class(&class);
}

static void test_item_metadata(void **state)
{
    (void)state;
    write_text("a.csv", "question_id,user_id,is_correct\n1,anna,1\n2,anna,0\n3,anna,1\n");
    write_text("meta.csv", "question_id,subject_id,unit\n1,\"[0, 7]\",u\n2,[7],v\n9,[8],v\n");
    write_text("names.csv", "subject_id,name\n0,Maths\n7,Algebra\n8,Unused\n");
    import_class("csv @/a.csv --item-meta @/meta.csv --group unit --skill-names @/names.csv "
                 "--split none",
                 &class);
    assert_string_equal(item_story(&class, "1"), "Maths Algebra (u)");
    assert_string_equal(item_story(&class, "2"), "Algebra (v)");
    assert_string_equal(item_story(&class, "3"), "");
    assert_int_equal(class.dataset.n_items, 3);
    free_class(&class);

    /* Two items with the same title keep their names in addition to it. */
    write_text("titles.tsv", "1\tSame \n2\tSame\n3\tOther\n");
    import_class("csv @/a.csv --item-names @/titles.tsv --split none", &class);
    assert_string_equal(story(&class, "anna", false), "Same (1)+ Same (2)- Other+");
    free_class(&class);
    import_fails("csv @/a.csv --skill-names @/titles.tsv", BAD_USER, "none of these names");
}

static void test_three_line(void **state)
{
    (void)state;
    write_text("train.txt", "3\n1,2,10,\n1,0,1,\n0\n\n\n2\n2,2\n0,1\n");
    write_text("test.txt", "1,\r\n10\r\n0\r\n");
    write_text("q.csv", "1,0\n1,1\n0,0\n0,0\n0,0\n0,0\n0,0\n0,0\n0,0\n0,1\n");
    import_class("three-line --train @/train.txt --test @/test.txt --q-matrix @/q.csv", &class);
    assert_int_equal(class.dataset.n_students, 3); /* train-2 has no attempts */
    assert_string_equal(story(&class, "train-1", true), "1+train* 2-train* 10+train*");
    assert_string_equal(story(&class, "train-3", false), "2- 2+");
    assert_string_equal(story(&class, "test-1", true), "10-test*");
    assert_string_equal(item_story(&class, "2"), "1 2");
    assert_string_equal(item_story(&class, "10"), "2");
    assert_string_equal(names_get(&class.dataset.items, 2), "10");
    free_class(&class);

    write_text("idle.txt", "0\n\n\n1\n5\n1\n");
    import_class("three-line @/idle.txt --split none", &class);
    assert_string_equal(story(&class, "2", false), "5+");
    free_class(&class);

    write_text("bad.txt", "3\n1,2\n1,0,1\n1\n5\n1\n");
    import_fails("three-line @/bad.txt", BAD_DATA,
                 "bad.txt:1: expected 3 items and outcomes, found 2 items");
    import_class("three-line @/bad.txt --skip-bad --split none", &class);
    assert_string_equal(story(&class, "2", false), "5+");
    free_class(&class);
    write_text("bad.txt", "1\n5\n7\n");
    import_fails("three-line @/bad.txt", BAD_DATA, "bad.txt:3");
    write_text("bad.txt", "1\n5\n");
    import_fails("three-line @/bad.txt", BAD_DATA, "the last student is incomplete");
    write_text("bad.txt", "user,item\n5\n1\n");
    import_fails("three-line @/bad.txt", BAD_DATA, "not a number of attempts");
}

static void test_matrix(void **state)
{
    (void)state;
    write_text("m.csv", "1,0,\nNA,1,0\n,,\n");
    import_class("matrix @/m.csv --split none", &class);
    assert_int_equal(class.dataset.n_students, 2);
    assert_int_equal(class.dataset.n_items, 3);
    assert_string_equal(story(&class, "1", false), "1+ 2-");
    assert_string_equal(story(&class, "2", false), "2+ 3-");
    free_class(&class);

    write_text("m.csv", "name,z,y,x\nanna,1,0,1\nbert,0,0,1\n");
    write_text("rows.csv", "k1,k2\n1,0\n0,1\n1,1\n"); /* items by skills */
    import_class("matrix @/m.csv --student name --q-matrix @/rows.csv --split none", &class);
    assert_string_equal(story(&class, "anna", false), "z+ y- x+"); /* in the order of columns */
    assert_string_equal(item_story(&class, "y"), "k2");
    assert_string_equal(item_story(&class, "x"), "k1 k2");
    free_class(&class);
    write_text("columns.csv", "1,0,1\n0,1,1\n"); /* skills by items */
    import_class("matrix @/m.csv --student name --q-matrix @/columns.csv --split none", &class);
    assert_string_equal(item_story(&class, "y"), "2");
    assert_string_equal(item_story(&class, "x"), "1 2");
    free_class(&class);
    write_text("wrong.csv", "1,0\n0,1\n");
    import_fails("matrix @/m.csv --student name --q-matrix @/wrong.csv", BAD_DATA,
                 "the Q-matrix is 2 by 2, but the number of items is 3");
    write_text("wrong.csv", "1,0,1\n0,1,2\n0,0,0\n");
    import_fails("matrix @/m.csv --student name --q-matrix @/wrong.csv", BAD_DATA, "0 or 1");
    import_fails("matrix @/m.csv", BAD_DATA, "m.csv:2: column 1 is 'anna'");
    import_fails("matrix @/m.csv --student nam", BAD_USER, "did you mean 'name'");
}

static void test_sequences(void **state)
{
    (void)state;
    write_text("x.txt", "2\n0 2\n\n1\n1\n");
    write_text("y.txt", "1\n2 0\n");
    import_class("sequences --train @/x.txt --test @/y.txt --items 3", &class);
    assert_int_equal(class.dataset.n_students, 3);
    assert_string_equal(story(&class, "train-1", true),
                        "0+train* |1-train* |2+train* 0-train* |1-train* |2-train*");
    assert_string_equal(story(&class, "train-2", false), "0- 1+ 2-");
    assert_string_equal(story(&class, "test-1", true), "0+test* |1-test* |2+test*");
    free_class(&class);
    import_fails("sequences @/x.txt --items 2", BAD_DATA, "x.txt:2: '2' is not a key");
    import_fails("sequences @/x.txt", BAD_USAGE, "--items");
    write_text("x.txt", "3\n0\n1\n");
    import_fails("sequences @/x.txt --items 3", BAD_DATA, "ends after 2 of the 3 lines");
}

static void test_grockit(void **state)
{
    (void)state;
    write_text("training.csv",
               "correct,outcome,user_id,question_id,track_name,tag_string,round_started_at\n"
               "0,2,7,10,5,222 233,2010-08-18 20:17:13\n"
               "1,1,7,11,5,24 49,2010-08-18 20:19:12\n"
               "0,3,7,12,5,,2010-08-18 20:20:42\n"
               "0,4,7,10,5,222 233,2010-08-18 20:16:42\n"
               "1,1,7,13,5,NULL,2010-08-18 20:20:02\n"
               "1,1,8,13,5,NULL,2010-08-18 20:20:02\n");
    write_text("valid_test.csv",
               "correct,user_id,question_id,track_name,tag_string,round_started_at\n"
               "1,7,14,4,222,2010-08-19 20:17:13\n");
    write_text("test.csv", "user_id,question_id,track_name,tag_string,round_started_at\n"
                           "8,14,4,222,2010-08-19 20:17:13\n");
    import_class("grockit @/training.csv", &class);
    assert_string_equal(story(&class, "7", true),
                        "10?train 10-train* 11+valid 13+test 12?train");
    assert_string_equal(story(&class, "8", true), "13+train*");
    assert_string_equal(item_story(&class, "10"), "222 233 (5)");
    assert_true(class.dataset.withheld);
    free_class(&class);
    import_class("grockit --train @/training.csv --valid @/valid_test.csv --test @/test.csv",
                 &class);
    assert_string_equal(story(&class, "7", true),
                        "10?train 10-train* 11+train* 13+train* 12?train 14+valid");
    assert_string_equal(story(&class, "8", true), "13+train* 14?test");
    assert_int_equal(class.dataset.n_groups, 2);
    free_class(&class);
}

static void test_assistments(void **state)
{
    (void)state;
    /* Sorted by skill, like the real file; a Latin-1 byte in a name. */
    write_text("a.csv", "order_id,user_id,problem_id,correct,skill_id,skill_name\n"
                        "12,u1,p1,1,1,\"Order of Operations +,-,/\"\n"
                        "11,u1,p2,0,1,\"Order of Operations +,-,/\"\n"
                        "13,u2,p1,0,,\n"
                        "12,u1,p1,1,2,Aire d'un carr\xe9\n"
                        "14,u1,p1,0,2,Aire d'un carr\xe9\n");
    import_class("assistments @/a.csv --split none", &class);
    assert_int_equal(class.dataset.n_attempts, 4);
    assert_string_equal(story(&class, "u1", false), "p2- p1+ p1-");
    assert_string_equal(item_story(&class, "p1"),
                        "Aire d'un carr\xc3\xa9 Order of Operations +,-,/");
    assert_false(class.dataset.has_time);
    free_class(&class);
}

static void test_kddcup(void **state)
{
    (void)state;
    write_text("k.tsv",
               "Row\tAnon Student Id\tProblem Hierarchy\tProblem Name\tStep Name\tFirst "
               "Transaction Time"
               "\tCorrect First Attempt\tKC(Default)\tOpportunity(Default)\tKC(Other)\n"
               "1\tstu\tUnit A, Section 1\tP1\t\"x\" = 3\t2008-09-19 13:30:46.0\t1\tUsing "
               "simple numbers"
               "~~Find Y, any form\t4~~3\tother\n"
               "2\tstu\tUnit A, Section 1\tP1\tR6C2\t2008-09-19 13:30:40.0\t0\tFind Y, any "
               "form\t1\t\n");
    import_class("kddcup @/k.tsv --split none", &class);
    assert_string_equal(story(&class, "stu", false), "P1 / R6C2- P1 / \"x\" = 3+");
    assert_string_equal(item_story(&class, "P1 / \"x\" = 3"),
                        "Find Y, any form Using simple numbers (Unit A, Section 1)");
    assert_string_equal(item_story(&class, "P1 / R6C2"),
                        "Find Y, any form (Unit A, Section 1)");
    free_class(&class);
    import_class("kddcup @/k.tsv --split none --skills KC(Other)", &class);
    assert_int_equal(class.dataset.n_skills, 1);
    free_class(&class);
}

static void test_ednet(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/KT1", home);
    assert_int_equal(mkdir(path, 0777), 0);
    static const char header[] = "timestamp,solving_id,question_id,user_answer,elapsed_time\n";
    char text[512];
    snprintf(text, sizeof text, "%s%s", header,
             "1548996378149,48,q2845,d,47000\n1548996377530,48,q2844,d,47000\n"
             "1548996378665,49,q2846,,47000\n");
    write_text("KT1/u1.csv", text);
    write_gzip("KT1/u20.csv.gz", text);
    write_text("KT1/u3.csv", header);
    import_fails("ednet @/KT1", BAD_USER, "questions.csv");
    write_text("questions.csv",
               "question_id,bundle_id,explanation_id,correct_answer,part,tags,deployed_at\n"
               "q2844,b1,e1,d,1,1;2;179,1\nq2845,b1,e1,b,1,-1,1\nq2846,b1,e1,a,5,2,1\n");
    import_class("ednet @/KT1 --split none", &class);
    assert_int_equal(class.dataset.n_students, 2);
    assert_string_equal(story(&class, "u1", false), "q2844+ q2845- q2846?");
    assert_string_equal(story(&class, "u20", false), "q2844+ q2845- q2846?");
    assert_int_equal(time_of(&class, "u1", 0), 1548996377);
    assert_string_equal(item_story(&class, "q2844"), "1 2 179 (1)");
    assert_string_equal(item_story(&class, "q2845"), "(1)");
    free_class(&class);
    import_class("ednet @/KT1/u1.csv --questions @/questions.csv --split none", &class);
    assert_int_equal(class.dataset.n_students, 1);
    free_class(&class);
    write_text("KT1/u4.csv",
               "timestamp,solving_id,question_id,user_answer,elapsed_time\n1,1,q9,a,1\n");
    import_fails("ednet @/KT1", BAD_DATA, "u4.csv:2: question 'q9' is not in questions.csv");
}

static void test_eedi(void **state)
{
    (void)state;
    write_text("e.csv", "QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue\n"
                        "1,u,100,0,4,2\n2,u,101,1,1,1\n");
    write_text("when.csv", "AnswerId,DateAnswered,Confidence\n101,2020-01-02 03:04:00.000,\n"
                           "100,2020-01-03 03:04:00.000,75\n");
    write_text("what.csv", "QuestionId,SubjectId\n1,\"[3, 71]\"\n2,\"[3]\"\n");
    import_class("eedi @/e.csv --split none", &class);
    assert_string_equal(story(&class, "u", false), "1- 2+");
    free_class(&class);
    import_class("eedi @/e.csv --time-meta @/when.csv --item-meta @/what.csv --split none",
                 &class);
    assert_string_equal(story(&class, "u", false), "2+ 1-");
    assert_int_equal(time_of(&class, "u", 0), 1577934240);
    assert_string_equal(item_story(&class, "1"), "3 71");
    free_class(&class);
    write_text("when.csv", "AnswerId,DateAnswered\n101,2020-01-02 03:04:00.000\n");
    import_fails("eedi @/e.csv --time-meta @/when.csv", BAD_DATA, "AnswerId '100' is not in");
    import_fails("csv @/e.csv --time-meta @/when.csv", BAD_USAGE,
                 "does not accept --time-meta");
}

static void test_bad_input(void **state)
{
    (void)state;
    import_fails("csv @/nowhere.csv", BAD_USER, "nowhere.csv");
    import_fails("csv @", BAD_USER, "directory");
    write_text("empty.csv", "");
    import_fails("csv @/empty.csv", BAD_DATA, "is empty");
    import_fails("three-line @/empty.csv", BAD_DATA, "is empty");
    write_text("head.csv", "student,item,correct\n");
    import_fails("csv @/head.csv", BAD_DATA, "no attempts");
    write_bytes("nul.csv", "student,item\0,correct\n", 22);
    import_fails("csv @/nul.csv", BAD_DATA, "NUL");

    write_text("c.csv", "user_id,item,correct\na,q,1\n");
    import_fails("csv @/c.csv --student userid", BAD_USER,
                 "no column 'userid' for --student; did you mean 'user_id'?");
    import_fails("csv @/c.csv --time when", BAD_USER,
                 "the columns are: user_id, item, correct");
    import_fails("csv @/c.csv --split by-time=80/10/10", BAD_USER, "needs times");
    import_fails("csv @/c.csv --split by-student=80/10/5", BAD_USER, "add up to 95");
    import_fails("csv @/c.csv --delimiter ab", BAD_USER, "--delimiter ab");
    import_fails("csv @/c.csv --items 3", BAD_USAGE, "does not accept --items");
    import_fails("matrx @/c.csv", BAD_USAGE, "did you mean 'matrix'?");
    import_fails("csv", BAD_USAGE, "no input file");
    assert_int_equal(run_line(&command_import, "csv @/c.csv"), BAD_USAGE);
    assert_int_equal(run_line(&command_import, "csv @/c.csv -o @/no/where.h5"), BAD_USER);

    static const struct {
        const char *row, *words;
    } bad[] = {
        {"a,q,maybe,5\n", "bad.csv:3: outcome 'maybe'"},
        {"a,q,1\n", "bad.csv:3: 3 cells, but the header has 4: 'a,q,1'"},
        {"a,q,1,5,6\n", "bad.csv:3: 5 cells"},
        {",q,1,5\n", "bad.csv:3: the student is missing"},
        {"a,,1,5\n", "bad.csv:3: the item is missing"},
        {"a,q,1,soon\n", "bad.csv:3: time 'soon'"},
        {"a,q,1,99999999999999999999\n", "bad.csv:3: time '99999999999999999999' is too large"},
        {"a,q,1,2010-13-01\n", "bad.csv:3: time '2010-13-01'"},
        {"a,q,1,\n", "bad.csv:3: time ''"},
        {"\"a\"b,q,1,5\n", "bad.csv:3: text after a closing quote"},
    };
    for (size_t b = 0; b < COUNT(bad); b++) {
        char text[512];
        snprintf(text, sizeof text, "student,item,correct,time\na,ok,1,1\n%sa,after,1,9\n",
                 bad[b].row);
        write_text("bad.csv", text);
        import_fails("csv @/bad.csv --time time", BAD_DATA, bad[b].words);
        import_class("csv @/bad.csv --time time --skip-bad --split none", &class);
        assert_string_equal(story(&class, "a", false), "ok+ after+");
        assert_int_equal(class.dataset.n_items, 2);
        free_class(&class);
    }
    write_text("bad.csv", "student,item,correct\na,q,1\na,\"q,1\nb,q,0\n");
    import_fails("csv @/bad.csv", BAD_DATA,
                 "bad.csv:3: a quote in this record is never closed");
}

/* A gzip truncated anywhere, or with any byte changed, is detected. */
static void test_damaged_gzip(void **state)
{
    (void)state;
    char text[2000] = "student,item,correct\n", path[512], bytes[2000];
    for (int r = 0; r < 40; r++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "s%d,q%d,%d\n", r * r % 7,
                 r * 13 % 11, r % 2);
    write_gzip("whole.csv.gz", text);
    snprintf(path, sizeof path, "%s/whole.csv.gz", home);
    FILE *file = fopen(path, "rb");
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    import_class("csv @/whole.csv.gz --split none", &class);
    assert_int_equal(class.dataset.n_attempts, 40);
    free_class(&class);
    for (size_t cut = 2; cut < n; cut++) {
        write_bytes("cut.csv.gz", bytes, cut);
        import_fails("csv @/cut.csv.gz", BAD_DATA, "cut.csv.gz");
    }
    for (size_t at = 10; at < n; at++) { /* the first 10 bytes hold time stamps and the like */
        bytes[at] ^= 4;
        write_bytes("bent.csv.gz", bytes, n);
        import_fails("csv @/bent.csv.gz", BAD_DATA, "bent.csv.gz");
        bytes[at] ^= 4;
    }
}

/* The same attempts in another order of rows give the same data set, to the bit. */
static void test_order_of_rows(void **state)
{
    (void)state;
    enum { N = 2000 };
    char digest[33] = "";
    for (uint32_t stride = 1; stride < 1000; stride += 333) { /* 1, 334, 667: 2 of 3 coprime */
        char *text = NEW(char, 64 * N);
        size_t n = (size_t)sprintf(text, "student,item,correct,time,skill\n");
        for (uint32_t j = 0; j < N; j++) {
            const uint32_t r = stride == 334 ? N - 1 - j : j * stride % N;
            n += (size_t)sprintf(text + n, "s%u,q%u,%u,%u,k%u\n", r * 7919 % 83, r % 31,
                                 r * r % 3 % 2, r, r % 31 % 4);
        }
        write_bytes("order.csv", text, n);
        memory_free(text);
        import_class("csv @/order.csv --time time --skills skill --split by-attempt=70/10/20",
                     &class);
        if (digest[0] == '\0')
            memcpy(digest, class.dataset.digest, sizeof digest);
        assert_string_equal(class.dataset.digest, digest);
        free_class(&class);
    }
    import_class(
        "csv @/order.csv --time time --skills skill --split by-attempt=70/10/20 --seed 2",
        &class);
    assert_string_not_equal(class.dataset.digest, digest);
    free_class(&class);
}

static void test_shuffled_outcomes(void **state)
{
    (void)state;
    char *text = NEW(char, 40 * 4000);
    size_t n = (size_t)sprintf(text, "student,item,correct\n");
    for (int r = 0; r < 4000; r++) /* item q0 is always correct, q1 never */
        n += (size_t)sprintf(text + n, "s%d,q%d,%s\n", r / 10, r % 2,
                             r % 10 == 9 ? ""
                             : r % 2     ? "0"
                                         : "1");
    write_bytes("shuffle.csv", text, n);
    memory_free(text);
    import_class("csv @/shuffle.csv --shuffle-outcomes", &class);
    int n_correct[2] = {0}, n_unknown = 0;
    for (size_t t = 0; t < class.shard.n_attempts; t++) {
        n_unknown += mark_outcome(class.shard.mark[t]) == UNKNOWN;
        n_correct[class.shard.item[t]] += mark_outcome(class.shard.mark[t]) == CORRECT;
    }
    assert_int_equal(n_unknown, 400);
    assert_int_equal(n_correct[0] + n_correct[1], 2000);
    assert_in_range(n_correct[0], 1000, 1222); /* 1111 expected of 2000 in 3600, +- 4 sigma */
    free_class(&class);
}

int main(int argc, char **argv)
{
    settle(&argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_csv_shapes),
        cmocka_unit_test(test_csv_records_across_blocks),
        cmocka_unit_test(test_csv_times),
        cmocka_unit_test(test_csv_skills),
        cmocka_unit_test(test_split_by_files_and_columns),
        cmocka_unit_test(test_item_metadata),
        cmocka_unit_test(test_three_line),
        cmocka_unit_test(test_matrix),
        cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_grockit),
        cmocka_unit_test(test_assistments),
        cmocka_unit_test(test_kddcup),
        cmocka_unit_test(test_ednet),
        cmocka_unit_test(test_eedi),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_damaged_gzip),
        cmocka_unit_test(test_order_of_rows),
        cmocka_unit_test(test_shuffled_outcomes),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    leave();
    return failed;
}
