"""Deep knowledge tracing once more, in numpy: what `cohort predict` said must follow from the tensors that
`cohort export` wrote and from the data set alone.

    check_dkt.py DATA.h5 TENSORS.h5 PREDICTIONS.csv [SPLIT]     SPLIT: train, valid, test or all

Exit code 0 if every probability is right to 1e-5, and 2 where numpy or h5py are not installed.
"""
import csv
import sys

try:
    import h5py
    import numpy as np
except ImportError as missing:
    print(missing)
    sys.exit(2)


def names(group):
    return bytes(group["names"][:]).split(b"\0")[:-1]


def squash(x):
    return 1 / (1 + np.exp(-x))


GATES = {"rnn": ["state"], "lstm": ["in", "forget", "out", "cell"], "gru": ["reset", "keep", "state"]}


class Network:
    def __init__(self, file):
        pairs = (line.split(" = ") for line in file.attrs["config"].decode().splitlines() if " = " in line)
        self.option = {pair[0]: pair[-1] for pair in pairs}
        self.tensor = {name: values[:].astype(float) for name, values in file["tensors"].items()}
        self.cell = self.option["cell"]
        self.gates = GATES[self.cell]

    def read(self, features, seen):
        """An attempt: all layers' states move on."""
        x = {g: self.tensor[f"input_{g}"][features, seen].sum(axis=0) for g in self.gates}
        for layer, state in enumerate(self.states, 1):
            name = f"layer{layer}"
            w = {g: self.tensor[f"{name}_recurrent_{g}"] for g in self.gates}
            z = {g: x[g] + self.tensor[f"{name}_bias_{g}"] for g in self.gates}
            h = state["h"]
            if self.cell == "rnn":
                h = np.tanh(z["state"] + h @ w["state"])
            elif self.cell == "lstm":
                z = {g: z[g] + h @ w[g] for g in self.gates}
                state["c"] = squash(z["forget"]) * state["c"] + squash(z["in"]) * np.tanh(z["cell"])
                h = squash(z["out"]) * np.tanh(state["c"])
            else:
                reset = squash(z["reset"] + h @ w["reset"])
                keep = squash(z["keep"] + h @ w["keep"])
                h = keep * h + (1 - keep) * np.tanh(z["state"] + (reset * h) @ w["state"])
            state["h"] = h
            if layer < len(self.states):
                x = {g: h @ self.tensor[f"layer{layer + 1}_input_{g}"] for g in self.gates}

    def trace(self, attempts):
        """The probability of a correct answer before each attempt; these are (features, seen)."""
        zero = np.zeros(int(self.option["hidden"]))
        self.states = [{"h": zero, "c": zero} for _ in range(int(self.option["layers"]))]
        for features, seen in attempts:
            output = self.tensor["output"][features] @ self.states[-1]["h"]
            yield squash((output + self.tensor["output_bias"][features]).sum())
            self.read(features, seen)


def expected(data, network, wanted):
    """(student, item, probability) for the attempts of a split, in the order of the data set."""
    items, students = names(data["items"]), names(data["students"])
    first, skill_first = data["students/first"][:], data["items/skill_first"][:]
    item, mark, skills = data["attempts/item"][:], data["attempts/mark"][:], data["items/skills"][:]
    outcome, split, shown = mark & 3, mark >> 2 & 3, mark >> 4 & 1
    features = []
    common = [len(network.tensor["output"]) - 1] if network.option["common"] == "yes" else []
    for i in range(len(items)):
        own = skills[skill_first[i]:skill_first[i + 1]].astype(int)
        kind = network.option["input"]
        own = {"item": [i], "skill": own, "both": [i, *(own + len(items))]}[kind]
        features.append(np.array([*own, *common], int))
    seen = np.where(shown == 1, outcome, 2)
    for s, student in enumerate(students):
        here = range(first[s], first[s + 1])
        chances = network.trace((features[item[a]], seen[a]) for a in here)
        for a, p in zip(here, chances):
            if wanted in ("all", ("train", "valid", "test")[split[a]]):
                yield student.decode(), items[item[a]].decode(), p


def main(data, tensors, predictions, split="all"):
    with h5py.File(data) as data_file, h5py.File(tensors) as file, open(predictions) as table:
        rows = list(csv.DictReader(table))
        right = list(expected(data_file, Network(file), split))
    if [(row["student"], row["item"]) for row in rows] != [(student, item) for student, item, _ in right]:
        sys.exit(f"{predictions}: {len(rows)} predictions that are not those of {len(right)} attempts")
    off = [abs(float(row["probability"]) - p) for row, (_, _, p) in zip(rows, right)]
    print(f"{len(off)} probabilities, the largest difference is {max(off):.2g}")
    sys.exit(0 if max(off) < 1e-5 else f"line {off.index(max(off)) + 2} is wrong")


main(*sys.argv[1:])
