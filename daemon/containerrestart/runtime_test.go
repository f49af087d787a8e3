package containerrestart

import (
	"testing"

	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/daemon/internal/waiting"
)

// TestRuntimeIsListenedTo has the real runtime be all that a runtime can be here: what it lacks would go unnoticed.
func TestRuntimeIsListenedTo(t *testing.T) {
	var is Runtime = (*cri.Runtime)(nil)
	if _, ok := is.(waiting.Connected); !ok {
		t.Error("its return would not be noticed")
	}
	if _, ok := is.(waiting.Eventful); !ok {
		t.Error("its events would not be heard")
	}
	if _, err := New(nil, here, []*cri.Runtime{}, Options{}); err == nil {
		t.Error("no client, and no error")
	}
}
