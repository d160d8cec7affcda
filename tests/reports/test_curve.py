from __future__ import annotations

from crashmq.reports.curve import survival_curves


def test_a_curve_falls_from_everything_to_its_survivors() -> None:
    curves = survival_curves({"ours": [(0.1, 0.5), (10.0, 0.0)]}, 100.0)

    (line,) = curves.lines
    top, bottom = curves.top, curves.bottom
    assert line.path.startswith(f"M{curves.left}.0 {top}")
    assert line.path.count("H") == 3
    assert f"V{(top + bottom) / 2:.1f}" in line.path
    assert f"V{bottom}" in line.path
    assert line.label.y == bottom


def test_time_is_drawn_by_its_logarithm() -> None:
    curves = survival_curves({}, 100.0)

    xs = [label.x for label in curves.times]
    assert [label.text for label in curves.times][:3] == ["0.01 s", "0.1 s", "1 s"]
    assert xs[1] - xs[0] == xs[2] - xs[1]


def test_without_kills_the_curve_stays_on_top() -> None:
    (line,) = survival_curves({"ours": []}, 1.0).lines

    assert "V" not in line.path
