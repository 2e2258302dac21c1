//! The field GF(2^8): its polynomial, single-element arithmetic and the tables of the kernels.
//!
//! An element is a byte whose bit *i* is the coefficient of x^i. Addition is exclusive or, so
//! every element is its own negative.

/// The field polynomial x^8 + x^4 + x^3 + x^2 + 1, with the x^8 term as bit 8.
///
/// It is part of the wire format and never changes; the crate page gives the reasons for it.
pub const POLYNOMIAL: u16 = 0x11d;

/// The low byte of [`POLYNOMIAL`]: what x^8 reduces to.
const REDUCTION: u8 = (POLYNOMIAL & 0xff) as u8;

/// Powers of x, written twice over so that the sum of two logarithms needs no modulo.
static EXP: [u8; 510] = powers();
/// Logarithms to the base x. The entry of 0 is meaningless and never read.
static LOG: [u8; 256] = logarithms();

/// `AFFINE[c]` is "multiply by c" as the 8 x 8 bit matrix that GFNI's affine instruction takes:
/// byte 7 - r holds row r, and bit j of that row is bit r of c x^j.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) static AFFINE: [u64; 256] = affine_matrices();

/// The map from a coefficient c to `AFFINE[c]` is itself linear: entry p is the matrix, in the same
/// layout, that takes c to byte p of `AFFINE[c]`. So matrices can be made eight at a time.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) static AFFINE_BYTES: [u64; 8] = affine_byte_matrices(UNITS);

/// The elements 1, x, x^2, ..., x^7.
const UNITS: [u8; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// The bit matrix that renames an element from this field to that of AES, and back. GFNI's byte instructions compute in the latter,
/// modulo x^8 + x^4 + x^3 + x + 1. All fields of 256 elements are one up to the names of their elements, so products can be
/// formed there as well. Here x becomes x + 1, since either polynomial at x + 1 is the other.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) const RENAME: u64 = bit_matrix(powers_of_x_plus_1());

/// The bit matrix that changes nothing.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) const IDENTITY: u64 = bit_matrix(UNITS);

/// As [`AFFINE_BYTES`], for coefficients in the field of AES: see [`RENAME`].
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) static AFFINE_BYTES_AES: [u64; 8] = affine_byte_matrices(powers_of_x_plus_1());

/// `NIBBLES[c]` holds the products of c with 0..=15 and then with 0, 16, 32, ..., 240: the two
/// look-up tables of the byte-shuffle kernels. A product is the sum of one entry of each.
pub(crate) static NIBBLES: NibbleTables = NibbleTables(nibble_products());

/// [`NIBBLES`], aligned so that no entry straddles a cache line.
#[repr(align(32))]
pub(crate) struct NibbleTables(pub [[u8; 32]; 256]);

/// The product of two elements.
#[inline]
#[must_use]
pub fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    EXP[usize::from(LOG[usize::from(a)]) + usize::from(LOG[usize::from(b)])]
}

/// The multiplicative inverse, or `None` for 0, which has none.
#[inline]
#[must_use]
pub fn inv(a: u8) -> Option<u8> {
    (a != 0).then(|| EXP[255 - usize::from(LOG[usize::from(a)])])
}

/// The quotient a / b, or `None` if b is 0.
#[inline]
#[must_use]
pub fn div(a: u8, b: u8) -> Option<u8> {
    inv(b).map(|inverse| mul(a, inverse))
}

/// x raised to `exponent`. x generates the multiplicative group, so its powers 0..=254 are all
/// the non-zero elements.
#[inline]
#[must_use]
pub fn exp(exponent: usize) -> u8 {
    EXP[exponent % 255]
}

/// The exponent e in 0..=254 with x^e = a, or `None` for 0.
#[inline]
#[must_use]
pub fn log(a: u8) -> Option<u8> {
    (a != 0).then(|| LOG[usize::from(a)])
}

