"""`radii convert`: networks, data, experiments and results, from one form to another."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from radii.cli._data import add_convert
from radii.cli._options import add_experiment_flags, add_options, experiment_from
from radii.cli._output import check_file, write_file
from radii.cli._sources import add_part_flags, part_choice
from radii.errors import ExperimentError
from radii.terminal import say

DESCRIPTION = "Turn what you have into what another tool reads, or the other way round."

EPILOG = """examples:
  radii convert network net.onnx --mean 0.13 --std 0.31 --out plain.onnx
  radii convert data digits:test[0:20] --out pictures
  radii convert vnnlib experiment.toml --eps 0.02 --out bench
  radii convert verona verona_experiment --domain 0:1 --out experiment.toml
  radii convert results results --out as_verona

results of others: radii import; tables of brackets: radii export
"""

NETWORK_EPILOG = """examples:
  radii convert network net.onnx.gz --out plain.onnx
  radii convert network net.onnx --mean 0.13 --std 0.31 --out plain.onnx

One file with everything in it: weights from files beside it, the normalisation as its first nodes.
Other tools then measure eps in the units that radii does.
"""

VNNLIB_EPILOG = """examples:
  radii convert vnnlib experiment.toml --eps 0.01,0.02 --out bench
  radii convert vnnlib --network net.onnx --data digits:test[0:9] --domain 0:1 --eps 8/255 \\
                       --timeout 300 --out bench
  radii verify --instances bench/instances.csv --out bench/results.csv

A folder in VNN-COMP's form: onnx/, vnnlib/, instances.csv (onnx,vnnlib,timeout). sat means that
the input is not robust at that eps. Misclassified inputs, which need no proof, are left out.
"""

VERONA_EPILOG = """examples:
  radii convert verona verona_experiment --domain 0:1 --out experiment.toml
  radii run experiment.toml --out results

Networks are those of its data/networks (or networks.csv), images those of data/images, with the
labels of data/image_labels.csv; the grid is the list of epsilons of its last run.
"""

RESULTS_EPILOG = """examples:
  radii convert results results --out as_verona

results/result_df.csv and tmp/NETWORK/image_N/epsilons_df.csv, with values of the grid. One row a
fact: UNSAT at what is proven, SAT at the first grid value with a counterexample, UNKNOWN where
there is neither. radii import reads it again.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", metavar="WHAT", required=True)

    network = _command(commands, "network", "an ONNX file: one file, normalised", NETWORK_EPILOG)
    network.add_argument("network", type=Path, metavar="NET.onnx", help="may be gzipped")
    add_options(network, mean="mean to subtract, per channel", std="to divide by, per channel")
    network.add_argument("--out", type=Path, required=True, metavar="FILE.onnx")
    network.set_defaults(run=_convert_network)

    add_convert(commands, "data", "convert data")

    vnnlib = _command(commands, "vnnlib", "an experiment as a VNN-COMP benchmark", VNNLIB_EPILOG)
    add_experiment_flags(vnnlib, without=("eps",))
    vnnlib.add_argument(
        "--eps", dest="radii", required=True, metavar="E[,E...]", help="such as 0.02 or 8/255"
    )
    vnnlib.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    vnnlib.set_defaults(run=_convert_to_vnnlib)

    verona = _command(commands, "verona", "a VERONA experiment as one of radii", VERONA_EPILOG)
    verona.add_argument("folder", type=Path, metavar="FOLDER", help="with data/networks and so on")
    verona.add_argument(
        "--domain", required=True, metavar="LOW:HIGH", help="range of valid input values: 0:1"
    )
    verona.add_argument("--out", type=Path, required=True, metavar="EXPERIMENT.toml")
    verona.set_defaults(run=_convert_from_verona)

    results = _command(commands, "results", "a run as a VERONA experiment folder", RESULTS_EPILOG)
    results.add_argument("directory", type=Path, metavar="DIR", help="the --out of a run")
    results.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    add_part_flags(results)
    results.set_defaults(run=_convert_results)


def _command(commands: Any, name: str, purpose: str, epilog: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(
        name,
        help=purpose,
        description=purpose[0].upper() + purpose[1:] + ".",
        epilog=epilog,
    )
    return made


def _convert_network(args: argparse.Namespace) -> int:
    from radii.networks import load_network

    # The domain is not part of the file; loading compares both runtimes on points of it.
    network = load_network(args.network, domain=(0, 1), mean=args.mean, std=args.std)
    if args.out.resolve() == args.network.resolve():
        raise ExperimentError(f"--out {args.out} is the network itself; name another file")
    check_file(args.out, "--out")
    write_file(args.out, network.onnx_bytes)
    shape = "x".join(map(str, network.input_shape))
    say(f"{args.out}: {shape} -> {network.output_size}, fingerprint {network.fingerprint[:12]}")
    return 0


def _convert_to_vnnlib(args: argparse.Namespace) -> int:
    from radii.problem import Grid, Query
    from radii.runs import prepare
    from radii.vnnlib import write_benchmark

    at = [Grid.of_one(part)[0] for part in args.radii.split(",")]
    plan = prepare(experiment_from(args))
    holding = [instance for instance in plan.instances if instance.holds]
    networks = {network.fingerprint: network for network in plan.networks}
    queries = (Query(instance, eps) for instance in holding for eps in at)
    count = write_benchmark(args.out, networks, queries, timeout=plan.settings.timeout)
    left_out = len(plan.instances) - len(holding)
    note = f" ({left_out} misclassified inputs are left out)" if left_out else ""
    say(f"{args.out / 'instances.csv'}: {count} instances of {len(networks)} networks{note}")
    return 0


def _convert_from_verona(args: argparse.Namespace) -> int:
    from radii.problem import Domain
    from radii.runs import Experiment, values_of_file
    from radii.statistics import find_experiment

    Domain.parse(args.domain)
    if args.out.is_file():  # experiments are edited by hand
        raise ExperimentError(f"--out {args.out} is there already; name another file")
    experiment = find_experiment(args.folder)
    text = experiment.as_toml(domain=args.domain, beside=args.out.resolve().parent)
    check_file(args.out, "--out")
    write_file(args.out, text)
    Experiment.from_options(values_of_file(args.out))  # what was written can be read
    say(f"{args.out}: {len(experiment.networks)} networks, images of {experiment.data}")
    say(f"  radii run {args.out} --out results")
    for place in experiment.results:
        say(f"  radii import {place} -o {place.name}.csv")
    return 0


def _convert_results(args: argparse.Namespace) -> int:
    from radii.statistics import read_store, write_verona_folder

    results = read_store(args.directory, part_choice(args))
    split = results.settings.split or ""
    count = write_verona_folder(args.out, results.brackets, grid=results.grid, split=split)
    left_out = len(results) - count
    note = f" ({left_out} misclassified inputs are left out, as VERONA does)" if left_out else ""
    say(f"{args.out}: {count} results{note}")
    return 0
