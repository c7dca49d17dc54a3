"""Fingerprints and ids are those that job runs have always had."""

from __future__ import annotations

import re
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain import ids

floats = st.floats(allow_nan=False, allow_infinity=False)
any_text = st.text(st.characters())
"""Surrogates included."""


class TestFnv1a:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", "811c9dc5"),
            ("a", "e40c292c"),
            ('{"scanDays":3,"empty":true}', "0dc845e1"),
            (
                '{"incidents":[],"model":"m","batchSize":25,"dryRun":false,"applyTools":true}',
                "9d1a7bde",
            ),
            # From here on computed by JavaScript: charCodeAt and Math.imul.
            ("ä", "610b5af3"),
            ("€", "a93e2c4b"),
            ("😀", "cb31c4b8"),
            ("\ud83d", "37822568"),
        ],
    )
    def test_a_text_has_this_hash(self, text: str, expected: str) -> None:
        assert ids.fnv1a(text) == expected

    def test_a_unit_is_taken_whole_and_not_byte_by_byte(self) -> None:
        assert ids.fnv1a("\u0161") != ids.fnv1a("\u0061\u0001")

    def test_a_character_beyond_the_first_plane_counts_as_two(self) -> None:
        assert ids.fnv1a("😀") == ids.fnv1a("\ud83d\ude00")

    @given(any_text)
    def test_every_text_has_eight_hex_digits(self, text: str) -> None:
        assert re.fullmatch("[0-9a-f]{8}", ids.fnv1a(text))


class TestCompactJson:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            # Written by JSON.stringify.
            (1.0, "1"),
            (-0.0, "0"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (123.456, "123.456"),
            (1e-5, "0.00001"),
            (1.5e-6, "0.0000015"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.25e-7, "1.25e-7"),
            (5e-324, "5e-324"),
            (1e16, "10000000000000000"),
            (1.2345678901234568e20, "123456789012345680000"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-1.5e300, "-1.5e+300"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (float("nan"), "null"),
            (float("inf"), "null"),
            (float("-inf"), "null"),
            (None, "null"),
            (True, "true"),
            (False, "false"),
            (0, "0"),
            (-7, "-7"),
            ("", '""'),
            ('a"b\\c/d', '"a\\"b\\\\c/d"'),
            ("\b\f\n\r\t\x00\x1f\x7f", '"\\b\\f\\n\\r\\t\\u0000\\u001f\x7f"'),
            ("ä€😀\u2028", '"ä€😀\u2028"'),
            ("\udcff", '"\\udcff"'),
            ("\ud83d\ude00", '"😀"'),
            ("\ude00\ud83d", '"\\ude00\\ud83d"'),
            ([], "[]"),
            ({}, "{}"),
            ([1, [2.0, None]], "[1,[2,null]]"),
            ({"b": 1, "a": {"d": [], "c": "ä"}}, '{"b":1,"a":{"d":[],"c":"ä"}}'),
        ],
    )
    def test_a_value_is_written_as_javascript_writes_it(self, value: Any, expected: str) -> None:
        assert ids.compact_json(value) == expected

    @given(floats)
    def test_a_number_reads_back_the_same(self, number: float) -> None:
        written = ids.compact_json(number)

        assert float(written) == number
        assert re.fullmatch(r"-?(0|[1-9]\d*)(\.\d*[1-9])?(e[+-][1-9]\d*)?", written)

    @given(st.integers(-(10**20), 10**20))
    def test_a_whole_float_is_written_without_point_and_exponent(self, number: int) -> None:
        assert re.fullmatch(r"-?\d+", ids.compact_json(float(number)))

    @given(st.binary(min_size=8, max_size=8).map(lambda raw: struct.unpack("<d", raw)[0]))
    def test_an_exponent_is_written_where_javascript_writes_it(self, number: float) -> None:
        finite = abs(number) < float("inf")
        plain = number == 0 or 1e-6 <= abs(number) < 1e21

        assert ("e" in ids.compact_json(number)) == (finite and not plain)

    @given(any_text)
    def test_every_text_can_be_stored_as_utf_8(self, text: str) -> None:
        assert ids.compact_json(text).encode()

    def test_keys_keep_their_order_unless_they_are_to_be_sorted(self) -> None:
        value = {"b": {"z": 1, "y": 2}, "a": [{"d": 1, "c": 2}]}

        assert ids.compact_json(value) == '{"b":{"z":1,"y":2},"a":[{"d":1,"c":2}]}'
        assert ids.compact_json(value, sort_keys=True) == '{"a":[{"c":2,"d":1}],"b":{"y":2,"z":1}}'

    def test_keys_that_become_equal_can_be_sorted(self) -> None:
        assert ids.compact_json({1: {}, "1": []}, sort_keys=True) == '{"1":{},"1":[]}'

    def test_a_set_is_written_in_an_order_of_its_own(self) -> None:
        assert ids.compact_json({"b", "a", "c"}) == '["a","b","c"]'
        assert ids.compact_json(frozenset({3, 1})) == "[1,3]"

    def test_a_tuple_is_a_list(self) -> None:
        assert ids.compact_json((1, "a")) == '[1,"a"]'

    def test_what_json_has_no_form_for_is_written_as_its_text(self) -> None:
        assert ids.compact_json(b"raw") == '''"b'raw'"'''
        assert ids.compact_json({1: 2, None: 3}) == '{"1":2,"None":3}'

    def test_a_kind_of_number_is_written_as_the_number(self) -> None:
        class Ratio(float):
            def __repr__(self) -> str:
                return f"Ratio({float(self)})"

        class Count(int):
            def __repr__(self) -> str:
                return f"Count({int(self)})"

        assert ids.compact_json([Ratio(0.5), Count(3)]) == "[0.5,3]"


