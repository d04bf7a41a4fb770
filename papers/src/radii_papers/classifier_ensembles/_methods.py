"""Tables 4 to 6: every method on every row, beside the paper's numbers."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from radii_papers._steps import (
    Paragraph,
    Part,
    StudySettings,
)
from radii_papers._tables import Beside, Cell, StudyTable
from radii_papers.baselines import BASELINES
from radii_papers.classifier_ensembles._measured import (
    BDA,
    GAME,
    LIMITS,
    MAX_MILP,
    MILP,
    SMT,
    UA,
    MethodAnswer,
    measure,
    rows_of,
)
from radii_papers.classifier_ensembles._method_claims import (
    Answers,
    agreement_claim,
    attacker_claims,
    contradicted,
    decided,
    is_beaten,
    max_milp_claims,
    milp_claims,
    reaching,
    smt_claims,
)
from radii_papers.classifier_ensembles._networks import (
    EnsembleData,
    is_of_signs,
    networks_of,
)
from radii_papers.classifier_ensembles._numbers import (
    PAPER_SECONDS,
    ROBUST,
    TABLE_4,
    TABLE_5,
    TABLE_6,
    TIMED_OUT,
    BenchmarkRow,
    paper_value,
)

ROW_COLUMNS = ("ID", "name", "|C|", "|A|", "|X|", "dim", "alpha", "eps")


def row_cells(row: BenchmarkRow) -> tuple[Cell, ...]:
    """What a row is about, as the paper writes it."""
    dim = f"{row.side}x{row.side}"
    what = (row.number, row.name, row.classifiers, row.attacks, row.points, dim)
    return (*what, f"{row.alpha:g}", f"{row.eps:g}")


def seconds_cell(answer: MethodAnswer, printed: str) -> Beside:
    if answer.answer == "timeout":
        return Beside(TIMED_OUT, printed)
    has_number = paper_value(printed) is not None
    return Beside(answer.seconds if has_number else f"{answer.seconds:.2f}", printed)


def value_cell(answer: MethodAnswer, printed: str, *others: MethodAnswer) -> Beside:
    """What the attack attains when it is replayed; with a remark where it claims more.

    A star where the solver calls it optimal and none of the `others` attains more.
    """
    if answer.answer == "robust":
        return Beside(ROBUST, printed)
    if answer.answer == "timeout":
        return Beside(None, printed)
    if not answer.is_replayed:
        return Beside(f"{answer.lower:.2f}, not as claimed", printed)
    is_number = paper_value(printed) is not None and not printed.endswith("*")
    is_starred = answer.method == MAX_MILP and answer.is_optimal and not is_beaten(answer, *others)
    star = "*" if is_starred else ""
    return Beside(answer.lower if is_number and not star else f"{answer.lower:.2f}{star}", printed)


def attained_cell(answer: MethodAnswer, printed: str) -> Beside:
    """The value of an attacker that claims nothing: what it attains, in time or not."""
    return Beside(answer.lower, printed)


def game_cell(answer: MethodAnswer) -> str:
    if answer.is_optimal:
        return f"{answer.lower:.4g}"
    return f"{answer.lower:.4g} to {answer.upper:.4g}"


def networks_step(data: EnsembleData, settings: StudySettings) -> list[Part]:
    """Train what is not kept, and say what was built."""
    rows, seen = rows_of(data, settings), set()
    lines: list[tuple[Cell, ...]] = []
    for row in rows:
        built = (row.name, row.classifiers, row.side)  # whatever the points
        if built in seen:
            continue
        seen.add(built)
        found = networks_of(data, row, settings)
        accuracies = [accuracy for _, accuracy in found]
        needed = "80 %" if is_of_signs(row.name) else "90 %"
        each = ", ".join(f"{accuracy:.3f}" for accuracy in accuracies)
        dim = f"{row.side}x{row.side}"
        lines.append((row.name, row.classifiers, dim, each, needed))
    columns = ("name", "|C|", "dim", "test accuracies", "at least, in the paper")
    missing = "" if data.signs is not None else " The traffic signs are not at hand: left out."
    return [
        Paragraph(
            "The paper's networks are not published, so its ensembles are trained anew: two digits "
            "of MNIST, or the signs *give way* and *priority* of GTSRB in grey, shrunk by "
            "averaging to the size in the table, pixels between 0 and 1; the first |C| of a dense "
            "network with 8 hidden units, a dense one with 6 and 6, one convolution with "
            "max-pooling, and one convolution (`2convs`, `3convs`: as many convolutions each); "
            "Adam, 500 steps. Points are the first |X| test images of the two classes; balls are "
            f"in L1, and as in the paper perturbed inputs need not be valid images.{missing}"
        ),
        StudyTable("networks", "The networks, rebuilt", columns, tuple(lines)),
    ]


def table_4(data: EnsembleData, settings: StudySettings) -> list[Part]:
    """SMT against MILP, and the exact value beside both."""
    games = measure(data, settings, GAME)
    milp = measure(data, settings, MILP)
    smt = measure(data, settings, SMT)
    rows = rows_of(data, settings)
    lines = []
    for row in rows:
        paper = TABLE_4[row.number]
        lines.append(
            (
                *row_cells(row),
                seconds_cell(smt[row.number], paper[0]),
                value_cell(smt[row.number], paper[1]),
                seconds_cell(milp[row.number], paper[2]),
                value_cell(milp[row.number], paper[3]),
                games[row.number].seconds,
                game_cell(games[row.number]),
                {"attack": "attack", "robust": ROBUST, "timeout": TIMED_OUT}[
                    games[row.number].answer
                ],
            )
        )
    columns = (
        *ROW_COLUMNS,
        *("SMT, s", "SMT, value", "MILP, s", "MILP, value"),
        *("radii, s", "exact value", "radii"),
    )
    forms = ("",) * 12 + (".2f", "", "")
    return [
        Paragraph(_limits_text(settings, milp, smt)),
        StudyTable("table-4", "Table 4: SMT versus MILP", columns, tuple(lines), forms),
        Paragraph(
            "*Not as claimed*: the solver's attack reaches alpha by its own arithmetic, but its "
            "points, replayed on ONNX Runtime, reach only the value shown; it does not count as an "
            "answer. A claim of *robust* by SMT or MILP is believed, not proven; radii's are "
            "proven, and its values are attained by replayed attacks and proven from above."
        ),
        *milp_claims(settings, rows, games, milp),
        *smt_claims(settings, rows, games, smt),
        agreement_claim(rows, games),
    ]


def _limits_text(settings: StudySettings, milp: Answers, smt: Answers) -> str:
    limits = LIMITS[settings.scale]
    solvers = sorted({answer.solver for answer in milp.values()})
    counts = ", ".join(
        f"{solver}: {sum(each.solver == solver for each in milp.values())} rows"
        for solver in solvers
    )
    smt_solver = next((answer.solver for answer in smt.values()), "Z3")
    return (
        "Numbers differ from the paper's for three reasons: the networks are others; the paper "
        "solved its programs with Gurobi, here they are solved on one thread by Gurobi where its "
        f"licence takes the size of the model, else by HiGHS ({counts}; SMT: {smt_solver}); and "
        f"the paper's limit of a row is {PAPER_SECONDS:g} s, ours {limits[MILP]:g} s "
        f"(SMT {limits[SMT]:g} s). So seconds compare methods here, not with the paper's own."
    )


def table_5(data: EnsembleData, settings: StudySettings) -> list[Part]:
    """MILP against MaxMILP."""
    games, milp = measure(data, settings, GAME), measure(data, settings, MILP)
    best = measure(data, settings, MAX_MILP)
    uniform, alone = measure(data, settings, UA), measure(data, settings, BDA)
    rows = rows_of(data, settings)
    lines = []
    for row in rows:
        paper = TABLE_5.get(row.number, ("",) * 4)
        lines.append(
            (
                *row_cells(row),
                seconds_cell(milp[row.number], paper[0]),
                value_cell(milp[row.number], paper[1]),
                seconds_cell(best[row.number], paper[2]),
                value_cell(
                    best[row.number],
                    paper[3],
                    games[row.number],
                    alone[row.number],
                    uniform[row.number],
                ),
                game_cell(games[row.number]),
            )
        )
    columns = (
        *ROW_COLUMNS,
        *("MILP, s", "MILP, value", "MaxMILP, s", "MaxMILP, value", "exact value"),
    )
    return [
        Paragraph(
            "A star, as in the paper: the solver calls the attack optimal for its objective, the "
            "losses added up over all classifiers; the value of an attack is the least loss of a "
            "classifier, which is not what MaxMILP maximises. The star is left out where the "
            "replayed attack does not reach that objective, and where another replayed attack (of "
            "UA, BDA or radii) has a larger value. No star is proven by radii."
        ),
        StudyTable("table-5", "Table 5: MILP versus MaxMILP", columns, tuple(lines)),
        *max_milp_claims(rows, games, milp, best),
    ]


def table_6(data: EnsembleData, settings: StudySettings) -> list[Part]:
    """The attackers: uniform, best deterministic, MaxMILP; on all rows, not only those attacked."""
    games, best = measure(data, settings, GAME), measure(data, settings, MAX_MILP)
    uniform, alone = measure(data, settings, UA), measure(data, settings, BDA)
    rows = rows_of(data, settings)
    lines = []
    for row in rows:
        paper = TABLE_6.get(row.number, ("",) * 3)
        lines.append(
            (
                *row_cells(row),
                attained_cell(uniform[row.number], paper[0]),
                attained_cell(alone[row.number], paper[1]),
                value_cell(
                    best[row.number],
                    paper[2],
                    games[row.number],
                    alone[row.number],
                    uniform[row.number],
                ),
                game_cell(games[row.number]),
            )
        )
    columns = (*ROW_COLUMNS, "UA, value", "BDA, value", "MaxMILP, value", "exact value")
    return [
        Paragraph("Stars are those of Table 5."),
        StudyTable("table-6", "Table 6: attackers", columns, tuple(lines)),
        *attacker_claims(rows, games, uniform, alone),
    ]


def answers_step(data: EnsembleData, settings: StudySettings) -> list[Part]:
    """All methods side by side: rows decided, claims that do not hold, seconds."""
    rows = rows_of(data, settings)
    every = {name: measure(data, settings, name) for name in LIMITS[settings.scale]}
    lines = [_method_line(name, rows, every, settings) for name in (GAME, *BASELINES)]
    measured = [each for answers in every.values() for each in answers.values()]
    minutes = sum(each.seconds for each in measured) / 60
    cpu_minutes = sum(each.cpu_seconds for each in measured) / 60
    wrong = sum(contradicted(rows, answers, every[GAME]) for answers in every.values())
    columns = (
        *("method", "rows decided", "attacks not as claimed", "robust, but attacked"),
        *("attains the exact value", "median s", "s in all", "CPU s in all", "limit, s"),
    )
    forms = ("", "", "", "", "", ".2f", ".1f", ".1f", "g")
    return [
        StudyTable("answers", f"The methods on {len(rows)} rows", columns, tuple(lines), forms),
        Paragraph(
            f"{wrong} claims of robustness are contradicted by a replayed attack of radii. "
            "UA and BDA only attack: they decide nothing. A value of 0 is attained by doing "
            f"nothing, and so by every method. Measuring all took {minutes:.0f} min, "
            f"{cpu_minutes:.0f} of the CPU, perhaps in several calls of which the first lines of "
            "this page count the last. Limits are of the wall: on a machine that has other work a "
            "method gets less of the CPU than its limit says."
        ),
    ]


def _method_line(
    name: str,
    rows: Sequence[BenchmarkRow],
    every: Mapping[str, Answers],
    settings: StudySettings,
) -> tuple[Cell, ...]:
    answers = every[name]
    found = list(answers.values())
    broken = sum(each.answer == "attack" and not each.is_replayed for each in found)
    wrong = contradicted(rows, answers, every[GAME])
    return (
        name,
        *((None,) * 3 if name in (UA, BDA) else (decided(answers), broken, wrong)),
        reaching(rows, answers, every[GAME]),
        statistics.median(each.seconds for each in found),
        sum(each.seconds for each in found),
        sum(each.cpu_seconds for each in found),
        LIMITS[settings.scale][name],
    )
