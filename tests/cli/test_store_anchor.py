"""Anchors: a log that was shortened, replaced or written anew is found out, whoever signed them."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command_line import here
from stores import opened, record_run

from tachograph import anchoring, anchorkeeping
from tachograph.cli.options import Params
from tachograph.cli.watch_options import WATCHING, words
from tachograph.domain.errors import (
    InvalidAnchorError,
    SigningUnavailableError,
    StoreFullError,
)
from tachograph.infra import anchor_files, signing

if TYPE_CHECKING:
    from command_line import Done

    Capture = pytest.CaptureFixture[str]


@pytest.fixture
def store(store_environment: Path) -> Path:
    with opened(store_environment) as services:
        record_run(services, "job-0")
    return store_environment


@pytest.fixture
def key(tmp_path: Path, capsys: Capture) -> Path:
    path = tmp_path / "anchor.pem"
    assert here(capsys, "store", "anchor-key", path).returncode == 0
    return path


def grow(store: Path, run_id: str) -> None:
    with opened(store) as services:
        record_run(services, run_id)


def verify(capsys: Capture, anchors: Path, *more: str | Path) -> list[tuple[str, int, str]]:
    done = here(capsys, "store", "verify", "--anchor", anchors, *more, "--json")
    problems = json.loads(done.stdout)["problems"]
    assert done.returncode == (4 if problems else 0)
    return [(each["kind"], each["position"], each["detail"]) for each in problems]


def kinds(found: list[tuple[str, int, str]]) -> list[tuple[str, int]]:
    return [(kind, position) for kind, position, _ in found]


class TestPrinting:
    def test_it_says_where_the_log_ends(self, store: Path, capsys: Capture) -> None:
        shown = json.loads(here(capsys, "store", "anchor", "--json").stdout)
        info = json.loads(here(capsys, "store", "info", "--json").stdout)

        assert shown["anchor"] == info["anchor"]
        with opened(store) as services:
            assert shown["first"] == services.log.read(limit=1)[0].digest.hex()
        assert "signature" not in shown
        assert f"Anchor       {info['anchor']}" in here(capsys, "store", "anchor").stdout

    def test_an_empty_log_has_an_anchor(
        self, store_environment: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        with opened(store_environment):
            pass
        path = tmp_path / "anchors.jsonl"
        shown = here(capsys, "store", "anchor", "--json", "--append", path)

        assert json.loads(shown.stdout)["anchor"] == "0:" + "00" * 32
        assert verify(capsys, path) == []

    def test_each_is_a_line_of_the_file(self, store: Path, capsys: Capture, tmp_path: Path) -> None:
        path = tmp_path / "anchors.jsonl"
        first = here(capsys, "store", "anchor", "--append", path, "--json").stdout
        path.write_bytes(path.read_bytes() + b'{"anchor": "half')  # a machine that lost power
        grow(store, "job-1")
        second = here(capsys, "store", "anchor", "--append", path, "--json").stdout
        lines = path.read_text().splitlines()

        assert [json.loads(lines[0]), json.loads(lines[2])] == [
            json.loads(first),
            json.loads(second),
        ]
        what = f"line 2 of {path} is no anchor: it was cut off, or changed"
        assert verify(capsys, path) == [("anchor-file", 0, what)]


class TestChecking:
    @pytest.fixture
    def anchors(self, store: Path, capsys: Capture, tmp_path: Path) -> Path:
        """A file of three anchors, one for each run."""
        path = tmp_path / "anchors.jsonl"
        for number in range(3):
            if number:
                grow(store, f"job-{number}")
            here(capsys, "store", "anchor", "--append", path)
        return path

    def test_a_log_that_went_on_is_whole(self, store: Path, anchors: Path, capsys: Capture) -> None:
        grow(store, "job-9")
        here(capsys, "store", "archive", "--before", "0s", "--apply")
        here(capsys, "store", "erase", "job-1", "--reason", "a test", "--apply")

        assert verify(capsys, anchors) == []

    def test_a_shortened_log_is_found_out(
        self, store: Path, anchors: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        """Its chain is whole in itself: only the anchor tells."""
        short = tmp_path / "short"
        out = tmp_path / "export.jsonl"
        with opened(short):
            pass
        lines = self.export(capsys, out)
        heading = json.loads(lines[0])
        heading["head"] = {"position": 12, "digest": json.loads(lines[12])["digest"]}
        out.write_text("\n".join([json.dumps(heading), *lines[1:13]]) + "\n")
        assert here(capsys, "store", "import", out, "--store", short).returncode == 0

        assert here(capsys, "store", "verify", "--store", short).returncode == 0
        assert verify(capsys, anchors, "--store", short) == [
            ("cut-off", 12, f"the log had 18 records, by line 2 of {anchors}"),
            ("cut-off", 12, f"the log had 27 records, by line 3 of {anchors}"),
        ]

    def export(self, capsys: Capture, out: Path) -> list[str]:
        assert here(capsys, "store", "export", "--out", out).returncode == 0
        return out.read_text().splitlines()

    def test_a_replaced_log_is_found_out(self, store: Path, anchors: Path, capsys: Capture) -> None:
        shutil.rmtree(store)
        for number in range(4):
            grow(store, f"job-{number}")

        assert here(capsys, "store", "verify").returncode == 0
        assert set(kinds(verify(capsys, anchors))) == {
            ("anchor", 1),
            ("anchor", 9),
            ("anchor", 18),
            ("anchor", 27),
        }

    def test_a_log_chained_anew_is_found_out_where_it_begins_to_differ(
        self, store: Path, anchors: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        """Somebody with the whole store and our own code changes one event and all that follow."""
        from tachograph.domain.records import NewRecord

        forged = tmp_path / "forged"
        with opened(store) as services, opened(forged) as other:
            for each in services.log.read(limit=None):
                body = each.body.replace(b"success", b"skipped") if each.position > 9 else each.body
                new = NewRecord(each.stream, each.version, each.topic, each.time_us, body)
                other.log.append([new])

        assert here(capsys, "store", "verify", "--store", forged).returncode == 0
        assert kinds(verify(capsys, anchors, "--store", forged)) == [("anchor", 18), ("anchor", 27)]

    def test_a_text_is_taken_as_before(self, store: Path, capsys: Capture) -> None:
        anchor = json.loads(here(capsys, "store", "anchor", "--json").stdout)["anchor"]

        assert here(capsys, "store", "verify", "--anchor", anchor).returncode == 0
        wrong = here(capsys, "store", "verify", "--anchor", "9:" + "ab" * 32)
        assert wrong.returncode == 4
        odd = here(capsys, "store", "verify", "--anchor", "no-such-file")
        assert odd.returncode == 2

    def test_a_file_may_hold_plain_anchors(
        self, store: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        path = tmp_path / "anchors.txt"
        anchor = json.loads(here(capsys, "store", "anchor", "--json").stdout)["anchor"]
        path.write_text(f"\n{anchor}\n9:{'ab' * 32}\n")

        assert verify(capsys, path) == [
            ("anchor", 9, f"the log up to here is not the one of line 3 of {path}")
        ]

    def test_a_folder_is_no_file_of_anchors(self, store: Path, capsys: Capture) -> None:
        done = here(capsys, "store", "verify", "--anchor", store)

        assert done.returncode == 2
        assert "Is a directory" in done.stderr


class TestSigning:
    def test_a_key_is_for_its_owner_alone(self, key: Path, capsys: Capture) -> None:
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        assert key.read_text().startswith("-----BEGIN PRIVATE KEY-----")
        again = here(capsys, "store", "anchor-key", key)
        shown = json.loads(here(capsys, "store", "anchor-key", key, "--show", "--json").stdout)

        assert again.returncode == 1
        assert shown["publicPem"].startswith("-----BEGIN PUBLIC KEY-----")
        assert len(shown["publicKey"]) == 64
        assert not shown["made"]

    @pytest.mark.parametrize("form", ["pem", "hex"])
    def test_a_signed_anchor_is_checked(
        self, store: Path, key: Path, capsys: Capture, tmp_path: Path, form: str
    ) -> None:
        path, public = tmp_path / "anchors.jsonl", tmp_path / "anchor.pub"
        shown = json.loads(here(capsys, "store", "anchor-key", key, "--show", "--json").stdout)
        public.write_text(shown["publicPem"] if form == "pem" else shown["publicKey"])
        here(capsys, "store", "anchor", "--sign", key, "--append", path)
        grow(store, "job-1")
        text = here(capsys, "store", "anchor", "--sign", key, "--append", path).stdout

        assert f"Signed with  {shown['publicKey']}" in text
        assert verify(capsys, path) == []
        assert verify(capsys, path, "--public-key", public) == []
        assert verify(capsys, path, "--public-key", key) == []  # it has the public part, too

    def test_bad_signatures_are_said(
        self, store: Path, key: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        path, other = tmp_path / "anchors.jsonl", tmp_path / "other.pem"
        here(capsys, "store", "anchor-key", other)
        here(capsys, "store", "anchor", "--append", path)
        here(capsys, "store", "anchor", "--sign", other, "--append", path)
        here(capsys, "store", "anchor", "--sign", key, "--append", path)
        lines = path.read_text().splitlines()
        forged = json.loads(lines[2])
        forged["timeUs"] -= 1
        path.write_text("\n".join([*lines, json.dumps(forged)]) + "\n")
        public = json.loads(lines[1])["publicKey"]

        assert verify(capsys, path) == [
            ("signature", 9, f"line 4 of {path} has a wrong signature: it is not what was signed")
        ]
        assert [detail for _, _, detail in verify(capsys, path, "--public-key", key)] == [
            f"line 1 of {path} is not signed",
            f"line 2 of {path} is signed with another key, {public}",
            f"line 4 of {path} has a wrong signature: it is not what was signed",
        ]

    @pytest.mark.parametrize("change", ["anchor", "first", "timeUs", "publicKey", "signature"])
    def test_every_field_that_counts_is_signed(
        self, store: Path, key: Path, capsys: Capture, tmp_path: Path, change: str
    ) -> None:
        path = tmp_path / "anchors.jsonl"
        here(capsys, "store", "anchor", "--sign", key, "--append", path)
        fields = json.loads(path.read_text())
        old = fields[change]
        fields[change] = (
            old + 1
            if isinstance(old, int)
            else old[:-1] + "0123456789abcdef0"[int(old[-1], 16) + 1]
        )
        path.write_text(json.dumps(fields) + "\n")

        assert "signature" in {kind for kind, _ in kinds(verify(capsys, path))}

    def test_an_openssh_key_signs_too(self, store: Path, capsys: Capture, tmp_path: Path) -> None:
        if shutil.which("ssh-keygen") is None:
            pytest.skip("there is no ssh-keygen here")
        key, path = tmp_path / "id_ed25519", tmp_path / "anchors.jsonl"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        here(capsys, "store", "anchor", "--sign", key, "--append", path)

        assert len(path.read_text().splitlines()) == 1
        assert verify(capsys, path, "--public-key", tmp_path / "id_ed25519.pub") == []

    def test_another_tool_checks_what_is_documented(
        self, store: Path, key: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("there is no openssl here")
        public, text, signature = (tmp_path / name for name in ("pub", "text", "signature"))
        public.write_text(here(capsys, "store", "anchor-key", key, "--show").stdout)
        line = json.loads(here(capsys, "store", "anchor", "--sign", key, "--json").stdout)
        said = ("tachograph anchor 1", line["anchor"], str(line["timeUs"]), line["first"])
        text.write_text("".join(f"{each}\n" for each in said))
        signature.write_bytes(bytes.fromhex(line["signature"]))
        command = ["openssl", "pkeyutl", "-verify", "-pubin", "-rawin", "-inkey", str(public)]
        done = subprocess.run(
            [*command, "-in", str(text), "-sigfile", str(signature)], capture_output=True
        )

        assert done.returncode == 0, done.stderr

    def test_the_advice_fits_what_is_wrong(
        self, store: Path, key: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        path = tmp_path / "anchors.jsonl"
        here(capsys, "store", "anchor", "--append", path)
        unsigned = here(capsys, "store", "verify", "--anchor", path, "--public-key", key)
        here(capsys, "store", "archive", "--before", "0s", "--apply")
        for archive in (store / "archive").glob("*.zst"):
            archive.unlink()
        lost = here(capsys, "store", "verify")

        assert "they say nothing of the log" in unsigned.stderr
        assert "Restore it" not in unsigned.stderr
        assert "Put the archives back" in lost.stderr

    def test_keys_that_do_not_do_are_refused(
        self, store: Path, key: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        from Crypto.PublicKey import ECC

        loose, odd, wrong, public = (tmp_path / name for name in ("loose", "odd", "wrong", "pub"))
        loose.write_bytes(key.read_bytes())
        loose.chmod(0o644)
        odd.write_text("no key")
        odd.chmod(0o600)
        wrong.write_text(ECC.generate(curve="P-256").export_key(format="PEM"))
        wrong.chmod(0o600)
        public.write_text(signing.load_key(str(key)).public_pem())
        public.chmod(0o600)
        said = {
            path: here(capsys, "store", "anchor", "--sign", path)
            for path in (loose, odd, wrong, public, tmp_path / "none")
        }

        assert {done.returncode for done in said.values()} == {2}
        assert "chmod 600" in said[loose].stderr
        assert "no key in PEM" in said[odd].stderr
        assert "not of Ed25519" in said[wrong].stderr
        assert "cannot sign" in said[public].stderr
        assert "No such file" in said[tmp_path / "none"].stderr
        assert here(capsys, "store", "anchor-key", tmp_path / "no" / "key").returncode == 2

    def test_a_public_key_goes_with_a_file(self, store: Path, key: Path, capsys: Capture) -> None:
        alone = here(capsys, "store", "verify", "--public-key", key)
        text = here(capsys, "store", "verify", "--anchor", "0:" + "00" * 32, "--public-key", key)

        assert (alone.returncode, text.returncode) == (2, 2)

    def test_without_the_package_it_says_what_to_install(
        self, store: Path, key: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def missing(_name: str) -> None:
            raise ImportError

        monkeypatch.setattr(signing, "import_module", missing)
        done = here(capsys, "store", "anchor", "--sign", key)

        assert done.returncode == 1
        assert "tachograph[signing]" in done.stderr
        with pytest.raises(SigningUnavailableError):
            signing.is_signed(bytes(32), b"", bytes(64))


@pytest.mark.parametrize(
    "line",
    ["{", "{}", "[]", "nothing", '{"anchor": "1:ab", "timeUs": 1, "first": null}',
     '{"anchor": "0:' + "00" * 32 + '", "timeUs": "1", "first": null}',
     '{"anchor": "0:' + "00" * 32 + '", "timeUs": 1, "first": "zz"}'],
)  # fmt: skip
def test_what_is_no_anchor_is_known(line: str) -> None:
    with pytest.raises(InvalidAnchorError):
        anchoring.from_line(line, "there")


class TestFile:
    """A file of anchors may be damaged, and says so instead of blaming the log."""

    def test_a_file_without_anchors_is_no_proof(
        self, store: Path, key: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        path = tmp_path / "anchors.jsonl"
        path.write_text("\n \n")
        what = f"{path} holds no anchor: nothing was compared"

        assert verify(capsys, path) == [("anchor-file", 0, what)]
        assert verify(capsys, path, "--public-key", key) == [("anchor-file", 0, what)]

    def test_it_says_how_many_were_compared(
        self, store: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        path = tmp_path / "anchors.jsonl"
        for _ in range(2):
            here(capsys, "store", "anchor", "--append", path)
        done = here(capsys, "store", "verify", "--anchor", path)
        shown = json.loads(here(capsys, "store", "verify", "--anchor", path, "--json").stdout)

        assert "2 anchors compared, the newest at position 9." in done.stderr
        assert shown["anchors"] == 2

    @pytest.mark.parametrize(
        "change",
        [
            {"publicKey": None},
            {"signature": None},
            {"signature": ""},
            {"publicKey": None, "signature": ""},
        ],
    )
    def test_half_a_signature_is_wrong(
        self, store: Path, key: Path, capsys: Capture, tmp_path: Path, change: dict[str, str | None]
    ) -> None:
        path = tmp_path / "anchors.jsonl"
        here(capsys, "store", "anchor", "--sign", key, "--append", path)
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}) + "\n")

        assert kinds(verify(capsys, path)) == [("signature", 9)]

    def test_a_line_that_was_cut_off_is_the_files_fault(
        self, store: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        path = tmp_path / "anchors.jsonl"
        here(capsys, "store", "anchor", "--append", path)
        path.write_bytes(path.read_bytes() + b'{"anchor": "half')
        done = here(capsys, "store", "verify", "--anchor", path)

        assert "Look at the file of anchors" in done.stderr
        assert "backup" not in done.stderr

    @pytest.mark.parametrize("taken", [0, 3])
    @pytest.mark.parametrize("before", ["", "first\n", "cut off"])
    def test_a_full_disk_takes_all_of_a_line_or_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, taken: int
    ) -> None:
        path = tmp_path / "anchors.jsonl"
        path.write_text(before)
        write, parts = os.write, [taken]

        def full(descriptor: int, data: bytes) -> int:
            if not parts:
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(descriptor, data[: parts.pop()])

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(StoreFullError, match="No space left"):
                anchor_files.append(str(path), "second")

        assert path.read_text() == before

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no such device")
    def test_a_full_disk_is_told(self, store: Path, capsys: Capture) -> None:
        done = here(capsys, "store", "anchor", "--append", "/dev/full")

        assert done.returncode == 75
        assert "No space left" in done.stderr

    def test_what_a_disk_takes_in_parts_is_whole(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "anchors.jsonl"
        write = os.write
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda to, data: write(to, data[:9]))
            anchor_files.append(str(path), "x" * 50)

        assert path.read_text() == "x" * 50 + "\n"

    def test_a_file_that_cannot_be_written_is_said(
        self, store: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        path = tmp_path / "nowhere" / "anchors.jsonl"
        done = here(capsys, "store", "anchor", "--append", path)

        assert done.returncode == 2
        assert f"No anchor was appended to {path}: No such file or directory" in done.stderr


class TestWatchdog:
    def look(self, capsys: Capture, *more: str | Path) -> Done:
        return here(capsys, "watchdog", "run", "--once", *more)

    def test_it_appends_an_anchor_when_the_log_went_on(
        self, store: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        path = tmp_path / "anchors.jsonl"
        options = ("--anchor-file", path, "--anchor-every", "0s")
        self.look(capsys, *options)
        self.look(capsys, *options)
        once = path.read_text().splitlines()
        grow(store, "job-1")
        self.look(capsys, *options)
        twice = path.read_text().splitlines()

        assert (len(once), len(twice)) == (1, 2)
        assert verify(capsys, path) == []

    def test_it_waits_as_long_as_it_is_told(
        self, store: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        path = tmp_path / "anchors.jsonl"
        self.look(capsys, "--anchor-file", path)
        grow(store, "job-1")
        self.look(capsys, "--anchor-file", path)
        before = len(path.read_text().splitlines())
        hour_ago = path.stat().st_mtime - 3_601
        os.utime(path, (hour_ago, hour_ago))
        self.look(capsys, "--anchor-file", path)

        assert before == 1
        assert len(path.read_text().splitlines()) == 2

    def test_it_signs(self, store: Path, key: Path, capsys: Capture, tmp_path: Path) -> None:
        path = tmp_path / "anchors.jsonl"
        self.look(capsys, "--anchor-file", path, "--anchor-sign", key)

        assert verify(capsys, path, "--public-key", key) == []

    def test_a_dry_run_appends_nothing(self, store: Path, capsys: Capture, tmp_path: Path) -> None:
        path = tmp_path / "anchors.jsonl"
        here(capsys, "watchdog", "run", "--dry-run", "--anchor-file", path)

        assert not path.exists()

    def test_a_failure_is_told_and_stops_nothing(
        self, store: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        done = self.look(capsys, "--anchor-file", tmp_path / "no" / "anchors.jsonl")

        assert done.returncode == 1
        assert "No anchor was appended" in done.stderr
        assert "at work" in done.stdout

    @pytest.mark.parametrize("more", [("--anchor-every", "2h"), ("--anchor-sign", "key")])
    def test_options_without_a_file_are_refused(
        self, store: Path, capsys: Capture, more: tuple[str, str]
    ) -> None:
        assert self.look(capsys, *more).returncode == 2

    def test_an_odd_span_is_refused(self, store: Path, capsys: Capture, tmp_path: Path) -> None:
        done = self.look(capsys, "--anchor-file", tmp_path / "a", "--anchor-every", "often")

        assert done.returncode == 2

    def test_install_passes_it_on(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.chdir(tmp_path)
        given = {
            "anchor_file": "anchors.jsonl",
            "anchor_every": "2h",
            "anchor_sign": "anchor.pem",
        }
        unset = {option.name: option.unset() for option in WATCHING}

        assert words(Params({**unset, **given})) == [
            *("--anchor-file", str(tmp_path / "anchors.jsonl")),
            *("--anchor-every", "2h"),
            *("--anchor-sign", str(tmp_path / "anchor.pem")),
        ]

    def test_an_empty_log_gets_no_anchor(self, store_environment: Path, tmp_path: Path) -> None:
        path = tmp_path / "anchors.jsonl"
        with opened(store_environment) as services:
            assert anchorkeeping.append_when_due(services, str(path), 0) is None
        assert not path.exists()
