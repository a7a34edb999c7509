/* The files of settings that come with cohort. */
#ifndef COHORT_JOB_FILES_H
#define COHORT_JOB_FILES_H

#include "base/base.h"
#include "base/names.h"

/* The file of settings that a word of the command line means: a file, or one that was installed
 * with cohort. Fails with the nearest name. Caller frees. */
CHECKED enum status job_files_find(const char *word, char **path);

/* The names of the installed ones, in order, into zeroed `names`. */
void job_files_list(struct names *names);

#endif
