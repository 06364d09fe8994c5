"""A request that the vendor refuses to carry out."""


class Refused(Exception):
    """Says the HTTP status, the vendor's code and its message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
