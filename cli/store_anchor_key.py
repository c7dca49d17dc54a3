"""`tacho store anchor-key`: make a key that signs anchors, or show the public part of one."""

from __future__ import annotations

from tachograph.cli.options import Argument, Spec, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Make a key that signs anchors, and print its public part.",
    Argument("file", "The new file of the private key.", complete="path"),
    flag("--show", "Only print the public part of a key that is there."),
    details="""Ed25519, as PEM (PKCS #8), in a file with mode 0600. Keep the private key away from
the store's machine where you can; give the public part to whoever verifies:

\b
  tacho store anchor-key anchor.pem > anchor.pub
  tacho store anchor --sign anchor.pem --append anchors.jsonl
  tacho store verify --anchor anchors.jsonl --public-key anchor.pub""",
)


def run(params: Params, out: Output) -> None:
    """Make the key and print its public part."""
    from tachograph.infra.signing import load_key, make_key

    key = load_key(params.file) if params.show else make_key(params.file)
    if out.json:
        out.document(
            {
                "file": params.file,
                "publicKey": key.public.hex(),
                "publicPem": key.public_pem(),
                "made": not params.show,
            }
        )
        return
    out.line(key.public_pem())
    if not params.show:
        out.note(f"The private key is in {params.file}. The public one: {key.public.hex()}")
