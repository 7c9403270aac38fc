"""Aligning a map that was only rotated, reflected and shifted onto the first run's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes

from core.artifacts.shared_examples import example_keys, find_shared_rows, find_turn
from core.events import TRAIN, VALIDATION, Probe
from tests.cases import each

RNG = np.random.default_rng(0)


def random_turn(width: int, *, mirrored: bool) -> np.ndarray:
    matrix, _ = np.linalg.qr(RNG.normal(size=(width, width)))
    matrix[:, 0] *= -1 if (np.linalg.det(matrix) < 0) != mirrored else 1
    return matrix


class TestMatched:
    def test_a_key_that_stands_twice_is_two_examples(self) -> None:
        assert find_shared_rows([["a", "a", "b"], ["b", "a"]]).tolist() == [[0, 2], [1, 0]]
        assert find_shared_rows([["a", "a"], ["a", "b", "a"]]).tolist() == [[0, 1], [0, 2]]

    @each(("keys", "shape"), [([["a"], ["b"]], (2, 0)), ([[], []], (2, 0)), ([], (0, 0))])
    def test_nothing_in_common(self, keys: list[list[str]], shape: tuple[int, int]) -> None:
        assert find_shared_rows(keys).shape == shape

    def test_against_a_slow_search(self) -> None:
        keys = [[f"t{i}" for i in RNG.permutation(30)[:20]] for _ in range(4)]
        expected = [k for k in keys[0] if all(k in other for other in keys)]
        found = find_shared_rows(keys)
        assert found.shape == (4, len(expected))
        assert found.tolist() == [[of_run.index(k) for k in expected] for of_run in keys]


class TestKeys:
    def probe(self, classes: tuple[str, ...], splits: tuple[str, ...] = ()) -> Probe:
        return Probe((0, 1), ("one", "two"), (0, 1), classes, splits)

    def test_classes_go_by_name(self) -> None:
        one, other = example_keys(self.probe(("bad", "good"))), example_keys(self.probe(("good", "bad")))
        assert one[0] == ("one", "bad", VALIDATION)
        assert find_shared_rows([one, other]).shape == (2, 0)

    def test_what_one_run_learned_from_is_not_what_another_held_out(self) -> None:
        classes = ("bad", "good")
        keys = [example_keys(self.probe(classes)), example_keys(self.probe(classes, (VALIDATION, TRAIN)))]
        assert find_shared_rows(keys).tolist() == [[0], [0]]

    def test_a_label_without_a_class_is_its_number(self) -> None:
        assert example_keys(Probe((0,), ("x",), (-1,), ("a",)))[0] == ("x", "-1", VALIDATION)


@each("width", [2, 3])
@each("mirrored", [False, True])
class TestTurn:
    def test_a_turned_and_moved_copy_comes_back_and_scipy_agrees(self, width: int, mirrored: bool) -> None:
        points = RNG.normal(size=(40, width)) + 5
        moved = points @ random_turn(width, mirrored=mirrored) + RNG.normal(size=width) * 10
        turn = find_turn(moved, points)
        assert turn(moved) == pytest.approx(points, abs=1e-5)
        assert turn(moved).dtype == np.float32
        assert turn.common == 40
        points, onto = RNG.normal(size=(25, width)), RNG.normal(size=(25, width))
        onto = onto @ random_turn(width, mirrored=mirrored)
        rotation, _ = orthogonal_procrustes(points - points.mean(0), onto - onto.mean(0))
        assert find_turn(points, onto).rotation == pytest.approx(rotation, abs=1e-12)


class TestEdges:
    def test_nothing_in_common_leaves_the_map_as_it_is(self) -> None:
        points = RNG.normal(size=(5, 2)).astype(np.float32)
        turn = find_turn(np.zeros((0, 2)), np.zeros((0, 2)))
        assert turn.common == 0
        assert turn(points).tolist() == points.tolist()

    @each("count", [1, 2, 4])
    def test_points_in_one_place_are_moved_and_not_turned(self, count: int) -> None:
        turn = find_turn(np.full((count, 2), 3.0), np.full((count, 2), 8.0))
        assert turn.rotation.tolist() == [[1, 0], [0, 1]]
        assert turn([[3.0, 4.0]]).tolist() == [[8.0, 9.0]]

    def test_two_points_in_space_are_laid_onto_two(self) -> None:
        points, onto = np.array([[0.0, 0, 0], [2, 0, 0]]), np.array([[5.0, 5, 5], [5, 7, 5]])
        assert find_turn(points, onto)(points) == pytest.approx(onto, abs=1e-6)
