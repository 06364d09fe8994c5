"""Check digits of national numbers: whether a number without its separators, in capitals, is as its issuer makes it."""

from collections.abc import Sequence
from datetime import date

_DNI = "TRWAGMYFPDXBNJZSQVHLCKE"
_HETU = "0123456789ABCDEFHJKLMNPRSTUVWXY"
_CF_DIGITS = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)
_CF_LETTERS = (*_CF_DIGITS, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
_CF_ODD = dict(zip("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", _CF_DIGITS + _CF_LETTERS, strict=True))
"""Worth of a sign at an odd place of a codice fiscale."""


def weighted(number: str, weights: Sequence[int], modulus: int) -> bool:
    """Say whether the sum of digit times weight divides by the modulus."""
    return sum(int(digit) * weight for digit, weight in zip(number, weights, strict=True)) % modulus == 0


def nhs(number: str) -> bool:
    """Modulus 11 with the weights 10 to 1 (NHS number, England and Wales)."""
    return weighted(number, range(10, 0, -1), 11)


def iban(number: str) -> bool:
    """ISO 13616: with the first four signs behind the others and letters as 10 to 35 it is 1 modulo 97."""
    return int("".join(str(int(sign, 36)) for sign in number[4:] + number[:4])) % 97 == 1


def nir(number: str) -> bool:
    """French social security: the key is 97 less the number modulo 97; 2A and 2B of Corsica count as 19 and 18."""
    body, key = number[:13].replace("2A", "19").replace("2B", "18"), number[13:]
    return 97 - int(body) % 97 == int(key)


def dni(number: str) -> bool:
    """Spanish DNI and NIE: the letter at the number modulo 23; X, Y, Z in front count as 0, 1, 2."""
    return (
        _DNI[int(str("XYZ".find(number[0])) + number[1:-1] if number[0] in "XYZ" else number[:-1]) % 23] == number[-1]
    )


def codice_fiscale(number: str) -> bool:
    """Italian codice fiscale: the last letter is the sum of all others modulo 26, those at odd places by a table."""
    even = sum(int(sign) if sign.isdigit() else ord(sign) - ord("A") for sign in number[1:15:2])
    return chr(ord("A") + (even + sum(_CF_ODD[sign] for sign in number[0:15:2])) % 26) == number[15]


def pension_de(number: str) -> bool:
    """German Rentenversicherungsnummer: digit sums of digit times weight; the letter counts as its two digits."""
    digits = f"{number[:8]}{ord(number[8]) - ord('A') + 1:02d}{number[9:11]}"
    products = (int(digit) * weight for digit, weight in zip(digits, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1), strict=True))
    return sum(sum(divmod(product, 10)) for product in products) % 10 == int(number[11])


def national_be(number: str) -> bool:
    """Belgian national number: 97 less the first nine digits modulo 97, with a 2 in front for births from 2000 on."""
    return int(number[9:]) in (97 - int(number[:9]) % 97, 97 - int(f"2{number[:9]}") % 97)


def hetu(number: str) -> bool:
    """Finnish henkilötunnus: the sign at date and serial number together modulo 31."""
    return _HETU[int(number[:6] + number[-4:-1]) % 31] == number[-1]


def ahv(number: str) -> bool:
    """Swiss AHV number: EAN-13."""
    return weighted(number, (1, 3) * 6 + (1,), 10)


def is_day(day: str, month: str) -> bool:
    """Say whether there is such a day in a leap year."""
    try:
        date(2000, int(month), int(day))
    except ValueError:
        return False
    return True
