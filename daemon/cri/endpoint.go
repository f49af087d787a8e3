package cri

import (
	"fmt"
	"strings"
)

// An endpoint is where a runtime listens.
type endpoint struct{ scheme, address string }

const (
	unixScheme = "unix"
	pipeScheme = "npipe"
)

// parseEndpoint reads unix:///run/x.sock, an absolute path, or npipe://./pipe/x in any of the usual spellings.
func parseEndpoint(s string) (endpoint, error) {
	scheme, rest, found := strings.Cut(s, "://")
	switch {
	case !found && strings.HasPrefix(s, "/"):
		return endpoint{unixScheme, s}, nil
	case found && scheme == unixScheme && strings.HasPrefix(rest, "/"):
		return endpoint{unixScheme, rest}, nil
	case found && scheme == pipeScheme:
		if name, ok := pipeName(rest); ok {
			return endpoint{pipeScheme, `\\.\pipe\` + name}, nil
		}
	}
	return endpoint{}, fmt.Errorf("endpoint %q: want unix:///path or npipe://./pipe/name", s)
}

// pipeName takes ./pipe/x, //./pipe/x and \\.\pipe\x.
func pipeName(s string) (string, bool) {
	name, found := strings.CutPrefix(strings.TrimLeft(strings.ReplaceAll(s, `\`, "/"), "/"), "./pipe/")
	return strings.ReplaceAll(name, "/", `\`), found && name != ""
}
