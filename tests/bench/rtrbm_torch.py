"""The exact RTRBM as usually written in PyTorch: a loop over steps, autograd, Adam. Padded batches of students cut at
200 answers. Prints answers per second over one epoch, or over the given seconds.

    rtrbm_torch.py THREE_LINE_FILE.csv.gz HIDDEN BATCH SECONDS THREADS
"""
import gzip
import sys
import time

import torch


def read(path):
    lines = [line.strip().strip(",") for line in gzip.open(path, "rt")]
    students = []
    for s in range(0, len(lines) - 2, 3):
        items = [int(word) for word in lines[s + 1].split(",") if word]
        outcomes = [int(word) for word in lines[s + 2].split(",") if word]
        students.append((items[:200], outcomes[:200]))
    return [student for student in students if student[0]]


class Rtrbm(torch.nn.Module):
    def __init__(self, n_items, hidden):
        super().__init__()
        self.w = torch.nn.Parameter(0.05 * torch.randn(n_items, 2, hidden))
        self.c = torch.nn.Parameter(torch.zeros(n_items, 2))
        self.u = torch.nn.Parameter(4 * torch.eye(hidden) + 0.05 * torch.randn(hidden, hidden))
        self.b = torch.nn.Parameter(torch.full((hidden,), -2.0))
        self.first = torch.nn.Parameter(torch.zeros(hidden))

    def forward(self, item, outcome, mask):
        n = item.shape[0]
        x, loss = self.first.expand(n, -1), 0.0
        for t in range(item.shape[1]):
            w = self.w[item[:, t]]
            energy = self.c[item[:, t]] + torch.nn.functional.softplus(x[:, None] + w).sum(2)
            log_p = torch.log_softmax(energy, 1)
            rows = torch.arange(n)
            loss = loss - (log_p[rows, outcome[:, t]] * mask[:, t]).sum()
            r = torch.sigmoid(x + w[rows, outcome[:, t]])
            x = self.b + r @ self.u.T
        return loss


def main():
    path, hidden, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.manual_seed(1)
    torch.set_num_threads(int(sys.argv[5]))
    students = read(path)
    model = Rtrbm(1 + max(max(items) for items, _ in students), hidden)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    order = torch.randperm(len(students)).tolist()
    limit, started, n_answers, loss = float(sys.argv[4]), time.time(), 0, 0.0
    for start in range(0, len(order), size):
        batch = [students[s] for s in order[start : start + size]]
        longest = max(len(items) for items, _ in batch)
        item = torch.zeros(len(batch), longest, dtype=torch.long)
        outcome = torch.zeros(len(batch), longest, dtype=torch.long)
        mask = torch.zeros(len(batch), longest)
        for k, (items, outcomes) in enumerate(batch):
            item[k, : len(items)] = torch.tensor(items)
            outcome[k, : len(items)] = torch.tensor(outcomes)
            mask[k, : len(items)] = 1
        optimizer.zero_grad()
        value = model(item, outcome, mask)
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        n_answers += int(mask.sum())
        loss += value.item()
        if time.time() - started > limit:
            break
    seconds = time.time() - started
    print(f"{n_answers / seconds:.0f} answers per second, loss {loss / n_answers:.4f}")


main()
