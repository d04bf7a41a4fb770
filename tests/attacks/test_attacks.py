"""Every attack: witnesses replay, failure is UNKNOWN, closed forms, ties, saturated outputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from conftest import dense_model
from radii.attacks import (
    Apgd,
    Attack,
    Fgsm,
    FoolboxAttack,
    MinimumNorm,
    Pgd,
    attack_specification,
    get,
)
from radii.errors import SpecificationError, UnsupportedQuery
from radii.networks import Network
from radii.problem import (
    Box,
    Domain,
    Halfspaces,
    Instance,
    LinearRequirement,
    Norm,
    OneToAny,
    OneToOne,
    Property,
    Query,
    Specification,
    Verdict,
)

OWN: list[Attack] = [MinimumNorm(), Apgd(), Pgd(), Fgsm()]
FOREIGN: list[Attack] = [
    FoolboxAttack("LinfPGD", steps=20),
    FoolboxAttack("LinfFastGradientAttack"),
]
EVERYWHERE = Domain(np.float64(-50), np.float64(50))


def network_of(*layers: tuple[np.ndarray, np.ndarray], domain: Domain = EVERYWHERE) -> Network:
    model = dense_model(*layers).SerializeToString()
    return Network.from_bytes(model, domain=domain, name="test")


def instance_of(
    network: Network,
    x: np.ndarray,
    *,
    label: int | None = None,
    norm: Norm = Norm.LINF,
    asked: Property | None = None,
) -> Instance:
    x = x.astype(np.float32)
    outputs = network.replay(x[None])[0]
    label = int(outputs.argmax()) if label is None else label
    return Instance(
        network.fingerprint, 0, x, label, outputs, asked or OneToAny(), norm, network.domain
    )


def linear_case(seed: int) -> tuple[Network, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    weights, bias = rng.normal(size=(4, 6)).astype(np.float32), rng.normal(size=4)
    x = rng.uniform(-1, 1, 6).astype(np.float32)
    network = network_of((weights, bias))
    outputs = weights.astype(float) @ x + bias.astype(np.float32)
    label = int(outputs.argmax())
    rivals = [t for t in range(4) if t != label]
    differences = np.array([weights[label] - weights[t] for t in rivals], float)
    gaps = np.array([outputs[label] - outputs[t] for t in rivals])
    dual = {Norm.LINF: 1, Norm.L2: 2, Norm.L1: np.inf}
    radii = np.array(
        [(gaps / np.linalg.norm(differences, dual[norm], axis=1)).min() for norm in Norm]
    )
    return network, x, radii


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("norm", list(Norm))
def test_minimum_norm_reaches_the_closed_form(seed: int, norm: Norm) -> None:
    network, x, radii = linear_case(seed)
    radius = radii[list(Norm).index(norm)]
    instance = instance_of(network, x, norm=norm)
    (result,) = MinimumNorm().attack(network, [Query(instance, 4 * radius)])
    assert result.witness is not None
    assert radius * (1 - 1e-5) <= result.witness.distance <= radius * 1.01


@pytest.mark.parametrize("attack", [*OWN, *FOREIGN], ids=lambda attack: attack.name)
def test_finds_and_fails_honestly(attack: Attack) -> None:
    network, x, radii = linear_case(11)
    instance = instance_of(network, x)
    found, missed = (
        attack.attack(network, [Query(instance, eps)])[0] for eps in (2 * radii[0], 0.9 * radii[0])
    )
    assert found.verdict is Verdict.NOT_ROBUST
    assert found.witness is not None
    assert found.witness.distance <= 2 * radii[0]
    outputs = network.replay(found.witness.input[None])[0]
    assert np.array_equal(outputs, found.witness.outputs)
    assert outputs.argmax() == found.witness.predicted
    assert not instance.requirement.holds(outputs[None], 0.0)[0]
    assert missed.verdict is Verdict.UNKNOWN
    assert (missed.witness, missed.proof) == (None, None)


@pytest.mark.parametrize("attack", OWN, ids=lambda attack: attack.name)
def test_same_seed_same_witness(attack: Attack) -> None:
    network, x, radii = linear_case(3)
    query = Query(instance_of(network, x), 3 * radii[0])
    first, again = (attack.attack(network, [query], seed=5)[0].witness for _ in range(2))
    assert first is not None
    assert again is not None
    assert np.array_equal(first.input, again.input)


def test_companions_in_a_batch_change_nothing() -> None:
    network, x, radii = linear_case(4)
    queries = [Query(instance_of(network, x + shift), 3 * radii[0]) for shift in (0, 0.01, 0.02)]
    together = MinimumNorm().attack(network, queries)
    alone = [MinimumNorm().attack(network, [query])[0] for query in queries]
    for one, other in zip(together, alone, strict=True):
        assert one.witness is not None
        assert other.witness is not None
        assert one.witness.distance == pytest.approx(other.witness.distance, rel=1e-4)


@pytest.mark.parametrize("attack", OWN, ids=lambda attack: attack.name)
def test_a_misclassified_input_is_its_own_witness(attack: Attack) -> None:
    network, x, _ = linear_case(5)
    right = int(network.replay(x[None])[0].argmax())
    instance = instance_of(network, x, label=(right + 1) % 4)
    (result,) = attack.attack(network, [Query(instance, 0.1)])
    assert result.witness is not None
    if attack.name != "fgsm":
        assert result.witness.distance == 0


def test_a_target_alone_counts() -> None:
    network, x, radii = linear_case(6)
    instance = instance_of(network, x)
    for target in {0, 1, 2, 3} - {instance.label}:
        asked = instance_of(network, x, asked=OneToOne(target))
        (result,) = MinimumNorm().attack(network, [Query(asked, 50.0)])
        assert result.witness is not None
        y = result.witness.outputs
        assert y[target] >= y[instance.label]
        assert result.witness.distance >= radii[0] * (1 - 1e-5)


def test_the_domain_is_never_left() -> None:
    unit = Domain(np.float64(0), np.float64(1))
    network = network_of((np.eye(2), np.zeros(2)), domain=unit)
    instance = instance_of(network, np.array([0.9, 0.05]))
    for norm, radius in ((Norm.LINF, 0.425), (Norm.L1, 0.85), (Norm.L2, 0.85 / np.sqrt(2))):
        asked = instance_of(network, instance.input, norm=norm)
        (result,) = MinimumNorm().attack(network, [Query(asked, 1.0)])
        assert result.witness is not None
        assert result.witness.distance == pytest.approx(radius, rel=0.01)
        assert result.witness.input.min() >= 0
        assert result.witness.input.max() <= 1


def test_a_tie_of_two_outputs_at_zero_is_found() -> None:
    """Behind a final ReLU both outputs are 0 below x = 0.2: there the label does not win."""
    layers = ((np.array([[1.0], [-1.0]]), np.array([-0.2, -5.0])), (np.eye(2), np.zeros(2)))
    network = network_of(*layers)
    (result,) = MinimumNorm().attack(
        network, [Query(instance_of(network, np.array([0.7]), label=0), 3.0)]
    )
    assert result.witness is not None
    assert result.witness.distance == pytest.approx(0.5, rel=1e-3)


def test_flat_regions_are_crossed() -> None:
    """The unit that breaks the network is off, and its gradient 0, all around the input."""
    hidden = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    output = np.array([[0.0, 0.0, 0.0], [0.0, 9.0, 9.0]])
    network = network_of((hidden, np.array([0.0, -0.5, -0.5])), (output, np.array([1.0, 0.0])))
    instance = instance_of(network, np.zeros(2))
    (result,) = MinimumNorm().attack(network, [Query(instance, 2.0)])
    assert result.witness is not None
    assert result.witness.distance == pytest.approx(0.5 + 1 / 9, rel=0.01)


def test_polyhedra_with_several_rows_in_a_box() -> None:
    network = network_of((np.eye(3), np.zeros(3)))
    both = Halfspaces(np.array([[-1.0, 0, 0], [0, -1.0, 0]]), np.array([0.9, 0.9]))
    region = Box(np.zeros(3), np.ones(3))
    specification = Specification(region, LinearRequirement((both,)))
    witness = attack_specification(network, specification, seed=0)
    assert witness is not None
    assert witness.outputs[:2].min() >= 0.9
    cut = Halfspaces(np.array([[1.0, 1.0, 0.0]]), np.array([-1.0]))
    impossible = Specification(region, LinearRequirement((both,)), cut)
    assert attack_specification(network, impossible, seed=0, seconds=2) is None


def test_names() -> None:
    for attack in OWN:
        assert get(attack.name).name == attack.name
    assert get("foolbox:L2PGD").name == "foolbox:L2PGD"
    for wrong in ("hammer", "foolbox:", "foolbox:Hammer"):
        with pytest.raises(SpecificationError):
            get(wrong)


@pytest.mark.parametrize("attack", FOREIGN, ids=lambda attack: attack.name)
def test_foolbox_reaches_a_target(attack: Attack) -> None:
    """Two classes alone are put to foolbox; what it finds must win against the label itself."""
    network, x, _ = linear_case(7)
    label = int(network.replay(x[None])[0].argmax())
    for target in {0, 1, 2, 3} - {label}:
        asked = instance_of(network, x, asked=OneToOne(target))
        (result,) = attack.attack(network, [Query(asked, 4.0)])
        assert result.witness is not None
        assert result.witness.outputs[target] >= result.witness.outputs[label]


@pytest.mark.parametrize("norm", list(Norm))
def test_foolbox_minimises_the_distance_asked_for(norm: Norm) -> None:
    network, x, radii = linear_case(2)
    radius = radii[list(Norm).index(norm)]
    name = {Norm.LINF: "LInfFMNAttack", Norm.L2: "L2FMNAttack", Norm.L1: "L1FMNAttack"}[norm]
    attack = FoolboxAttack(name, steps=200)
    assert attack.norms == {norm}
    (result,) = attack.attack(network, [Query(instance_of(network, x, norm=norm), 10 * radius)])
    assert result.witness is not None
    assert radius * (1 - 1e-5) <= result.witness.distance <= 1.5 * radius


def test_foolbox_attacks_of_any_distance_learn_the_norm() -> None:
    network, x, radii = linear_case(2)
    attack = FoolboxAttack("LinearSearchBlendedUniformNoiseAttack")
    assert attack.norms == set(Norm)
    (result,) = attack.attack(network, [Query(instance_of(network, x, norm=Norm.L1), 400.0)])
    assert result.witness is None or result.witness.distance >= radii[2] * (1 - 1e-5)


def test_foolbox_says_what_it_cannot_do() -> None:
    network, x, radii = linear_case(7)
    query = Query(instance_of(network, x), radii[0])
    with pytest.raises(UnsupportedQuery, match="does not search balls in l2"):
        FOREIGN[0].attack(network, [Query(instance_of(network, x, norm=Norm.L2), 1.0)])
    with pytest.raises(UnsupportedQuery, match="foolbox:GenAttack' failed: unsupported criterion"):
        FoolboxAttack("GenAttack").attack(network, [query])
    with pytest.raises(SpecificationError, match="cannot be made"):
        FoolboxAttack("LinfPGD", hammers=2)


def test_foolbox_without_a_point_to_start_from_is_unknown() -> None:
    """No input of the domain is misclassified: attacks that start from one cannot begin."""
    unit = Domain(np.float64(0), np.float64(1))
    network = network_of((np.eye(2), np.array([5.0, 0.0])), domain=unit)
    for name in ("HopSkipJumpAttack", "BoundaryAttack"):
        instance = instance_of(network, np.array([0.5, 0.5]), norm=Norm.L2)
        (result,) = FoolboxAttack(name).attack(network, [Query(instance, 0.5)])
        assert result.verdict is Verdict.UNKNOWN


def test_foolbox_takes_inputs_on_a_rounded_bound() -> None:
    """0.1 is larger in float32 than in float64: such an input must not be beyond the bounds."""
    narrow = Domain(np.float64(-0.1), np.float64(0.1))
    network = network_of((np.eye(2), np.zeros(2)), domain=narrow)
    (result,) = FOREIGN[0].attack(network, [Query(instance_of(network, np.array([0.1, 0.0])), 0.1)])
    assert result.witness is not None
    assert 0.05 - 1e-6 <= result.witness.distance <= 0.1


def test_foolbox_leaves_the_global_generators_alone() -> None:
    network, x, radii = linear_case(3)
    query = Query(instance_of(network, x), 3 * radii[0])
    np.random.seed(1)
    torch.manual_seed(1)
    expected = np.random.random(), float(torch.rand(1))
    np.random.seed(1)
    torch.manual_seed(1)
    first, again = (FOREIGN[0].attack(network, [query], seed=5)[0].witness for _ in range(2))
    assert (np.random.random(), float(torch.rand(1))) == expected
    assert first is not None
    assert again is not None
    assert np.array_equal(first.input, again.input)
