"""Every kind of bad input that must be survived, with the tests that prove it and the exact words that users get.

The tests named here do the work; this one fails where one of them is gone, or no longer holds the words.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]

# What may be wrong, then for each test: its file, its name, and words of the message that it compares (none: no message is due).
LIST: dict[str, list[tuple[str, str, str]]] = {
    "an empty file": [
        ("formats/bad_input/test_files.py", "test_what_is_not_json", "it is empty: the profiler wrote nothing, or the job ended before it could"),
        ("cli/test_paths.py", "test_wrong_paths", "{path} is not a profile: it is empty: the profiler wrote nothing, or the job ended before it could."),
    ],
    "a folder without profiles": [
        ("profiles/find/test_nothing_found.py", "test_a_folder_without_profiles", " (6 files in 2 folders examined)."),
        ("cli/test_main.py", "test_an_empty_folder_says_what_was_looked_at", "1 file in 1 folder examined"),
    ],
    "JSON that is not a trace": [
        ("formats/bad_input/test_files.py", "test_json_that_is_no_trace", "it is a PyTorch execution trace, which has no times; put it beside a profile of the same process by torch.profiler"),
        ("formats/bad_input/test_files.py", "test_json_that_is_no_trace", "it is a CUDA memory snapshot as JSON; stepscope reads the pickle that torch.cuda.memory._dump_snapshot writes"),
        ("formats/bad_input/test_files.py", "test_json_that_is_no_trace", "its members are 'loss', 'lr'"),
    ],
    "other files: Excel, pickles, databases": [
        ("formats/bad_input/test_files.py", "test_what_is_not_json", "it is an Excel sheet"),
        ("formats/bad_input/test_files.py", "test_what_is_not_json", "it is a Python pickle, which is never opened here: pickles can run code"),
        ("formats/bad_input/test_files.py", "test_a_database", " is an SQLite database without the tables of Nsight Systems; it has kernels."),
        ("formats/nsys/test_bad_input.py", "test_one_message", "nsys export --type sqlite --output '"),
        ("formats/nsys/test_bad_input.py", "test_a_locked_database", "is locked"),
        ("formats/tf1/test_event_file.py", "test_files_without_a_profile_say_what_they_are", "is a TensorBoard event file without a profile: 4 events (2 summaries, 1 graph)."),
    ],
    "a file cut at any byte": [
        ("formats/nsys/test_bad_input.py", "test_one_message", "is cut or damaged"),
        ("formats/rocprof/test_read.py", "test_one_message", "cut or damaged"),
        ("formats/bad_input/test_cut.py", "test_a_plain_file_cut_at_every_byte", " without closing its list of events; "),
        ("formats/bad_input/test_cut.py", "test_what_is_said_of_the_part_that_is_lost", " on are part of an event and were left out."),
        ("formats/xplane/test_damage.py", "test_cut_anywhere", " complete events."),
        ("formats/tf1/test_event_file.py", "test_a_file_cut_at_any_byte_keeps_what_is_whole", ""),
        ("formats/tf1/test_records.py", "test_a_cut_says_where", "are not a complete record; 1 records before them were read."),
    ],
    "a packed file cut at any byte": [
        ("formats/bad_input/test_cut.py", "test_a_packed_file_cut_at_any_byte", "The gzip stream ends too early, after "),
        ("formats/xplane/test_damage.py", "test_a_packed_file_that_is_cut", "The gzip stream ends too early, after "),
        ("cli/test_paths.py", "test_wrong_paths", "{path} is not a profile: its gzip stream is cut or damaged before the first byte."),
    ],
    "flipped bytes": [
        ("formats/bad_input/test_flipped.py", "test_one_byte_costs_at_most_the_event_that_it_is_in", ""),
        ("formats/bad_input/test_flipped.py", "test_a_packed_file_with_flipped_bytes_is_never_silent", ""),
        ("formats/bad_input/test_events.py", "test_junk_between_events", " bytes were skipped."),
        ("formats/xplane/test_damage.py", "test_no_bit_loses_an_event_in_silence", ""),
        ("formats/tf1/test_event_file.py", "test_flipped_bytes", ""),
        ("formats/tf1/test_records.py", "test_wrong_checksums_are_counted_and_read", "{count} records do not match their checksum, the first at byte 0."),
        ("formats/own_export/test_write.py", "test_flipped_bytes", ""),
    ],
    "bare N/A, NaN, inf": [
        ("formats/bad_input/test_events.py", "test_bare_words_as_arguments", ""),
        ("formats/bad_input/test_events.py", "test_no_time_stamp", "1 events have no readable `ts`; they were left out."),
        ("formats/bad_input/test_events.py", "test_no_duration", "1 events of phase X have no readable `dur`; they are kept with a duration of 0."),
    ],
    "unescaped quotes in names": [
        ("formats/bad_input/test_events.py", "test_unescaped_quotes", "2 strings have unescaped quotes; they were read as part of the text."),
    ],
    "negative and zero durations": [
        ("formats/bad_input/test_events.py", "test_negative_durations", "2 events end before they start; they are kept with a duration of 0."),
        ("formats/tf1/test_event_file.py", "test_times_that_cannot_be", ""),
    ],
    "time stamps 0": [
        ("formats/bad_input/test_events.py", "test_time_stamps_of_zero_are_events_like_others", ""),
        ("formats/kineto/test_draft.py", "test_device_events_at_time_zero_are_kept_and_told", "1 device events have a timestamp of 0."),
    ],
    "children that outlive their parent": [
        ("formats/bad_input/test_events.py", "test_a_child_that_outlives_its_parent", "1 events start inside another event of their thread and end after it."),
    ],
    "partially overlapping kernels on one stream": [
        ("formats/bad_input/test_events.py", "test_kernels_that_overlap_on_one_stream_are_both_kept", ""),
    ],
    "over-long varints": [
        ("formats/xplane/test_damage.py", "test_over_long_varints_in_an_event", "1 events or stats end early; their first part was kept."),
        ("formats/xplane/test_damage.py", "test_over_long_varints_and_nesting_bombs", " bytes in 1 places are not valid protobuf and were skipped."),
        ("native/protobuf/test_wire.py", "test_the_longest_varint_and_one_byte_more", ""),
    ],
    "nesting bombs": [
        ("formats/xplane/test_damage.py", "test_over_long_varints_and_nesting_bombs", " bytes in 1 places are not valid protobuf and were skipped."),
        ("formats/bad_input/test_events.py", "test_a_nesting_bomb_in_an_event", ""),
        ("formats/bad_input/test_events.py", "test_a_nesting_bomb_instead_of_a_document", "holds no trace events: what its list holds are not events"),
        ("native/protobuf/test_wire.py", "test_a_nesting_bomb_costs_no_stack", ""),
        ("formats/tf1/test_event_file.py", "test_bombs", ""),
    ],
    "a gzip bomb": [
        ("formats/bad_input/test_bombs.py", "test_two_gigabytes_of_nothing", "the gzip file expands to far more than any profile. "),
        ("formats/bad_input/test_bombs.py", "test_two_gigabytes_of_a_plane", "It expands to more than 400 times its size; reading stopped after 6"),
        ("formats/test_source.py", "test_a_bomb_is_not_unpacked", "It expands to more than 400 times its size; reading stopped after "),
        ("formats/tf1/test_event_file.py", "test_more_nodes_than_any_run_has", "Only the first 5 nodes were read."),
    ],
    "names with HTML, control characters": [
        ("formats/bad_input/test_events.py", "test_names_are_kept_as_they_are", ""),
        ("formats/xplane/test_damage.py", "test_hostile_names_stay_names", ""),
        ("formats/tf1/test_event_file.py", "test_hostile_names_stay_names", ""),
        ("cli/test_main.py", "test_a_terminal_gets_no_orders_from_a_profile", ""),
        ("profiles/test_profile.py", "test_html_is_escaped", ""),
    ],
    "names with broken UTF-8": [
        ("formats/bad_input/test_events.py", "test_broken_text_is_shown_and_counted", "1 strings have bytes that are not UTF-8, or escapes that are not JSON; those bytes are shown as �."),
        ("formats/xplane/test_damage.py", "test_broken_text_is_shown", ""),
        ("cli/test_paths.py", "test_odd_names_open_like_any_other", ""),
    ],
    "a symlink loop": [
        ("profiles/find/test_catalog.py", "test_symlink_loops", "a link to a folder already visited: "),
        ("formats/test_source.py", "test_a_circle_of_symlinks", ": Too many levels of symbolic links"),
        ("cli/test_paths.py", "test_wrong_paths", "Cannot open {path}: Too many levels of symbolic links"),
    ],
    "no permission": [
        ("formats/test_source.py", "test_no_permission", "No permission to read "),
        ("cli/test_paths.py", "test_no_permission", "No permission to read "),
    ],
}  # fmt: skip
CASES = [(what, *test) for what, tests in LIST.items() for test in tests]


@cache
def functions_in(file: str) -> dict[str, ast.FunctionDef]:
    """The tests of a file by name."""
    tree = ast.parse((TESTS / file).read_text("utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


@cache
def texts_in(file: str) -> str:
    """All texts that the file's code holds, apart from its comments and docstrings."""
    tree = ast.parse((TESTS / file).read_text("utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs]
    return "\0".join(node.value for node in found if isinstance(node.value, str))


@pytest.mark.parametrize(
    ("what", "file", "name", "words"), CASES, ids=[f"{case[0]}: {case[2]}" for case in CASES]
)
def test_the_list(what: str, file: str, name: str, words: str) -> None:
    test = functions_in(file).get(name)
    assert test is not None, f"{what}: {file} has no {name}"
    checks = [node for node in ast.walk(test) if isinstance(node, ast.Assert | ast.With | ast.Raise)]
    assert checks or "read" in ast.unparse(test), f"{what}: {name} compares nothing"
    assert words in texts_in(file), f"{what}: {file} does not hold these words"


def test_each_has_a_message_or_needs_none() -> None:
    silent = {what for what, tests in LIST.items() if not any(words for _, _, words in tests)}
    assert silent == {"partially overlapping kernels on one stream", "names with HTML, control characters"}
