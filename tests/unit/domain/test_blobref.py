"""A reference to a blob is a digest and a size, and nothing else."""

from __future__ import annotations

import pytest

from tachograph.domain.blobref import BlobRef

DIGEST = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("digest", "size"),
    [("ab", 1), (DIGEST[:-1] + "A", 1), (DIGEST[:-1] + "g", 1), (DIGEST, -1), (DIGEST, 2**64)],
)
def test_a_reference_needs_a_digest_and_a_size(digest: str, size: int) -> None:
    with pytest.raises(ValueError, match="A blob "):
        BlobRef(digest, size)


def test_references_to_the_same_bytes_are_equal() -> None:
    assert {BlobRef(DIGEST, 1), BlobRef(DIGEST, 1)} == {BlobRef(DIGEST, 1)}
    assert BlobRef(DIGEST, 1) != BlobRef(DIGEST, 2)
    assert BlobRef(DIGEST, 1) != DIGEST
    assert repr(BlobRef(DIGEST, 1)) == f"BlobRef(digest='{DIGEST}', size=1)"
