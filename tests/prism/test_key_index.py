"""Keys are numbered in order of first appearance, however many there are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tightrope.prism.explore.compile import KeyLayout
from tightrope.prism.explore.probabilities import KeyIndex


@given(
    st.integers(1, 3),
    st.lists(st.lists(st.integers(-3, 3), max_size=40), max_size=5),
)
def test_numbers_follow_first_appearance(words: int, batches: list[list[int]]) -> None:
    index = KeyIndex(words)
    known: dict[int, int] = {}
    for batch in batches:
        keys = np.repeat(np.array(batch, dtype=np.int64).reshape(-1, 1), words, axis=1)
        expected = [known.setdefault(key, len(known)) for key in batch]
        assert index.insert(keys).tolist() == expected
    assert index.keys[:, 0].tolist() == list(known)
    assert len(index) == len(known)


def test_growth_keeps_every_key() -> None:
    rng = np.random.default_rng(5)
    keys = rng.integers(-(2**62), 2**62, size=(50_000, 2))
    keys[25_000:] = keys[:25_000]
    index = KeyIndex(2)
    first = index.insert(keys[:30_000])
    second = index.insert(keys[30_000:])
    distinct, position = np.unique(keys, axis=0, return_index=True)
    assert len(index) == len(distinct)
    numbers = np.concatenate([first, second])
    assert np.array_equal(index.keys[numbers], keys)
    assert numbers[np.sort(position)].tolist() == list(range(len(distinct)))


def test_a_word_that_only_differs_in_a_later_position_is_another_key() -> None:
    index = KeyIndex(3)
    keys = np.array([[1, 2, 3], [1, 2, 4], [0, 2, 3], [1, 2, 3]])
    assert index.insert(keys).tolist() == [0, 1, 2, 0]


@given(
    st.lists(
        st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**31)).map(
            lambda pair: (pair[0], min(pair[0] + pair[1], 2**31 - 1))
        ),
        min_size=1,
        max_size=7,
    ),
    st.randoms(use_true_random=False),
)
def test_layout_round_trip(ranges: list[tuple[int, int]], random: np.random.Generator) -> None:
    layout = KeyLayout(ranges)
    columns = [np.array([low, high, random.randint(low, high)]) for low, high in ranges]
    keys = layout.encode(columns, 3)
    assert keys.shape == (3, layout.words)
    assert np.array_equal(layout.decode(keys), np.array(columns))


def test_layout_uses_one_word_while_it_can() -> None:
    assert KeyLayout([(0, 2**30 - 1), (0, 2**30 - 1)]).words == 1
    assert KeyLayout([(0, 2**31 - 1)] * 3).words == 2
