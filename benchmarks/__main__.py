"""`python -m benchmarks [NAME ...]`: one benchmark after the other; without names, all."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from benchmarks.records import Log, Options, PeerOptions

NAMES = {
    "attacks": "published lower bounds that the minimum-norm attack refutes",
    "native": "mnist-net_256x2 against binary search and the published brackets",
    "brackets": "mnist_nn and mnist_relu_3_50: brackets that close",
    "deep": "four hard networks against CROWN, alpha-CROWN and binary search",
    "marabou": "mnist_relu_3_50 against maraboupy",
    "vnnlib": "radii verify on VNN-LIB files with known answers",
    "ksearch": "mnist_nn: k queries at once, beside attack-guided and native radius search",
    "training": "an epoch of radii.training beside a plain PyTorch loop",
    "budget": "mnist_relu_3_50: a tenth of the time where it narrows most, beside in order",
    "arithmetic": "what proofs for floating point cost, beside those in real arithmetic",
    "certified": "random networks of all kinds: are their certificates accepted, and no more?",
    "checked_graphs": "random graphs of all operators: what `radii check` says of their results",
    "claims": "accepted certificates of networks that are fragile in floating point",
    "certificates": "what it costs to keep a certificate of every proof, and to check it",
    "float_errors": "errors of floating point that executions show, beside those that are allowed",
    "fragile": "networks made to break proofs in floating point: proofs that cover a break",
    "startup": "one tiny instance from start to end, and two workers beside one",
    "peers": "25 instances beside the published figures of alpha-beta-CROWN; 100 unseen ones",
    "exact_radii": "2,000 random small networks with known radii: contradictions, none is expected",
    "root_bounds": "the cost of one CROWN pass over the number of units, on residual networks",
    "limits": "memory and time after the limit on convSmallRELU__Point",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Figures measured in one run, against named baselines.",
        epilog="\n".join(f"{name:18s}{about}" for name, about in NAMES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(NAMES)}")
    parser.add_argument("--images", type=int, metavar="N", help="only the first N")
    parser.add_argument("--seed", type=_range, metavar="A:B", help="random networks from A below B")
    parser.add_argument(
        "--budget", "--seconds", type=float, metavar="S", help="wall seconds an instance"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="worker processes (1)")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="append results as JSON lines; skip what is there"
    )
    peers = parser.add_argument_group("peers")
    peers.add_argument(
        "--instances", default="", metavar="TEXT", help="only those whose name holds this"
    )
    peers.add_argument(
        "--set",
        default="",
        choices=("unseen", "small", "residual", "first"),
        help="images of this set, not of the table; unseen: 100 that nobody tuned on",
    )
    peers.add_argument(
        "--before", type=Path, metavar="DIR", help="another checkout of radii, measured in turn"
    )
    peers.add_argument(
        "--tool", type=Path, metavar="DIR", help="alpha-beta-CROWN, run on the same instances"
    )
    peers.add_argument(
        "--cpu", action="store_true", help="budgets in CPU seconds, for a busy machine"
    )
    args = parser.parse_args()
    for name in args.names:
        if name not in NAMES:
            parser.error(f"'{name}' is not one of {', '.join(NAMES)}")
    beside = PeerOptions(args.instances, args.set, args.before, args.tool, args.cpu)
    options = Options(Log.open(args.out), args.images, args.budget, args.jobs, args.seed, beside)
    for name in args.names or NAMES:
        import_module(f"benchmarks.{name}").main(options)


def _range(text: str) -> range:
    first, _, last = text.partition(":")
    return range(int(first), int(last))


if __name__ == "__main__":
    main()
