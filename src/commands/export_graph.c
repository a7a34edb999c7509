/* The graph between skills (or items) that a structured model has learned: an edge from a to b
 * means that a student's answers at a change what is expected at b. `gate` is how far the edge
 * is open, `strength` the root mean square of the weights that act along it. */
#include "base/csv_quote.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "commands/export_internal.h"
#include "runs/parallel_output.h"

struct graph {
    size_t n;
    real *gate, *strength;
    const struct names *names;
    uint32_t *edge; /* a * n + b: those to be written */
    size_t n_edges;
};

static void print_row(FILE *out, size_t e, const void *arg)
{
    const struct graph *graph = arg;
    const size_t a = graph->edge[e] / graph->n, b = graph->edge[e] % graph->n;
    csv_quote(out, names_get(graph->names, a));
    fputc(',', out);
    csv_quote(out, names_get(graph->names, b));
    fprintf(out, ",%.6g,%.6g\n", (double)graph->gate[graph->edge[e]],
            (double)graph->strength[graph->edge[e]]);
}

static void print_quoted(FILE *out, const char *name)
{
    fputc('"', out);
    for (; *name != '\0'; name++) {
        if (*name == '"' || *name == '\\')
            fputc('\\', out);
        fputc(*name, out);
    }
    fputc('"', out);
}

static void print_edge(FILE *out, size_t e, const void *arg)
{
    const struct graph *graph = arg;
    fputs("    ", out);
    print_quoted(out, names_get(graph->names, graph->edge[e] / graph->n));
    fputs(" -> ", out);
    print_quoted(out, names_get(graph->names, graph->edge[e] % graph->n));
    const double gate = (double)graph->gate[graph->edge[e]];
    fprintf(out, " [label=\"%.2f\", penwidth=%.1f];%s\n", gate, 0.5 + 2.5 * gate,
            e + 1 == graph->n_edges ? "\n}" : "");
}

static void choose_edges(struct graph *graph, double least)
{
    graph->edge = NEW(uint32_t, graph->n * graph->n);
    for (size_t e = 0; e < graph->n * graph->n; e++)
        if (e / graph->n != e % graph->n && (double)graph->gate[e] >= least)
            graph->edge[graph->n_edges++] = (uint32_t)e;
}

enum status command_export_graph(const struct inference *inference, const char *output,
                                 double least)
{
    const struct model_kind *kind = inference->model->kind;
    bool by_item = false;
    struct graph graph = {
        .n = kind->view.n_nodes ? kind->view.n_nodes(inference->model, &by_item) : 0};
    const bool drawing = file_ends_in(output, ".dot");
    if (graph.n == 0)
        return fail(
            BAD_USER,
            "%s: this model has no graph; train an rtrbm with model.structure=skills or "
            "model.structure=items",
            inference->checkpoint.path);
    if (!drawing && !file_ends_in(output, ".csv"))
        return fail(BAD_USAGE, "export: -o %s: expected FILE.csv or FILE.dot for a graph",
                    output);
    graph.names = by_item ? &inference->checkpoint.items : &inference->checkpoint.skills;
    graph.gate = NEW(real, graph.n * graph.n);
    graph.strength = NEW(real, graph.n * graph.n);
    kind->view.graph(inference->model, graph.gate, graph.strength);
    choose_edges(&graph, drawing ? least : 0);
    const char *head = !drawing            ? "from,to,gate,strength\n"
                       : graph.n_edges > 0 ? "digraph learned {\n    node [shape=box];\n"
                                           : "digraph learned {\n}\n";
    const struct comm *comm = inference->comm;
    enum status status = comm_agree(
        comm, comm->rank == 0 ? parallel_output_check_old(
                                    output, drawing ? "^digraph learned" : "^from,to,gate",
                                    "an export of a graph")
                              : OK);
    if (status == OK)
        status = parallel_output_write(comm, output, head, comm->rank == 0 ? graph.n_edges : 0,
                                       drawing ? print_edge : print_row, &graph);
    memory_free(graph.gate);
    memory_free(graph.strength);
    memory_free(graph.edge);
    return status;
}
