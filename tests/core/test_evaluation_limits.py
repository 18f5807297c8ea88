"""Tables at the edge: unprotected, one group only, and what cannot be computed."""

import numpy as np
import pandas as pd
import pytest

from kohort import WaveError, evaluate
from kohort import evaluation as ev
from kohort.evaluation import NotApplicable


@pytest.fixture
def x():
    rng = np.random.default_rng(3)
    return np.exp(rng.normal(size=(60, 4)) + rng.normal(size=(60, 1)))


def test_an_unprotected_file_loses_nothing_and_reveals_everything(x):
    found = evaluate(x, x, confidential=x[:, :1])
    for name in ("sse", "loss", "il", "il_mp", "il1s", "d_x", "delta_r", "delta_R", "delta_W"):
        assert found[name] == pytest.approx(0.0, abs=1e-12), name
    for name in ("dld", "id"):
        assert found[name] == pytest.approx(100.0), name
    assert found["score"] == pytest.approx(50.0)
    for name in ("unchanged", "unique", "k_real", "min_anonymity", "std_kept", "l_avg", "l_one"):
        assert found[name] == pytest.approx(1.0), name


@pytest.mark.parametrize("ties", ["expected", "first"])
def test_dld_of_an_unprotected_file_with_duplicates(ties):
    x = np.repeat(np.arange(10.0), 4)[:, None]
    assert ev.dld(x, x, ties=ties) == pytest.approx(25.0)


def test_a_single_group_loses_everything_and_reveals_a_guess(x):
    protected = np.repeat(x.mean(axis=0)[None], len(x), axis=0)
    found = evaluate(x, protected, confidential=x)
    for name in ("loss", "d_x", "d_y", "il4"):
        assert found[name] == pytest.approx(1.0), name
    for name in ("dld", "pld"):
        assert found[name] == pytest.approx(100 / len(x)), name
    assert found["k_real"] == found["min_anonymity"] == len(x)
    assert found["unique"] == 0
    assert found["std_kept"] == 0
    for name in ("il5", "il", "score", "delta_r", "s_delta_r", "delta_R", "delta_W", "fpc"):
        assert isinstance(found[name], NotApplicable), name
        assert "constant" in found[name].reason


@pytest.mark.parametrize(
    ("measure", "x", "protected", "reason"),
    [
        ("loss", np.ones((4, 2)), np.ones((4, 2)), "constant"),
        ("il1s", np.ones((4, 2)), np.ones((4, 2)), "constant"),
        ("il1", np.zeros((4, 1)), np.ones((4, 1)), "cell is zero"),
        ("il2", np.array([[-1.0], [1.0]]), np.zeros((2, 1)), "mean is zero"),
        ("il3", np.ones((4, 2)), np.ones((4, 2)), "covariance is zero"),
        ("il4", np.ones((4, 2)), np.ones((4, 2)), "variance is zero"),
        ("il5", np.arange(4.0)[:, None], np.ones((4, 1)), "one attribute"),
        ("il", np.arange(1.0, 5.0)[:, None], np.ones((4, 1)), "il5: there is one attribute"),
        ("delta_r", np.arange(4.0)[:, None], np.ones((4, 1)), "one attribute"),
        (
            "s_delta_r",
            np.array([[0, 1], [1, 0], [2, 3.0]]),
            np.array([[0, 1], [1, 0], [2, 2.0]]),
            "one pair",
        ),
        ("std_kept", np.ones((4, 2)), np.ones((4, 2)), "constant"),
        ("delta_R", np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]]), np.eye(4)[:, :2], "eigenvalues"),
        ("pld", np.ones((4, 21)), np.ones((4, 21)), "21 attributes"),
    ],
)
def test_what_cannot_be_computed_says_why(measure, x, protected, reason):
    found = getattr(ev, measure)(x, protected)
    assert isinstance(found, NotApplicable)
    assert reason in found.reason


def test_a_zero_mean_that_rounding_blurs_is_still_zero():
    x = np.array([0.1, 0.2, -0.3])[:, None]
    assert x.mean() != 0
    assert isinstance(ev.il2(x, np.zeros_like(x)), NotApplicable)


def test_an_attribute_without_part_in_the_first_component_is_named():
    a = np.array([1.0, -1, 1, -1, 2, -2, 2, -2])
    c = np.array([1.0, 1, -1, -1, 1, 1, -1, -1])
    x = pd.DataFrame({"income": a, "tax": a**3, "size": c})
    found = evaluate(x, x, measures=["delta_R", "delta_W"])
    for name in ("delta_R", "delta_W"):
        assert found[name].reason.endswith("first component (size)")


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 3), (2, 2), (3, 2)])
@pytest.mark.parametrize("kind", ["zeros", "ones", "range", "huge", "tiny"])
def test_small_tables_give_numbers_or_reasons(shape, kind):
    x = {
        "zeros": np.zeros(shape),
        "ones": np.ones(shape),
        "range": np.arange(float(np.prod(shape))).reshape(shape),
        "huge": 1e140 * np.arange(1.0, 1 + np.prod(shape)).reshape(shape),
        "tiny": 1e-310 * np.arange(1.0, 1 + np.prod(shape)).reshape(shape),
    }[kind]
    found = evaluate(x, np.roll(x, 1, axis=0), confidential=x)
    for result in found.results:
        assert isinstance(result.value, NotApplicable) or np.isfinite(result.value)
    assert not {"nan", "inf", "-inf"} & set(str(found).split())
    assert "NaN" not in found.to_json()


def test_a_quotient_beyond_the_largest_number_is_not_applicable():
    x = np.array([[5e-324], [1.0]])
    found = evaluate(x, np.array([[1.0], [1.0]]), measures=["il1"])
    assert "largest number" in found["il1"].reason


def test_nothing_to_measure():
    with pytest.raises(WaveError, match="no records"):
        evaluate(np.empty((0, 2)), np.empty((0, 2)))


def test_inputs_stay_as_they_are(x):
    protected = np.round(x, 0)
    for part in (x, protected):
        part.setflags(write=False)
    before = x.copy(), protected.copy()
    first = evaluate(x, protected, confidential=x)
    assert first == evaluate(x, protected, confidential=x)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(protected, before[1])


def test_measures_do_not_depend_on_the_order_of_records_or_memory(x):
    protected = np.round(x, 1)
    order = np.random.default_rng(0).permutation(len(x))
    one = evaluate(x, protected)
    other = evaluate(np.asfortranarray(x)[order], protected[order])
    for a, b in zip(one.results, other.results, strict=True):
        if isinstance(a.value, NotApplicable):
            assert a.value == b.value
        else:
            assert a.value == pytest.approx(b.value, rel=1e-9, abs=1e-12), a.measure
