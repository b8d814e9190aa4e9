// BELIEVED, in the JavaScript of the checker alone. Zarith's integers by JavaScript's BigInt: a number where it fits 32 bits (OCaml's
// integers there), a BigInt otherwise; one value has one representation. The parser of js_of_ocaml 4.0 knows neither 1n nor **.

//Provides: zn
function zn(b) { var n = Number(b); return (n >= -2147483648 && n <= 2147483647) ? n : b; }
//Provides: zb
function zb(x) { return BigInt(x); }
//Provides: zero const
var zero = BigInt(0);
//Provides: one const
var one = BigInt(1);
//Provides: ml_z_init
function ml_z_init(u) { return 0; }
//Provides: ml_z_add
//Requires: zn, zb
function ml_z_add(a, b) { return zn(zb(a) + zb(b)); }
//Provides: ml_z_sub
//Requires: zn, zb
function ml_z_sub(a, b) { return zn(zb(a) - zb(b)); }
//Provides: ml_z_mul
//Requires: zn, zb
function ml_z_mul(a, b) { return zn(zb(a) * zb(b)); }
//Provides: ml_z_mul_overflows
function ml_z_mul_overflows(a, b) { var r = a * b; return (r >= -2147483648 && r <= 2147483647) ? 0 : 1; }
//Provides: ml_z_neg
//Requires: zn, zb
function ml_z_neg(a) { return zn(-zb(a)); }
//Provides: ml_z_abs
//Requires: zn, zb, zero
function ml_z_abs(a) { var x = zb(a); return zn(x < zero ? -x : x); }
//Provides: ml_z_succ
//Requires: zn, zb, one
function ml_z_succ(a) { return zn(zb(a) + one); }
//Provides: ml_z_pred
//Requires: zn, zb, one
function ml_z_pred(a) { return zn(zb(a) - one); }
//Provides: ml_z_compare
function ml_z_compare(a, b) { return a < b ? -1 : (a > b ? 1 : 0); }
//Provides: ml_z_equal
function ml_z_equal(a, b) { return a === b ? 1 : 0; }
//Provides: ml_z_sign
function ml_z_sign(a) { return a < 0 ? -1 : (a > 0 ? 1 : 0); }
//Provides: ml_z_div
//Requires: zn, zb, caml_raise_zero_divide
function ml_z_div(a, b) { if (b === 0) caml_raise_zero_divide(); return zn(zb(a) / zb(b)); }
//Provides: ml_z_rem
//Requires: zn, zb, caml_raise_zero_divide
function ml_z_rem(a, b) { if (b === 0) caml_raise_zero_divide(); return zn(zb(a) % zb(b)); }
//Provides: ml_z_div_rem
//Requires: ml_z_div, ml_z_rem
function ml_z_div_rem(a, b) { return [0, ml_z_div(a, b), ml_z_rem(a, b)]; }
//Provides: ml_z_divexact
//Requires: ml_z_div
function ml_z_divexact(a, b) { return ml_z_div(a, b); }
//Provides: ml_z_fdiv
//Requires: zn, zb, zero, one, caml_raise_zero_divide
function ml_z_fdiv(a, b) {
  if (b === 0) caml_raise_zero_divide();
  var x = zb(a), y = zb(b), q = x / y, r = x % y;
  return zn(r !== zero && (r < zero) !== (y < zero) ? q - one : q);
}
//Provides: ml_z_cdiv
//Requires: zn, zb, zero, one, caml_raise_zero_divide
function ml_z_cdiv(a, b) {
  if (b === 0) caml_raise_zero_divide();
  var x = zb(a), y = zb(b), q = x / y, r = x % y;
  return zn(r !== zero && (r < zero) === (y < zero) ? q + one : q);
}
//Provides: ml_z_gcd
//Requires: zn, zb, zero, one
function ml_z_gcd(a, b) {
  var x = zb(a), y = zb(b), small = BigInt("9007199254740992"), t, p, q;
  if (x < zero) x = -x;
  if (y < zero) y = -y;
  if (x < y) { t = x; x = y; y = t; }
  while (y !== zero) {
    if (x < small) { p = Number(x); q = Number(y); while (q) { t = p % q; p = q; q = t; } return zn(BigInt(p)); }
    if ((x & (x - one)) === zero) return zn(y & -y); // the greatest power of two in y, which is not above x
    if ((y & (y - one)) === zero) { t = x & -x; return zn(t < y ? t : y); }
    t = x % y; x = y; y = t;
  }
  return zn(x);
}
//Provides: ml_z_logor
//Requires: zn, zb
function ml_z_logor(a, b) { return zn(zb(a) | zb(b)); }
//Provides: ml_z_shift_left
//Requires: zn, zb
function ml_z_shift_left(a, n) { return zn(zb(a) << BigInt(n)); }
//Provides: ml_z_shift_right
//Requires: zn, zb
function ml_z_shift_right(a, n) { return zn(zb(a) >> BigInt(n)); }
//Provides: zpow
//Requires: one
function zpow(x, n) { var r = one; while (n > 0) { if (n % 2 === 1) r = r * x; n = Math.floor(n / 2); if (n > 0) x = x * x; } return r; }
//Provides: ml_z_pow
//Requires: zn, zb, zpow, caml_invalid_argument
function ml_z_pow(a, n) { if (n < 0) caml_invalid_argument("Z.pow"); return zn(zpow(zb(a), n)); }
//Provides: ml_z_numbits
//Requires: zb, zero
function ml_z_numbits(a) { var x = zb(a); return x === zero ? 0 : (x < zero ? -x : x).toString(2).length; }
//Provides: ml_z_fits_int
function ml_z_fits_int(a) { return typeof a === "number" ? 1 : 0; }
//Provides: ml_z_to_int
//Requires: caml_failwith
function ml_z_to_int(a) { if (typeof a !== "number") caml_failwith("Z.Overflow"); return a; }
//Provides: ml_z_extract
//Requires: zn, zb, one
function ml_z_extract(a, first, n) { return zn((zb(a) >> BigInt(first)) & ((one << BigInt(n)) - one)); }
//Provides: ml_z_root
//Requires: zn, zb, zero, one, zpow
function ml_z_root(a, n) {
  var x = zb(a), low = zero, high = one, two = BigInt(2);
  while (zpow(high, n) <= x) high = high * two;
  while (high - low > one) { var m = (low + high) / two; if (zpow(m, n) <= x) low = m; else high = m; }
  return zn(low);
}
//Provides: ml_z_of_substring_base
//Requires: zn, caml_jsbytes_of_string, caml_invalid_argument
function ml_z_of_substring_base(base, s, first, length) {
  var text = caml_jsbytes_of_string(s).substr(first, length);
  if ((base !== 0 && base !== 10) || !/^-?[0-9]+$/.test(text)) caml_invalid_argument("Z.of_substring_base: invalid digit");
  return zn(BigInt(text));
}
//Provides: ml_z_format
//Requires: caml_string_of_jsbytes, caml_invalid_argument, caml_jsbytes_of_string
function ml_z_format(format, a) {
  if (caml_jsbytes_of_string(format) !== "%d") caml_invalid_argument("Z.format");
  return caml_string_of_jsbytes(String(a));
}
//Provides: ml_z_of_float
//Requires: zn, caml_failwith
function ml_z_of_float(x) { if (!isFinite(x)) caml_failwith("Z.Overflow"); return zn(BigInt(Math.trunc(x))); }
//Provides: ml_z_of_int64
//Requires: zn, caml_int64_hi32, caml_int64_lo32
function ml_z_of_int64(x) {
  return zn(BigInt(caml_int64_hi32(x)) * BigInt("4294967296") + BigInt(caml_int64_lo32(x) >>> 0));
}
//Provides: ml_z_to_int64
//Requires: zb, caml_int64_create_lo_hi
function ml_z_to_int64(a) {
  var x = BigInt.asUintN(64, zb(a));
  return caml_int64_create_lo_hi(Number(BigInt.asIntN(32, x)), Number(BigInt.asIntN(32, x >> BigInt(32))));
}
//Provides: tightrope_export
//Requires: caml_string_of_jsbytes, caml_jsbytes_of_string
function tightrope_export(check) {
  globalThis.tightropeCheck = function (bytes) {
    var parts = [];
    for (var i = 0; i < bytes.length; i += 4096) parts.push(String.fromCharCode.apply(null, bytes.subarray(i, i + 4096)));
    var answer = check(caml_string_of_jsbytes(parts.join("")));
    return { code: answer[1], words: caml_jsbytes_of_string(answer[2]) };
  };
  return 0;
}
