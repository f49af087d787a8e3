package cri

import (
	"context"
	"net"

	"github.com/Microsoft/go-winio"
)

// dialScheme is what endpoints have on this system.
const dialScheme = pipeScheme

func dial(ctx context.Context, address string) (net.Conn, error) {
	return winio.DialPipeContext(ctx, address) //nolint:wrapcheck // it names the address
}