/// The element whose logarithm is given, divided by `divisor`, which is not 0.
#[inline]
pub(crate) fn exp_over(logarithm: u8, divisor: u8) -> u8 {
    EXP[usize::from(logarithm) + 255 - usize::from(LOG[usize::from(divisor)])]
}

/// The product by shift and add, from the definition. It builds the tables and checks them.
pub(crate) const fn mul_by_definition(a: u8, b: u8) -> u8 {
    mul_modulo(POLYNOMIAL, a, b)
}

/// The product modulo a polynomial of degree 8.
const fn mul_modulo(polynomial: u16, a: u8, b: u8) -> u8 {
    let mut product = 0;
    let mut shifted = a;
    let mut bit = 0;
    while bit < 8 {
        if b >> bit & 1 == 1 {
            product ^= shifted;
        }
        shifted = (shifted << 1) ^ ((polynomial & 0xff) as u8 * (shifted >> 7));
        bit += 1;
    }
    product
}

/// The product with x.
const fn times_x(a: u8) -> u8 {
    (a << 1) ^ (REDUCTION * (a >> 7))
}

const fn powers() -> [u8; 510] {
    let mut table = [0; 510];
    let mut power = 1;
    let mut exponent = 0;
    while exponent < 510 {
        table[exponent] = power;
        power = times_x(power);
        exponent += 1;
    }
    table
}

const fn logarithms() -> [u8; 256] {
    let powers = powers();
    let mut table = [0; 256];
    let mut exponent = 0;
    while exponent < 255 {
        table[powers[exponent] as usize] = exponent as u8;
        exponent += 1;
    }
    table
}

/// The linear map that takes x^j to `columns[j]`, in the layout of [`AFFINE`].
const fn bit_matrix(columns: [u8; 8]) -> u64 {
    let mut matrix = 0;
    let mut bit = 0;
    while bit < 64 {
        let (row, column) = (bit / 8, bit % 8);
        matrix |= ((columns[column] >> row & 1) as u64) << (8 * (7 - row) + column);
        bit += 1;
    }
    matrix
}

const fn affine_matrices() -> [u64; 256] {
    let mut table = [0; 256];
    let mut c = 0;
    while c < 256 {
        let mut columns = UNITS;
        let mut column = 0;
        while column < 8 {
            columns[column] = mul_by_definition(columns[column], c as u8);
            column += 1;
        }
        table[c] = bit_matrix(columns);
        c += 1;
    }
    table
}

/// For coefficients whose bit j stands for `units[j]`.
const fn affine_byte_matrices(units: [u8; 8]) -> [u64; 8] {
    let affine = affine_matrices();
    let mut table = [0; 8];
    let mut byte = 0;
    while byte < 8 {
        let mut columns = [0; 8];
        let mut column = 0;
        while column < 8 {
            columns[column] = (affine[units[column] as usize] >> (8 * byte)) as u8;
            column += 1;
        }
        table[byte] = bit_matrix(columns);
        byte += 1;
    }
    table
}

/// What 1, x, ..., x^7 are called in the other of the two fields: the powers of x + 1, which have less than x^8.
const fn powers_of_x_plus_1() -> [u8; 8] {
    let mut powers = [1; 8];
    let mut exponent = 1;
    while exponent < 8 {
        powers[exponent] = powers[exponent - 1] ^ (powers[exponent - 1] << 1);
        exponent += 1;
    }
    powers
}

