package containermeta

import (
	"testing"

	"github.com/kruisekit/kruisekit/daemon/cri"
)

func TestNewNeedsAClient(t *testing.T) {
	if _, err := New(nil, here, []*cri.Runtime{}, Options{}); err == nil {
		t.Error("no client, and no error")
	}
}
