"""Ed25519 keys in files, and signatures with them. Never prints a private key.

Keys are PEM (PKCS #8) or OpenSSH files, as other tools make and read them. What signs is an
optional package and is imported when it is first needed.
"""

from __future__ import annotations

import os
import stat
import sys
from importlib import import_module
from typing import Any

from tachograph.domain.errors import (
    SigningKeyError,
    SigningUnavailableError,
    StoreExistsError,
)
from tachograph.infra.durable import sync_file, sync_folder

PACKAGE = "pycryptodome"
CURVE = "Ed25519"
KEY_BYTES = 64 * 1024
"""Most that is read of a key file."""


class SigningKey:
    """A private key. `public` are the 32 bytes that everybody may know."""

    def __init__(self, key: Any) -> None:
        self._key = key
        self.public: bytes = key.public_key().export_key(format="raw")

    def sign(self, statement: bytes) -> bytes:
        """Return the signature of a statement, 64 bytes."""
        signature: bytes = _eddsa().new(self._key, "rfc8032").sign(statement)
        return signature

    def public_pem(self) -> str:
        """Return the public key as PEM."""
        text: str = self._key.public_key().export_key(format="PEM")
        return text


def make_key(path: str) -> SigningKey:
    """Make a key in a new file that only its owner can read. Durable on return.

    Raises StoreExistsError, SigningKeyError when the file cannot be made, and
    SigningUnavailableError.
    """
    key = _ecc().generate(curve=CURVE)
    text = key.export_key(format="PEM") + "\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError as error:
        raise StoreExistsError(path) from error
    except OSError as error:
        raise SigningKeyError(path, str(error.strerror)) from error
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        sync_file(file.fileno())
    sync_folder(os.path.dirname(os.path.abspath(path)))
    return SigningKey(key)


def load_key(path: str) -> SigningKey:
    """Return the private key in a file that nobody else can read.

    Raises SigningKeyError and SigningUnavailableError.
    """
    data, mode = _read(path)
    if mode & 0o077 and sys.platform != "win32":
        raise SigningKeyError(path, "others can read it; chmod 600 it")
    key = _import(path, data)
    if not key.has_private():
        raise SigningKeyError(path, "it holds a public key, which cannot sign")
    return SigningKey(key)


def load_public_key(path: str) -> bytes:
    """Return the 32 bytes of a public key: of a PEM or OpenSSH file, or of 64 hex digits.

    Raises SigningKeyError and SigningUnavailableError.
    """
    data, _ = _read(path)
    text = data.decode("ascii", "replace").strip()
    if len(text) == 64:
        try:
            return bytes.fromhex(text)
        except ValueError:
            pass
    public: bytes = _import(path, data).public_key().export_key(format="raw")
    return public


def is_signed(public: bytes, statement: bytes, signature: bytes) -> bool:
    """Say whether the holder of a key signed a statement. Raises SigningUnavailableError."""
    eddsa = _eddsa()
    try:
        eddsa.new(eddsa.import_public_key(public), "rfc8032").verify(statement, signature)
    except ValueError:
        return False
    return True


def _read(path: str) -> tuple[bytes, int]:
    try:
        with open(path, "rb") as file:
            return file.read(KEY_BYTES), stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    except OSError as error:
        raise SigningKeyError(path, str(error.strerror)) from error


def _import(path: str, data: bytes) -> Any:
    try:
        key = _ecc().import_key(data)
    except (ValueError, IndexError, TypeError) as error:
        why = "it is no key in PEM or OpenSSH form, or has a passphrase"
        raise SigningKeyError(path, why) from error
    if key.curve != CURVE:
        raise SigningKeyError(path, f"it is a key of {key.curve}, not of {CURVE}")
    return key


def _ecc() -> Any:
    return _imported("Crypto.PublicKey.ECC")


def _eddsa() -> Any:
    return _imported("Crypto.Signature.eddsa")


def _imported(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise SigningUnavailableError(PACKAGE) from error
