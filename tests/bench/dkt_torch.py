"""Deep knowledge tracing as usually written in PyTorch, for comparison in bench_dkt.sh.

    dkt_torch.py TRAIN.csv.gz HIDDEN [SECONDS]

An lstm over embedded (item, outcome) pairs, padded batches of 64 sequences cut at 200 answers, all items' outputs
computed, Adam. Trains for about SECONDS (20) and prints answers per second, without padding. Exit code 2 if torch is
not installed.
"""
import gzip
import sys
import time

try:
    import torch
except ImportError as missing:
    print(missing)
    sys.exit(2)

CUT, BATCH = 200, 64


def sequences(path):
    """Yield (items from 0, outcomes) of each student, cut into pieces."""
    lines = gzip.open(path, "rt").read().splitlines()
    for at in range(0, len(lines) - 2, 3):
        items, outcomes = ([int(cell) for cell in line.rstrip(",").split(",")] for line in lines[at + 1:at + 3])
        for start in range(0, len(items), CUT):
            yield [item - 1 for item in items[start:start + CUT]], outcomes[start:start + CUT]


class Tracing(torch.nn.Module):
    def __init__(self, n_items, hidden):
        super().__init__()
        self.n_items = n_items
        self.embedding = torch.nn.Embedding(2 * n_items + 1, hidden, padding_idx=2 * n_items)
        self.cell = torch.nn.LSTM(hidden, hidden, batch_first=True)
        self.output = torch.nn.Linear(hidden, n_items)

    def forward(self, items, outcomes, real):
        seen = torch.where(real, items + outcomes * self.n_items, 2 * self.n_items)
        states, _ = self.cell(self.embedding(seen[:, :-1]))
        return self.output(states).gather(2, items[:, 1:, None]).squeeze(2)


def main(path, hidden, seconds=20):
    torch.manual_seed(1)
    torch.set_num_threads(2)
    data = list(sequences(path))
    n_items = 1 + max(max(items) for items, _ in data)
    items = torch.zeros(len(data), CUT, dtype=torch.long)
    outcomes, real = torch.zeros_like(items), torch.zeros(len(data), CUT, dtype=torch.bool)
    for row, (asked, right) in enumerate(data):
        items[row, :len(asked)] = torch.tensor(asked)
        outcomes[row, :len(asked)] = torch.tensor(right)
        real[row, :len(asked)] = True
    model = Tracing(n_items, int(hidden))
    optimizer = torch.optim.Adam(model.parameters(), 0.001)
    order = torch.randperm(len(data))
    n, start = 0, None
    for step, batch in enumerate(order.split(BATCH)):
        if step == 1:  # the first one warms up
            n, start = 0, time.monotonic()
        logit = model(items[batch], outcomes[batch], real[batch])
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            logit, outcomes[batch][:, 1:].float(), weight=real[batch][:, 1:].float(), reduction="sum")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        n += int(real[batch].sum())
        if start is not None and time.monotonic() - start > float(seconds):
            break
    print(f"{n / (time.monotonic() - start):.0f}")


main(*sys.argv[1:])
