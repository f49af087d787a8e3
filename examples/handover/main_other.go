//go:build !unix

// Command handover is a sidecar that can be upgraded hot. It needs sockets of Unix to give its listener away.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "handover: this system has no sockets that can be given away")
	os.Exit(1)
}
