"""What can be wrong with a user's input. The command line prints the message and exits with 2."""

MESSAGE_LIMIT = 2000        # characters; more is nobody's reading, and may be all of a bad file


class MicrotronError(ValueError):
    """Bad input. The message gives the value, the place and what would be right, in one line.

    Whoever quotes a user's text shortens it; a message that is too long all the same loses its
    middle.
    """

    def __init__(self, message: object = "") -> None:
        text = str(message)
        if len(text) > MESSAGE_LIMIT:
            text = f"{text[:MESSAGE_LIMIT * 2 // 3]} … {text[-MESSAGE_LIMIT // 4:]}"
        super().__init__(text)


class ConfigError(MicrotronError):
    """A configuration that no accelerator can have, or a file that does not hold one."""


class IsaError(MicrotronError):
    """An instruction or micro-op that cannot be encoded or decoded."""


class AssemblyError(MicrotronError):
    """A line of assembly that cannot be understood."""


class ImageError(MicrotronError):
    """A program image that is damaged, foreign or too new."""


class ExecutionError(MicrotronError):
    """A program that went wrong while it ran: a bad index, a bad address or a deadlock."""


class VerificationError(MicrotronError):
    """A program that the verifier refuses to vouch for."""
