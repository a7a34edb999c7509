/* What students have mastered, for the pages about a class and about one student. */
#ifndef COHORT_REPORT_MASTERY_H
#define COHORT_REPORT_MASTERY_H

#include "report/report.h"
#include "runs/standing.h"
#include <stdio.h>

/* The rule that decides what is mastered (report_rule.c). */
struct report_rule {
    bool knows;            /* mastery is the chance of knowing, not of a right answer */
    double mastered, help; /* at least, below */
    int64_t answers;       /* at least, for both */
};
enum report_state { STATE_MASTERED, STATE_PROGRESS, STATE_HELP, STATE_UNTRIED, N_STATES };
/* What a student may practise next, the most useful first (report_rule.c). */
enum report_advice { ADVISE_UNKNOWN, ADVISE_PROGRESS, ADVISE_UNTRIED, ADVISE_NOT };
enum { REPORT_MOST_NEEDED = 10 }; /* right answers in a row that are tried out */

struct report_rule report_rule_of(bool knows);
enum report_state report_rule_state(const struct report_rule *rule, double mastery,
                                    int64_t answers);
enum report_advice report_rule_advice(const struct report_rule *rule, double mastery,
                                      int64_t answers);
/* A mastery in whole percent; one below a bar of the rule is not rounded up to it. */
int report_rule_percent(const struct report_rule *rule, double mastery);
/* The rule in words, and as a list; `thing` is "skill" or "item". Caller frees the words. */
char *report_rule_text(const struct report_rule *rule, const char *thing);
void report_rule_show(FILE *out, const struct report_rule *rule, const char *thing);

/* Answers at a skill that the model has seen. */
struct report_answers {
    int64_t n, right;
    int64_t n_recent, recent_right; /* the last ones, at most REPORT_RECENT */
    bool latest_right;
};
enum { REPORT_RECENT = 5 };

/* Counts the answers of student s of the shard at all skills: standing->skills.n of them,
 * zeroed. Returns how many outcomes are known but withheld from the model. */
int64_t report_path_count(const struct standing *standing, size_t s,
                          struct report_answers *answers);

/* Those of n things with the largest counts, at most `most`, largest first, of the *n_all that
 * have any. Caller frees. */
size_t report_sample_most(const int64_t *count, size_t n, size_t most, uint32_t **chosen,
                          size_t *n_all);
/* Collective: the skills with the most attempts, of those that have items. Caller frees. */
size_t report_sample_skills(const struct standing *standing, size_t most, uint32_t **skills,
                            size_t *n_all);
/* An even selection of at most `most` students with at least `fewest` attempts, the same on
 * every rank; numbers of the data set. Caller frees. */
size_t report_sample_students(const struct dataset *dataset, uint64_t fewest, size_t most,
                              uint64_t **students, size_t *n_all);
/* Those of the chosen students that this rank holds, as students of the shard. */
size_t report_sample_own(const struct shard *shard, const uint64_t *students, size_t n,
                         uint32_t *own);

/* Mastery after each of a student's last attempts, of the skills tried most in them, in the order
 * of their first attempt. */
enum { REPORT_PATH_SKILLS = 12, REPORT_PATH_ATTEMPTS = 40 };
struct report_path {
    size_t n_skills, n_attempts, n_before; /* n_before: earlier attempts */
    size_t n_tried;                        /* skills of these attempts */
    uint32_t skill[REPORT_PATH_SKILLS];
    double mastery[REPORT_PATH_SKILLS * REPORT_PATH_ATTEMPTS]; /* n_skills x n_attempts */
    uint8_t mark[REPORT_PATH_SKILLS * REPORT_PATH_ATTEMPTS];   /* enum plot_heat_mark */
};
void report_path_take(struct report_path *path, struct standing *standing, size_t s);
/* `things`: names of all skills. */
void report_path_draw(FILE *out, const struct report_path *path, const struct names *things,
                      const char *thing, const char *title, const char *caption);
/* Mean mastery of the skills of the path, which `picture` shows. */
void report_path_draw_growth(FILE *out, const struct report_path *path, const char *thing,
                             const char *picture, bool is_fixed);

/* A skill that a student has tried. */
struct report_tried {
    uint32_t student, skill; /* student: its place among those measured */
    int64_t n;               /* answers that the model has seen */
    double mastery;
};

/* Students of a class, an even selection if there are many; on rank 0 only. */
enum { REPORT_GROWTH = 11 }; /* points of a student's growth */
struct report_class {
    bool is_there, by_item;
    bool is_fixed; /* see report_is_fixed */
    struct report_rule rule;
    size_t n_all, n_all_skills; /* students with attempts; skills with attempts and items */
    size_t n, n_skills;         /* students measured; skills of the pictures */
    struct names things;        /* names of all skills, or items */
    struct names names;         /* of the students measured, if wanted */
    uint64_t *student;          /* numbers in the data set */
    uint32_t *skill;            /* of the pictures: those with the most attempts come first */
    double *mastery;            /* n x n_skills */
    uint8_t *is_tried;          /* likewise */
    struct report_tried *tried; /* of all skills, by student */
    size_t n_tried;
    size_t n_grown;
    double *growth; /* n_grown x REPORT_GROWTH: mean mastery after tenths of the attempts */
    size_t example; /* the student of the path */
    struct report_path path;
};

/* "item" or "skill"; a student's name or number, which the caller frees. */
const char *report_class_thing(const struct report_class *class);
char *report_class_label(const struct report_class *class, size_t i);
/* The tables of who needs help with what, of at most n_rows rows. */
void report_needs_show(FILE *out, const struct report_class *class, int64_t n_rows);

/* Collective. Skips models of targets. */
CHECKED enum status report_class_measure(struct report_class *class,
                                         const struct inference *inference,
                                         const struct report_plan *plan);
void report_class_free(struct report_class *class);

/* Collective: the number of the student in the data set. */
CHECKED enum status report_find_student(const struct inference *inference, const char *student,
                                        size_t *found);
/* Collective: writes the page of one student of a run. */
CHECKED enum status report_student_write(const struct comm *comm, const char *path,
                                         const struct report_plan *plan);

#endif
