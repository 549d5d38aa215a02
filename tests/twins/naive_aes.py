"""A slow, obvious twin of AES-128 in counter mode: FIPS 197 step by step; the standard library only."""

BLOCK = 16


def times(a, b):
    """The product of two bytes as polynomials over bits, modulo x^8 + x^4 + x^3 + x + 1 (FIPS 197, 4.2)."""
    product = 0
    for bit in range(8):
        if b >> bit & 1:
            product ^= a << bit
    for bit in range(14, 7, -1):
        if product >> bit & 1:
            product ^= 0x11B << (bit - 8)
    return product


def substituted(byte):
    """The S-box: the inverse of a byte, 0 for 0, and an affine map of its bits (FIPS 197, 5.1.1)."""
    inverse = next((other for other in range(256) if times(byte, other) == 1), 0)
    rotated = [(inverse << turn | inverse >> (8 - turn)) & 255 for turn in range(5)]
    return rotated[0] ^ rotated[1] ^ rotated[2] ^ rotated[3] ^ rotated[4] ^ 0x63


S_BOX = [substituted(byte) for byte in range(256)]


def round_keys(key):
    """From the 16 bytes of a key, the keys of rounds 0 to 10 (FIPS 197, 5.2)."""
    words, constant = [list(key[i : i + 4]) for i in range(0, BLOCK, 4)], 1
    while len(words) < 44:
        word = list(words[-1])
        if len(words) % 4 == 0:
            word = [S_BOX[byte] for byte in (*word[1:], word[0])]
            word[0] ^= constant
            constant = times(constant, 2)
        words.append([a ^ b for a, b in zip(words[-4], word, strict=True)])
    return [[byte for word in words[i : i + 4] for byte in word] for i in range(0, 44, 4)]


def with_shifted_rows(state):
    """Row r of the state, which is filled column by column, turned left by r places (FIPS 197, 5.1.2)."""
    return [state[(i + 4 * (i % 4)) % BLOCK] for i in range(BLOCK)]


def with_mixed_columns(state):
    """Every column times the polynomial 3x^3 + x^2 + x + 2 (FIPS 197, 5.1.3)."""
    mixed = []
    for first in range(0, BLOCK, 4):
        a, b, c, d = state[first : first + 4]
        for w, x, y, z in ((a, b, c, d), (b, c, d, a), (c, d, a, b), (d, a, b, c)):
            mixed.append(times(w, 2) ^ times(x, 3) ^ y ^ z)
    return mixed


def encrypted(block, key):
    """From 16 bytes and the 16 bytes of a key, the block encrypted by AES-128."""
    keys = round_keys(key)
    state = [a ^ b for a, b in zip(block, keys[0], strict=True)]
    for number in range(1, 11):
        state = with_shifted_rows([S_BOX[byte] for byte in state])
        if number < 10:
            state = with_mixed_columns(state)
        state = [a ^ b for a, b in zip(state, keys[number], strict=True)]
    return bytes(state)


def counter_words(key, counter, n):
    """The first n words of counter mode: two of each block, its bytes and the counter's lowest one first."""
    words = []
    while len(words) < n:
        block = encrypted(counter.to_bytes(BLOCK, "little"), key)
        words += [int.from_bytes(block[:8], "little"), int.from_bytes(block[8:], "little")]
        counter = (counter + 1) % 2**128
    return words[:n]
