//go:build !windows

package cri

import (
	"context"
	"net"
)

// dialScheme is what endpoints have on this system.
const dialScheme = unixScheme

func dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", address) //nolint:wrapcheck // it names the address
}
