// Package roundtrip makes the conversion between two versions of a kind lossless.
//
// A kind brings two plain functions that copy fields, one each way. Where the other version cannot hold
// something, the copy there and back differs from the original; Convert writes that difference into the
// annotation kruise.ConversionDataKey of the result, and the conversion back restores it.
//
// Laws:
//   - There and back gives an object equal to the original.
//   - An edit made in between wins: a kept value returns only where the copied value is still the one it
//     was kept besides.
//   - A version shows what is stored: a kept value returns only where the version of the source cannot hold it.
//   - An annotation that a user wrote by hand, or broke, never makes a conversion fail: a stored object
//     that cannot be converted would break every list of its kind.
//   - The source is not changed, and shares no memory with the result.
package roundtrip
