// Package launch starts the keepers of the levels without real nodes, and is what such a keeper runs. The command and
// the tests share it.
package launch
