"""Training events: progress, time left, one line of JSON."""

from gptviz.types.training import TrainEvent


def test_progress_and_time_left():
    assert TrainEvent("start", 0, 10).seconds_left is None
    event = TrainEvent("step", 4, 10, seconds=8.0)
    assert (event.progress, event.seconds_left) == (0.4, 12.0)
    assert TrainEvent("stage", 0, 0).progress == 0.0


def test_json_keeps_text_of_any_script():
    event = TrainEvent("sample", 1, 2, text="<script>\n\N{SNOWMAN} \u0e01 $x$")
    line = event.to_json()
    assert "\n" not in line
    assert TrainEvent.from_json(line) == event