const fn nibble_products() -> [[u8; 32]; 256] {
    let mut table = [[0; 32]; 256];
    let mut c = 0;
    while c < 256 {
        let mut nibble = 0;
        while nibble < 16 {
            table[c][nibble] = mul_by_definition(nibble as u8, c as u8);
            table[c][16 + nibble] = mul_by_definition((nibble << 4) as u8, c as u8);
            nibble += 1;
        }
        c += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the fast product is the product of the definition. Method: all 65,536 pairs.
    #[test]
    fn product_equals_its_definition() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(mul(a, b), mul_by_definition(a, b), "{a} * {b}");
            }
        }
    }

    /// Goal: the definition itself multiplies polynomials. Method: long division of the carry-less
    /// product by the polynomial, written independently, for all pairs.
    #[test]
    fn definition_is_polynomial_arithmetic() {
        for a in 0..256u32 {
            for b in 0..256u32 {
                let mut product =
                    (0..8).fold(0, |sum, i| sum ^ if b >> i & 1 == 1 { a << i } else { 0 });
                for degree in (8..16).rev() {
                    if product >> degree & 1 == 1 {
                        product ^= u32::from(POLYNOMIAL) << (degree - 8);
                    }
                }
                assert_eq!(u32::from(mul(a as u8, b as u8)), product);
            }
        }
    }

    /// Goal: the field axioms of multiplication. Method: exhaustive, all triples where there are three.
    #[test]
    fn axioms_hold_for_all_elements() {
        for a in 0..=255 {
            assert_eq!(mul(a, 1), a);
            assert_eq!(mul(a, 0), 0);
            for b in 0..=255 {
                let product = mul(a, b);
                assert_eq!(product, mul(b, a));
                assert_eq!(product == 0, a == 0 || b == 0, "zero divisor {a} {b}");
                for c in 0..=255 {
                    assert_eq!(mul(product, c), mul(a, mul(b, c)));
                    assert_eq!(mul(a, b ^ c), product ^ mul(a, c));
                }
            }
        }
    }

    #[test]
    fn inverses_and_quotients() {
        assert_eq!(inv(0), None);
        assert_eq!(div(7, 0), None);
        assert_eq!(log(0), None);
        for a in 1..=255 {
            assert_eq!(mul(a, inv(a).unwrap()), 1);
            assert_eq!(exp(usize::from(log(a).unwrap())), a);
            for b in 0..=255 {
                assert_eq!(mul(div(b, a).unwrap(), a), b);
            }
        }
    }

    /// Goal: x generates the group (the reason for this polynomial). Method: its powers are distinct.
    #[test]
    fn x_is_a_generator() {
        let mut seen = [false; 256];
        for exponent in 0..255 {
            assert!(!core::mem::replace(
                &mut seen[usize::from(exp(exponent))],
                true
            ));
        }
        assert!(!seen[0]);
    }

    /// Goal: both kernel tables are products. Method: evaluate them in plain code for all pairs.
    #[test]
    fn kernel_tables_multiply() {
        for c in 0..=255u8 {
            let nibbles = &NIBBLES.0[usize::from(c)];
            for x in 0..=255u8 {
                assert_eq!(affine(AFFINE[usize::from(c)], x), mul(c, x));
                let nibble = nibbles[usize::from(x & 15)] ^ nibbles[16 + usize::from(x >> 4)];
                assert_eq!(nibble, mul(c, x));
            }
        }
    }

    const AES: u16 = 0x11b;

    /// What the affine instruction makes of a byte.
    fn affine(matrix: u64, x: u8) -> u8 {
        (0..8).fold(0, |byte, row| {
            let bits = (matrix >> (8 * (7 - row))) as u8 & x;
            byte | ((bits.count_ones() & 1) as u8) << row
        })
    }

    /// Goal: products in the field of AES are ours by other names. Method: all pairs; each matrix that is made of a name
    /// there is that of the element.
    #[test]
    fn the_field_of_aes_is_this_one_by_other_names() {
        for a in 0..=255 {
            let there = affine(RENAME, a);
            assert_eq!(affine(RENAME, there), a);
            for b in 0..=255 {
                let product = mul_modulo(AES, there, affine(RENAME, b));
                assert_eq!(affine(RENAME, product), mul(a, b));
            }
            for (byte, &matrix) in AFFINE_BYTES_AES.iter().enumerate() {
                let made = affine(matrix, there);
                assert_eq!(made, (AFFINE[usize::from(a)] >> (8 * byte)) as u8);
            }
        }
    }
}
