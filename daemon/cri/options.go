package cri

import (
	"errors"
	"time"
)

const (
	// maxMessage bounds an answer. A list of all containers of a full node has outgrown gRPC's own bound before.
	maxMessage = 16 << 20

	// A runtime's socket is local, and an attempt costs next to nothing: so the pause between two stays short.
	firstPause, longestPause = 100 * time.Millisecond, 2 * time.Second
)

// Options of the connection to a runtime. The zero value is right for a node.
type Options struct {
	// CallTimeout bounds a call, besides the time that the call itself is given. Defaults to 5 seconds.
	CallTimeout time.Duration
	// OpenTimeout bounds each of the calls that find out whether a runtime is of use. Defaults to 10 seconds.
	OpenTimeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.CallTimeout == 0 {
		o.CallTimeout = 5 * time.Second
	}
	if o.OpenTimeout == 0 {
		o.OpenTimeout = 10 * time.Second
	}
	return o
}

func (o Options) validate() error {
	if o.CallTimeout < 0 || o.OpenTimeout < 0 {
		return errors.New("timeouts must not be negative")
	}
	return nil
}
