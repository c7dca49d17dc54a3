"""Find the gate policy in force. Short commands use it too: a file is parsed when it changed."""

from __future__ import annotations

from tachograph.domain.default_policy import NEWEST, default_policy
from tachograph.domain.errors import PolicyError
from tachograph.domain.policy import Policy, Rule
from tachograph.infra import settings_cache
from tachograph.infra.guarded_reading import read_guarded

try:
    from _blake2 import blake2b  # hashlib costs a short command 2 ms and is the same function
except ImportError:
    from hashlib import blake2b

CACHE = "policies.cache"
MOST_READ = 16 << 20
"""Bytes of the largest file that is taken for a policy."""
_READ_AS = f"1 default {NEWEST}\n".encode()
"""What the outcome of parsing depends on besides the content: how it is checked, and the default
policy that it extends."""


def policy_of(path: str | None, store: str | None = None) -> Policy:
    """Return the policy of a TOML file; the one of Tachograph for None.

    `store` is the folder of the store in which the outcome of parsing is kept. Raises
    PolicyError, which names the file, the rule and what is wrong.
    """
    if path is None:
        return default_policy()
    content = _content(path)
    key = blake2b(_READ_AS + content, digest_size=32).digest()
    cache = None if store is None else settings_cache.path(store, CACHE)
    known = settings_cache.load(cache)
    fields = known.get(key)
    if fields is None:
        from tachograph.infra.policy_file import parse

        fields = parse(path, content)
        settings_cache.keep(cache, {key: fields})
    return Policy(fields["id"], fields["version"], [Rule(rule) for rule in fields["rules"]])


def _content(path: str) -> bytes:
    try:
        return read_guarded(path, MOST_READ, follow_links=True)
    except OSError as error:
        raise PolicyError(path, f"it cannot be read: {error.strerror}") from error