class TestFingerprint:
    def test_a_fingerprint_is_the_hash_of_the_compact_json(self) -> None:
        assert ids.fingerprint({"scanDays": 3, "empty": True}) == "0dc845e1"
        assert ids.fingerprint({"scanDays": 3.0, "empty": True}) == "0dc845e1"

    def test_the_inputs_of_a_self_correction_run(self) -> None:
        options = {"batchSize": 25, "dryRun": False, "applyTools": True}

        assert ids.fingerprint({"incidents": [], "model": "m", **options}) == "9d1a7bde"

    def test_another_model_is_another_fingerprint(self) -> None:
        assert ids.fingerprint({"model": "a"}) != ids.fingerprint({"model": "b"})

    def test_the_order_of_keys_counts_unless_they_are_sorted(self) -> None:
        one, two = {"a": 1, "b": 2}, {"b": 2, "a": 1}

        assert ids.fingerprint(one) != ids.fingerprint(two)
        assert ids.fingerprint(one, sort_keys=True) == ids.fingerprint(two, sort_keys=True)


class TestJobRunId:
    @pytest.mark.parametrize(
        ("command", "fingerprint", "expected"),
        [
            ("storage-re-index", "500-50-0.95", "job-storage-re-index-500-50-0"),
            ("storage-re-index", "500-50-0.9", "job-storage-re-index-500-50-0"),
            ("distill", "::14:false", "job-distill-14-false"),
            ("self-correction-run", "9d1a7bde", "job-self-correction-run-9d1a7bde"),
            ("self-correction-run", "9d1a7bdef0", "job-self-correction-run-9d1a7bde"),
            ("-Extract daily!-", "abc", "job-Extract-daily-abc"),
            ("a - b", "abc", "job-a---b-abc"),
            ("räum auf 😀", "abc", "job-r-um-auf-abc"),
            ("distill", "", "job-distill-0"),
            ("distill", "::", "job-distill-0"),
            ("distill", "abcdefg::x", "job-distill-abcdefg"),
            ("distill", "a.b_c", "job-distill-a-b-c"),
            ("distill", "😀1", "job-distill-1"),
        ],
    )
    def test_an_id_names_the_command_and_the_inputs(
        self, command: str, fingerprint: str, expected: str
    ) -> None:
        assert ids.job_run_id(command, fingerprint) == expected

    @given(st.text(max_size=80), st.text())
    def test_every_id_can_be_a_run_id(self, command: str, fingerprint: str) -> None:
        run_id = ids.job_run_id(command, fingerprint)

        assert ids.check_run_id(run_id) == run_id

    def test_a_further_execution_of_the_same_inputs_is_marked(self) -> None:
        """G6: a new execution of the same input is a new run."""
        executions = [ids.execution_id("job-a-0dc845e1", number) for number in (1, 2, 11)]

        assert executions == ["job-a-0dc845e1", "job-a-0dc845e1~2", "job-a-0dc845e1~11"]
        assert list(map(ids.check_run_id, executions)) == executions


class TestTaskId:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("  Weekly Report / EU  ", "weekly-report-eu"),
            ("a--b---c", "a-b-c"),
            ("-a-", "a"),
            ("v1.2_final", "v1.2_final"),
            ("Übung", "bung"),
            ("a/../b", "a-..-b"),
            ("A", "a"),
        ],
    )
    def test_a_task_id_is_cleaned(self, text: str, expected: str) -> None:
        assert ids.task_id(text) == expected

    @pytest.mark.parametrize("text", ["", "   ", "///", "-", "😀", ".", "..", " ../ "])
    def test_a_text_of_which_nothing_is_left_is_refused(self, text: str) -> None:
        with pytest.raises(ids.InvalidIdError, match="nothing is left of it after cleaning"):
            ids.task_id(text)

    @given(st.text(max_size=100))
    def test_a_task_id_can_be_a_run_id_and_is_clean_already(self, text: str) -> None:
        try:
            task_id = ids.task_id(text)
        except ids.InvalidIdError:
            return

        assert ids.check_run_id(task_id) == task_id
        assert ids.task_id(task_id) == task_id


class TestCheckRunId:
    @pytest.mark.parametrize(
        "text", ["a", "job-a-0dc845e1~2", "A.b_c-d", "9", ".hidden", "a" * 200]
    )
    def test_an_id_is_returned_as_it_is(self, text: str) -> None:
        assert ids.check_run_id(text) == text

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("", "it is empty"),
            ("a" * 201, "it has 201 characters"),
            ("a b/c", "it contains ' ' '/'"),
            ("ä", "it contains 'ä'"),
            ("a\n", r"it contains '\n'"),
            ("--help", "it starts with '-', like an option"),
            ("~a", "it starts with '~', like an option"),
            (".", "as a folder name it would mean another folder"),
            ("..", "as a folder name it would mean another folder"),
        ],
    )
    def test_what_cannot_be_an_id_is_refused_with_the_reason(self, text: str, reason: str) -> None:
        with pytest.raises(ids.InvalidIdError, match=re.escape(reason)) as caught:
            ids.check_run_id(text)

        assert "Use letters, digits" in str(caught.value)
