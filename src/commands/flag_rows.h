/* Rows of a table of options. AT(field), which the file defines before the table, is the place of
 * a field of the command's struct. */
#ifndef COHORT_FLAG_ROWS_H
#define COHORT_FLAG_ROWS_H

#include "commands/commands.h"

/* `value` is what the help calls the option's value, such as FILE; NULL: by the kind. */
#define FLAG_TEXT(key, field, standard, value, help)                                           \
    {                                                                                          \
        {key, OPTION_TEXT, AT(field), standard, 0, 0, NULL, help}, 0, value                    \
    }
#define FLAG_SWITCH(key, field, help)                                                          \
    {                                                                                          \
        {key, OPTION_SWITCH, AT(field), "no", 0, 0, NULL, help}, 0, NULL                       \
    }
#define FLAG_INTEGER(key, field, standard, least, most, help)                                  \
    {                                                                                          \
        {key, OPTION_INTEGER, AT(field), standard, least, most, NULL, help}, 0, NULL           \
    }
#define FLAG_NUMBER(key, field, standard, least, most, help)                                   \
    {                                                                                          \
        {key, OPTION_NUMBER, AT(field), standard, least, most, NULL, help}, 0, NULL            \
    }
#define FLAG_CHOICE(key, field, standard, choices, value, help)                                \
    {                                                                                          \
        {key, OPTION_CHOICE, AT(field), standard, 0, 0, choices, help}, 0, value               \
    }

/* -o of the commands that write a data set. */
#define FLAG_OUTPUT                                                                            \
    {                                                                                          \
        {                                                                                      \
            "output", OPTION_TEXT, AT(output), "",                                             \
            0,        0,           NULL,       "write the data set to this file"},             \
            'o', "DATA.h5"                                                                     \
    }

#endif
