"""Which parametric family describes each group's radii, for `radii compare --fit`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from radii.distributions import FAMILIES, Distribution, goodness_of_fit
from radii.errors import InputError


def fit_rows(groups: Mapping[str, Distribution], seed: int) -> list[dict[str, Any]]:
    """One a group and family: the fit, its AIC, both tests, and what they say together.

    A family that cannot be fitted has the reason as its verdict, and no numbers.
    """
    rows = []
    for name, part in groups.items():
        for family in FAMILIES:
            row: dict[str, Any] = {"group": name, "family": family}
            try:
                found = goodness_of_fit(part, family, seed=seed)
            except InputError as error:
                numbers = dict.fromkeys(("fit", "aic", "ks_p", "monte_carlo_p"))
                rows.append(
                    {**row, **numbers, "verdict": f"Not tested: {error}.", "assumption": ""}
                )
                continue
            rows.append(
                {
                    **row,
                    "fit": str(found.fit),
                    "aic": found.fit.aic,
                    "ks_p": found.ks_p_value,
                    "monte_carlo_p": found.p_value,
                    "verdict": found.verdict(),
                    "assumption": found.assumption,
                }
            )
    return rows


def fit_sentences(rows: list[dict[str, Any]]) -> list[str]:
    """For each group the family of the smallest AIC, and what the tests say of every family."""
    told: list[str] = []
    for name in dict.fromkeys(row["group"] for row in rows):
        members = [row for row in rows if row["group"] == name]
        fitted = [row for row in members if row["aic"] is not None]
        if fitted:
            best = min(fitted, key=lambda row: float(row["aic"]))
            told.append(f"{name}: by AIC the best is the {best['fit']}.")
        else:
            told.append(f"{name}: no family can be fitted.")
        told += [f"  {row['verdict']}" for row in members]
    return told
