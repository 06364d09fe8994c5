"""Check digits of identity, tax, insurance, account and card numbers, and dates inside of numbers.

The functions expect capitals and no separators.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date

_DOUBLED = str.maketrans("0123456789", "0246813579")
_RESIDENT_WEIGHTS = tuple(2**position % 11 for position in range(17, 0, -1))
_RESIDENT_SIGNS = "10X98765432"
_LIKE_DAY = re.compile("(?:18|19|20)[0-9]{2}(?:0[1-9]|1[0-2])[0-3]")
_TAIWAN_LETTERS = "ABCDEFGHJKLMNPQRSTUVXYWZIO"
"""Letters in the order of their values: the letter at index n represents the number 10 + n."""
_DNI = "TRWAGMYFPDXBNJZSQVHLCKE"
_HETU = "0123456789ABCDEFHJKLMNPRSTUVWXY"
_CF_DIGITS = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)
_CF_LETTERS = (*_CF_DIGITS, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
_CF_ODD = dict(zip("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", _CF_DIGITS + _CF_LETTERS, strict=True))
"""Character -> its value at an odd position of a codice fiscale."""


def weighted(number: str, weights: Sequence[int], modulus: int) -> bool:
    """Return whether the sum of digit times weight is divisible by the modulus."""
    return sum(int(digit) * weight for digit, weight in zip(number, weights, strict=True)) % modulus == 0


def luhn(digits: str) -> bool:
    """Return whether the Luhn check holds: with every second digit from the right doubled, the digit sum ends in 0."""
    doubled = digits[-2::-2].translate(_DOUBLED)
    return sum(map(int, digits[-1::-2] + doubled)) % 10 == 0


def ean(number: str) -> bool:
    """Return whether 13 digits are a valid EAN-13."""
    return weighted(number, (1, 3) * 6 + (1,), 10)


def is_birthday(digits: str) -> bool:
    """Return whether eight digits are a date from 1800 to 2099."""
    if not _LIKE_DAY.match(digits):  # most runs of digits are none; an exception for each would take long
        return False
    try:
        return 1800 <= date(int(digits[:4]), int(digits[4:6]), int(digits[6:])).year < 2100
    except ValueError:
        return False


def is_day(day: str, month: str) -> bool:
    """Return whether day and month are a date in a leap year."""
    try:
        date(2000, int(month), int(day))
    except ValueError:
        return False
    return True


def resident(number: str) -> bool:
    """Return whether 18 characters are a Chinese resident number with a valid date and check digit.

    Check digit by GB 11643-1999 (ISO 7064, MOD 11-2): the sum of digit times 2^(position from the right) mod 11.
    """
    if not is_birthday(number[6:14]):
        return False
    products = (int(digit) * weight for digit, weight in zip(number, _RESIDENT_WEIGHTS, strict=False))
    return _RESIDENT_SIGNS[sum(products) % 11] == number[17]


def hong_kong(number: str) -> bool:
    """Return whether a Hong Kong identity number is valid: the sum of value times weight (9 ... 1) is divisible by 11.

    A to Z are 10 to 35, a missing first letter is 36, and the check digit A is 10.
    """
    signs = [int(sign, 36) for sign in re.sub("[^0-9A-Z]", "", number)]
    padded = [36] * (9 - len(signs)) + signs
    return sum(sign_value * weight for sign_value, weight in zip(padded, range(9, 0, -1), strict=True)) % 11 == 0


def taiwan(number: str) -> bool:
    """Return whether a Taiwan identity number is valid: digits times weights (1, 9 ... 1, 1) are divisible by 10.

    The letter counts as its two digits; of a second letter, only the last digit counts.
    """
    second = number[1] if number[1].isdigit() else str(_TAIWAN_LETTERS.index(number[1]))
    digits = f"{10 + _TAIWAN_LETTERS.index(number[0])}{second}{number[2:]}"
    return weighted(digits, (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1), 10)


def nhs(number: str) -> bool:
    """Return whether an NHS number (England and Wales) is valid: weights 10 to 1, modulus 11."""
    return weighted(number, range(10, 0, -1), 11)


def iban(number: str) -> bool:
    """Return whether an IBAN is valid: 1 modulo 97, with the first four characters last and letters as 10 to 35."""
    return int("".join(str(int(sign, 36)) for sign in number[4:] + number[:4])) % 97 == 1


def nir(number: str) -> bool:
    """Return whether a French NIR is valid: its last two digits are 97 - number mod 97.

    2A and 2B count as 19 and 18.
    """
    body, key = number[:13].replace("2A", "19").replace("2B", "18"), number[13:]
    return 97 - int(body) % 97 == int(key)


def dni(number: str) -> bool:
    """Return whether a Spanish DNI or NIE is valid: the number mod 23 is the index of its letter.

    X, Y, Z count as 0, 1, 2.
    """
    digits = str("XYZ".find(number[0])) + number[1:-1] if number[0] in "XYZ" else number[:-1]
    return _DNI[int(digits) % 23] == number[-1]


def codice_fiscale(number: str) -> bool:
    """Return whether an Italian codice fiscale is valid: its last letter is the sum of all others mod 26.

    Characters at odd positions have the values of `_CF_ODD`.
    """
    even = sum(int(sign) if sign.isdigit() else ord(sign) - ord("A") for sign in number[1:15:2])
    return chr(ord("A") + (even + sum(_CF_ODD[sign] for sign in number[0:15:2])) % 26) == number[15]


def pension_de(number: str) -> bool:
    """Return whether a German Rentenversicherungsnummer is valid: digit sums of digit times weight, modulo 10.

    The letter counts as its two digits; a birthday stands in the number.
    """
    digits = f"{number[:8]}{ord(number[8]) - ord('A') + 1:02d}{number[9:11]}"
    products = (int(digit) * weight for digit, weight in zip(digits, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1), strict=True))
    is_valid = sum(sum(divmod(product, 10)) for product in products) % 10 == int(number[11])
    return is_valid and is_day(number[2:4], number[4:6])


def national_be(number: str) -> bool:
    """Return whether a Belgian national number is valid: it ends in 97 - first nine digits mod 97.

    For births from 2000, a 2 precedes the nine digits.
    """
    return int(number[9:]) in (97 - int(number[:9]) % 97, 97 - int(f"2{number[:9]}") % 97)


def personnummer(number: str) -> bool:
    """Return whether a Swedish personnummer is valid: its last ten digits by the Luhn check, and its birthday."""
    return luhn(number[-10:]) and is_day(number[-6:-4], number[-8:-6])


def hetu(number: str) -> bool:
    """Return whether a Finnish henkilötunnus is valid: date and serial number mod 31 index its check character."""
    return _HETU[int(number[:6] + number[-4:-1]) % 31] == number[-1]


NATIONAL: Mapping[str, Callable[[str], bool]] = {
    check.__name__: check
    for check in (codice_fiscale, dni, ean, hetu, iban, national_be, nhs, nir, pension_de, personnummer)
}
"""Checks that numbers of national_numbers.yaml name."""
