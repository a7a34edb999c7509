/* The file that a mistyped path may mean. */
#ifndef COHORT_NEAREST_PATH_H
#define COHORT_NEAREST_PATH_H

/* "; did you mean runs/a?" if the directory of the path has an entry with a similar name, else
 * "". Caller frees. */
char *nearest_path_hint(const char *path);

#endif
