/* The time of training is not part of a checkpoint, which has the same bytes on any machine.
 * Each record of log.jsonl has the seconds since the first start, without the time between
 * starts. What comes after the last record, up to a signal, is in elapsed.json, which exists
 * only while a run is unfinished. */
#include "runs/elapsed.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

static const char name[] = "elapsed.json";

/* Records of earlier versions have only the seconds of their epoch. */
static double seconds_logged(const struct run *run)
{
    char *path = run_path(run, "log.jsonl"), *text = NULL;
    size_t n = 0;
    double seconds = 0;
    if (file_exists(path) && file_read(path, &text, &n) != OK)
        fail_clear();
    for (const char *line = text; line != NULL && *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        json_t *record = json_loadb(line, length, 0, NULL);
        const json_t *elapsed = json_object_get(record, "elapsed");
        seconds = elapsed != NULL
                      ? json_number_value(elapsed)
                      : seconds + json_number_value(json_object_get(record, "seconds"));
        json_decref(record);
        line += length + (line[length] == '\n');
    }
    memory_free(text);
    memory_free(path);
    return seconds;
}

double elapsed_before(const struct run *run)
{
    char *path = run_path(run, name);
    json_t *note = run_json(path);
    const double noted = json_number_value(json_object_get(note, "seconds"));
    json_decref(note);
    memory_free(path);
    return fmax(noted, seconds_logged(run));
}

void elapsed_note(const struct run *run, double seconds)
{
    char *text = memory_text("{\"seconds\": %.3f}\n", seconds);
    if (run_write(run, name, text) != OK)
        fail_clear();
    memory_free(text);
}

void elapsed_forget(const struct run *run)
{
    if (run_remove(run, name) != OK)
        fail_clear();
}
