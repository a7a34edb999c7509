/* Settings that change from epoch to epoch. */
#ifndef COHORT_EPOCH_VALUES_H
#define COHORT_EPOCH_VALUES_H

#include "base/base.h"

/* Pairs epoch:value with increasing epochs, as in "10:3 20:5": 3 from epoch 10 on, 5 from epoch
 * 20 on. Sets `value` to the value of an epoch; before the first pair, leaves it unchanged.
 * False if the text is not a list of such pairs with values from 1 to `most`. */
bool epoch_values_at(const char *text, int64_t epoch, int64_t most, int64_t *value);

#endif
