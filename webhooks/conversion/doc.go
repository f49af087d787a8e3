// Package conversion serves the webhook that converts every kind between its two versions.
//
// The API server calls it for each object that a client reads or writes in another version than the stored
// one, so it works on values alone: no cache, no client, nothing to wait for.
//
// What the schemas do not describe (pod templates, claim templates, containers of sidecars) is handed over as
// the bytes that came, so that fields which a newer API server knows and this program does not are kept.
package conversion
